"""States of telemetry that one scrape shows: names, types, copies. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.engines.exposition import Exposition
from sidecar.engines.naming import Used
from sidecar.engines.states import TelemetryState
from sidecar.engines.table import Clock, NameTable, Was
from sidecar.engines.translation import Translation
from sidecar.signals import Observation

_PREFIX = "modelprobe_"


def signal_of(metric: str) -> str:
    """A canonical metric's short name: ``kv_cache_usage_ratio``."""
    for prefix in ("engine_", "gateway_"):
        metric = metric.removeprefix(_PREFIX + prefix)
    return metric


def observe(
    exposition: Exposition, translation: Translation, replica: str
) -> Iterator[Observation]:
    """Each state that holds, with the names it is about."""
    for used in translation.used:
        for state, text in _names(used):
            yield Observation(state, replica, signal_of(used.name.metric.name), text)
    for table, metric in translation.missing:
        text = f"{table.title} exposes no {_words(metric)}; looked for {_looked_for(table, metric)}"
        yield Observation(TelemetryState.MISSING, replica, signal_of(metric), text)
    if translation.broken_histograms:
        text = f"{translation.broken_histograms} of its histograms contradict themselves"
        yield Observation(TelemetryState.BROKEN_HISTOGRAM, replica, "", text)
    if translation.undefined_model:
        text = "it does not say which model it serves"
        yield Observation(TelemetryState.MODEL_UNDEFINED, replica, "", text)
    for explosion in exposition.explosions:
        text = (
            f"{explosion.name} has {explosion.series:,} series, made by its label "
            f"{explosion.label}; such a scrape costs the engine time"
        )
        yield Observation(TelemetryState.EXPLOSION, replica, explosion.name, text)


def _names(used: Used) -> Iterator[tuple[TelemetryState, str]]:
    words = _words(used.name.metric.name)
    if used.unfit:
        text = f"{used.spelled} is a {used.unfit} and no longer a {used.name.metric.kind}"
        yield TelemetryState.TYPE_CHANGED, f"{text}; {words} is left out"
        return
    if used.was is not None:
        yield TelemetryState.RENAMED, _former(used, used.was)
    if used.doubled:
        others = ", ".join(used.doubled)
        text = f"{words} comes as {used.spelled} and as {others}; the first one counts"
        yield TelemetryState.DOUBLED, text
    if used.repeated:
        text = f"{used.repeated:,} series of {used.spelled} come twice; they count once"
        yield TelemetryState.DOUBLED, text
    if used.name.clock is Clock.AT_FINISH:
        yield TelemetryState.AT_FINISH, f"{used.spelled} moves when requests end, not with tokens"


def _former(used: Used, was: Was) -> str:
    until = f", which {used.table.title} dropped after {was.until}" if was.until else ""
    return f"{_words(used.name.metric.name)} comes under its former name {used.spelled}{until}"


def _words(metric: str) -> str:
    return signal_of(metric).removesuffix("_total").replace("_", " ")


def _looked_for(table: NameTable, metric: str) -> str:
    looked: dict[str, None] = {}
    for name in table.names:
        if name.metric.name == metric:
            looked.update((spelling, None) for spelling, _ in table.spellings(name))
    return ", ".join(looked)
