"""Settings from one YAML file and ``MODELPROBE_*`` environment variables; the environment wins.

Nothing is guessed: an unknown key, a wrong type or an unknown variable is refused with the file,
the key and what is allowed there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from sidecar.addresses import http_url, listen_address
from sidecar.signals import Leg

PREFIX = "MODELPROBE_"
_STAND_IN = "standin_"
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class ConfigError(Exception):
    """The settings cannot be used; the message is one line for people."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TargetSettings(_Section):
    """One engine or gateway whose Prometheus endpoint is read."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,63}$")] = Field(
        description="Value of the `replica` label; letters, digits and `_.:-`."
    )
    url: Annotated[str, AfterValidator(http_url)] = Field(
        description="`http://host:port`; no credentials."
    )
    metrics_path: Annotated[str, Field(pattern=r"^/")] = Field(
        default="/metrics",
        description="Path of its Prometheus endpoint: TensorRT-LLM `/prometheus/metrics`, Envoy "
        "`/stats/prometheus`, LiteLLM `/metrics/`.",
    )
    interval_seconds: Seconds = Field(default=5.0, description="Time between two scrapes.")
    deadline_seconds: Seconds = Field(
        default=4.0, description="How long one scrape may take before it is a timeout."
    )


Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
RawName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]{0,254}$")]
RawLabels = dict[Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,62}$")], str]


class NameSettings(_Section):
    """One metric of a declared name table."""

    raw: RawName = Field(
        description="Its name without the prefix; of a histogram without `_bucket`."
    )
    signal: str = Field(description="The canonical signal, as `requests_running`.")
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=1.0, description="Turns its unit into ours: 0.001 for milliseconds."
    )
    clock: Literal["per_step", "at_finish"] | None = Field(
        default=None, description="When a counter moves."
    )
    definition: str = Field(default="", description="What one observation of a latency is.")
    labels: RawLabels = Field(default={}, description="Labels to give, such as `source: all`.")
    by: RawLabels = Field(default={}, description="Its own labels to keep, `own: ours`.")
    where: RawLabels = Field(default={}, description="Labels that a series must have.")
    was: tuple[RawName, ...] = Field(default=(), description="Its former names.")
    optional: bool = Field(default=False, description="It may be absent without being missing.")


class NameTableSettings(_Section):
    """How an engine or gateway names things that has no table here."""

    engine: Word = Field(description="Value of the `engine` or `gateway` label.")
    title: str = Field(default="", description="Its name for people.")
    role: Literal["engine", "gateway"] = Field(default="engine", description="What it is.")
    prefixes: Annotated[tuple[RawName, ...], Field(min_length=1)] = Field(
        description="Starts of names that only it exposes."
    )
    names: Annotated[tuple[NameSettings, ...], Field(min_length=1, max_length=200)]
    parts: tuple[str, ...] = Field(
        default=(), description="Labels of data-parallel parts: they add up."
    )
    copies: tuple[str, ...] = Field(
        default=(), description="Labels of ranks that repeat one value: one counts."
    )
    models: tuple[str, ...] = Field(
        default=("model_name", "model"), description="Labels that hold the model's name."
    )


class WirePort(_Section):
    """A server port to watch and the leg its requests belong to."""

    port: Port = Field(description="TCP port of the server, gateway or engine.")
    leg: Leg = Field(
        default=Leg.DOWNSTREAM,
        description="`downstream` (client to gateway) or `upstream` (gateway to engine).",
    )


class WireSettings(_Section):
    """What the wire tap watches, and where `probed` listens."""

    socket: Path = Field(
        default=Path("/run/model-probe/probed.sock"), description="The Unix socket of `probed`."
    )
    ports: Annotated[tuple[WirePort, ...], Field(max_length=32)] = ()


class GpuSettings(_Section):
    """The GPUs, through the driver's management library (NVML)."""

    enabled: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="`auto`: where the library is found; `always`: without it blind; `never`.",
    )
    expected: Annotated[int, Field(ge=0, le=64)] = Field(
        default=0, description="How many there should be; 0: the most ever seen."
    )
    interval_seconds: Seconds = Field(default=1.0, description="Time between two readings.")
    library_folder: Path = Field(
        default=Path(),
        description="Folder of `libnvidia-ml.so.1` if the loader does not know it.",
    )


