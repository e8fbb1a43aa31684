"""Reads the settings: one YAML file, and ``MODELPROBE_*`` variables that stand above it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import SettingsError

from sidecar.config.section import ConfigError
from sidecar.config.settings import PREFIX, Settings

_STAND_IN = "standin_"


def load(path: Path | None) -> Settings:
    """The settings of a file and the environment; ConfigError names file, key and remedy."""
    return from_values(str(path) if path else "environment", _read(path) if path else {})


def from_values(source: str, values: dict[str, Any]) -> Settings:
    """Settings of plain values under the environment's; ``source`` names them in errors."""
    _refuse_unknown_variables(os.environ)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise ConfigError(_explain(source, values, error)) from error
    except SettingsError as error:
        raise ConfigError(f"environment: {error}; lists and sections are JSON there") from error
    _refuse_duplicates(source, settings)
    return settings


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not valid"
        raise ConfigError(f"{path}:{where} not YAML: {problem}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        # PyYAML lets some bad dates, tags and nestings out as Python's own errors.
        raise ConfigError(f"{path}: not YAML that can be read: {type(error).__name__}") from error
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{path}: the top level must be keys with values, such as 'engines:'")
    return values


def _allowed(location: tuple[int | str, ...]) -> str:
    """The keys allowed beside the last step of a location, comma separated."""
    model: Any = Settings
    for step in location[:-1]:
        if isinstance(step, int):
            continue
        found = model.model_fields.get(step)
        annotation = found.annotation if found else None
        inner = [a for a in getattr(annotation, "__args__", ()) if hasattr(a, "model_fields")]
        model = inner[0] if inner else annotation
        if not hasattr(model, "model_fields"):
            return ""
    return ", ".join(model.model_fields)


def _holds(values: Any, location: tuple[int | str, ...]) -> bool:
    for step in location:
        try:
            values = values[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _explain(source: str, values: dict[str, Any], error: ValidationError) -> str:
    first = error.errors()[0]
    location = first["loc"]
    if first["type"] != "missing" and not _holds(values, location):
        source = f"environment ({PREFIX}{str(location[0]).upper()}…)"
    key = ".".join(str(step) for step in location)
    if first["type"] == "extra_forbidden":
        problem = f"unknown key; allowed here: {_allowed(location)}"
    else:
        problem = first["msg"].removeprefix("Value error, ")
        given = first.get("input")
        # An address with an @ may hold a password, and a webhook's path is often a secret.
        secret = "@" in str(given) or location[:2] == ("notify", "webhooks")
        if isinstance(given, str | int | float | bool) and not secret:
            problem += f" (given: {str(given)[:80]!r})"
    more = error.error_count() - 1
    return f"{source}: {key}: {problem}" + (f" (and {more} more)" if more else "")


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    for name in environ:
        if not name.upper().startswith(PREFIX):
            continue
        field = name.upper().removeprefix(PREFIX).split("__")[0].lower()
        if field.startswith(_STAND_IN):
            continue  # the rig's stand-in driver, which the GPU reader's child loads
        if field not in Settings.model_fields:
            allowed = ", ".join(PREFIX + known.upper() for known in Settings.model_fields)
            raise ConfigError(f"environment: {name}: unknown variable; allowed: {allowed}")


def _refuse_duplicates(source: str, settings: Settings) -> None:
    for key, values in (
        ("engines.name, gateways.name", [t.name for t in (*settings.engines, *settings.gateways)]),
        ("name_tables.engine", [table.engine for table in settings.name_tables]),
        ("probes.enabled", list(settings.probes.enabled)),
        ("wire.ports.port", [str(port.port) for port in settings.wire.ports]),
    ):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ConfigError(f"{source}: {key}: {', '.join(twice)} is given twice")
