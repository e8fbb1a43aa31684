"""Name tables that the settings declare, for engines that have no file here."""

from __future__ import annotations

from collections.abc import Iterable

from sidecar.config import ConfigError, NameSettings, NameTableSettings
from sidecar.engines.canonical import CANONICAL, DEFINITION, ENGINE_LABELS, GATEWAY_LABELS
from sidecar.engines.table import Clock, Name, NameTable, Role, Was
from sidecar.signals import Kind, Metric

_GIVEN = {*ENGINE_LABELS, *GATEWAY_LABELS, DEFINITION}  # labels that no name can set


def from_settings(declared: Iterable[NameTableSettings]) -> tuple[NameTable, ...]:
    """The tables; ConfigError names the table, the name and what is allowed there."""
    return tuple(_table(settings) for settings in declared)


def _table(settings: NameTableSettings) -> NameTable:
    role = Role(settings.role)
    return NameTable(
        engine=settings.engine,
        title=settings.title or settings.engine,
        prefixes=settings.prefixes,
        names=tuple(_name(settings.engine, role, name) for name in settings.names),
        source="the settings",
        role=role,
        parts=settings.parts,
        copies=settings.copies,
        models=settings.models,
    )


def signals(role: Role) -> dict[str, Metric]:
    """What a table of this role can name, by short name."""
    prefix = f"modelprobe_{role}_"
    return {
        metric.name.removeprefix(prefix): metric
        for metric in CANONICAL
        if metric.name.startswith(prefix)
    }


def _name(engine: str, role: Role, settings: NameSettings) -> Name:
    known = signals(role)
    metric = known.get(settings.signal)
    where = f"name_tables: {engine}: {settings.raw}"
    if metric is None:
        raise ConfigError(f"{where}: unknown signal {settings.signal}; known: {', '.join(known)}")
    _check(where, settings, metric)
    return Name(
        raw=settings.raw,
        metric=metric,
        labels=tuple(sorted(settings.labels.items())),
        by=tuple(sorted(settings.by.items())),
        where=tuple(sorted(settings.where.items())),
        scale=settings.scale,
        clock=Clock(settings.clock) if settings.clock else None,
        definition=settings.definition,
        was=tuple(Was(former, "") for former in settings.was),
        optional=settings.optional,
    )


def _check(where: str, settings: NameSettings, metric: Metric) -> None:
    signal = settings.signal
    if metric.kind is Kind.COUNTER and settings.clock is None:
        raise ConfigError(f"{where}: a counter needs clock: per_step or at_finish")
    if metric.kind is not Kind.COUNTER and settings.clock is not None:
        raise ConfigError(f"{where}: {signal} is a {metric.kind} and has no clock; take it out")
    if DEFINITION in metric.labels and not settings.definition:
        raise ConfigError(f"{where}: {signal} needs a definition, such as per_step")
    if DEFINITION not in metric.labels and settings.definition:
        raise ConfigError(f"{where}: {signal} has no definition; take it out")
    set_by_us = [*settings.labels, *settings.by.values()]
    allowed = set(metric.labels) - _GIVEN
    extra = sorted(set(set_by_us) - allowed)
    if extra:
        known = ", ".join(sorted(allowed)) or "none"
        raise ConfigError(
            f"{where}: {signal} has no label {', '.join(extra)} to set; it has {known}"
        )
    twice = sorted({label for label in set_by_us if set_by_us.count(label) > 1})
    if twice:
        raise ConfigError(f"{where}: label {', '.join(twice)} is set twice; once will do")