class KmsgSettings(_Section):
    """The kernel's log: Xids of the GPU driver and processes killed for memory."""

    enabled: bool = Field(
        default=False, description="Read it; needs CAP_SYSLOG where kernel.dmesg_restrict is 1."
    )
    path: Path = Field(default=Path("/dev/kmsg"), description="The log's device.")


class CgroupSettings(_Section):
    """A control group to watch besides our own, such as the engine's container."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,63}$")] = Field(
        description="Value of the `cgroup` label."
    )
    path: Path = Field(description="Its path below the cgroup file system, as in /proc/PID/cgroup.")


class PressureSettings(_Section):
    """Stalls, CPU throttling and memory limits, of the host and of control groups."""

    enabled: bool = Field(default=True, description="Read them; needs no privilege.")
    cgroups: Annotated[tuple[CgroupSettings, ...], Field(max_length=16)] = ()
    interval_seconds: Seconds = Field(default=5.0, description="Time between two readings.")


class KubernetesSettings(_Section):
    """The Kubernetes Node we run on: whether it gives out all of its GPUs."""

    node: Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9.-]{0,252})?$")] = Field(
        default="", description="Its name (`spec.nodeName`); empty: not read."
    )
    api: Annotated[str, Field(pattern=r"^https://[^@/ ]+/?$")] = Field(
        default="https://kubernetes.default.svc", description="The API server."
    )
    service_account: Path = Field(
        default=Path("/var/run/secrets/kubernetes.io/serviceaccount"),
        description="Folder with `token` and `ca.crt`; the account needs `get` on `nodes`.",
    )
    resource: Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]*$")] = Field(
        default="nvidia.com/", description="Start of the resource names that are GPUs."
    )


class ExportSettings(_Section):
    """The read-only listener."""

    listen: Annotated[str, AfterValidator(listen_address)] = Field(
        default="127.0.0.1:9838",
        description="Address and port of metrics and page; anything beyond loopback is your "
        "choice, and has no authentication.",
    )
    max_label_sets: Annotated[int, Field(ge=10, le=100_000)] = Field(
        default=1_000,
        description="Series kept of one metric of one collector; the rest is counted.",
    )


class Settings(BaseSettings):
    """Everything that can be set; ``docs/configuration.md`` is generated from it."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    engines: tuple[TargetSettings, ...] = ()
    gateways: tuple[TargetSettings, ...] = ()
    name_tables: Annotated[tuple[NameTableSettings, ...], Field(max_length=16)] = ()
    wire: WireSettings = WireSettings()
    gpu: GpuSettings = GpuSettings()
    kmsg: KmsgSettings = KmsgSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    pressure: PressureSettings = PressureSettings()
    export: ExportSettings = ExportSettings()
    log_level: Annotated[str, Field(pattern=r"^(debug|info|warning|error)$")] = Field(
        default="info", description="`debug`, `info`, `warning` or `error`; JSON lines on stderr."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment stands above what the file said (which arrives as init values)."""
        return env_settings, init_settings


def load(path: Path | None) -> Settings:
    """The settings of a file and the environment; ConfigError names file, key and remedy."""
    _refuse_unknown_variables(os.environ)
    return from_values(str(path) if path else "environment", _read(path) if path else {})


def from_values(source: str, values: dict[str, Any]) -> Settings:
    """Settings of plain values under the environment's; ``source`` names them in errors."""
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
        # An address with an @ may hold a password: it is not repeated.
        if isinstance(given, str | int | float | bool) and "@" not in str(given):
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
        ("wire.ports.port", [str(port.port) for port in settings.wire.ports]),
    ):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ConfigError(f"{source}: {key}: {', '.join(twice)} is given twice")
