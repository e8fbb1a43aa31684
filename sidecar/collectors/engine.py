"""Reads the Prometheus endpoint of an engine or a gateway and says its numbers by canonical names.

One collector for each configured replica. What the endpoint answers instead of metrics is a named
state each; nothing is ever filled in.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from sidecar.config import Settings, TargetSettings
from sidecar.engines import tables
from sidecar.engines.canonical import CANONICAL
from sidecar.engines.declared import from_settings as declared_tables
from sidecar.engines.endpoint import Endpoint
from sidecar.engines.exposition import Bad, Exposition
from sidecar.engines.table import NameTable, Role
from sidecar.engines.telemetry import CLOCK, STATE, Telemetry
from sidecar.engines.translation import Translation
from sidecar.engines.wanted import wanted
from sidecar.signals import Absence, Kind, Metric, NoData, Sample, Signal

INFO = Metric(
    "modelprobe_engine_info",
    Kind.GAUGE,
    "1; which engine answers, told from the names it exposes.",
    ("engine", "replica"),
)
GATEWAY_INFO = Metric(
    "modelprobe_gateway_info",
    Kind.GAUGE,
    "1; which gateway answers, told from the names it exposes.",
    ("gateway", "replica"),
)
BAD_LINES = Metric(
    "modelprobe_target_bad_lines_total",
    Kind.COUNTER,
    "Lines of the target's exposition that could not be read; each cost itself alone.",
    ("replica",),
)
BAD_EXEMPLARS = Metric(
    "modelprobe_target_bad_exemplars_total",
    Kind.COUNTER,
    "Exemplars left out because they are broken or their format has none; their samples count.",
    ("replica",),
)
REJECTED = Metric(
    "modelprobe_target_rejected_values_total",
    Kind.COUNTER,
    "Values left out, by what is wrong with them: `nan`, `infinite`, `negative`, `beyond`.",
    ("replica", "flaw"),
)
DROPPED = Metric(
    "modelprobe_target_dropped_series_total",
    Kind.COUNTER,
    "Series beyond what is kept of one exposition.",
    ("replica",),
)
SAMPLES = Metric(
    "modelprobe_target_exposed_samples",
    Kind.GAUGE,
    "Samples in the target's last exposition, wanted or not.",
    ("replica",),
)
INTERVAL = Metric(
    "modelprobe_target_scrape_interval_seconds",
    Kind.GAUGE,
    "Time between two scrapes now: longer than configured where a scrape takes long.",
    ("replica",),
)
METRICS = (
    *CANONICAL,
    INFO,
    GATEWAY_INFO,
    STATE,
    CLOCK,
    BAD_LINES,
    BAD_EXEMPLARS,
    REJECTED,
    DROPPED,
    SAMPLES,
    INTERVAL,
)
_SHARE = 0.1  # of the time that the target may spend on our scrapes
_LONGEST_SECONDS = 120.0


def from_settings(settings: Settings) -> Iterable[EngineCollector]:
    """One collector for each engine and gateway of the configuration."""
    known = (*declared_tables(settings.name_tables), *tables())
    return [
        EngineCollector(target, known, role)
        for role, targets in ((Role.ENGINE, settings.engines), (Role.GATEWAY, settings.gateways))
        for target in targets
    ]


class EngineCollector:
    """Polls one replica. ``clock`` is monotonic."""

    metrics = METRICS
    streamed = False

    def __init__(
        self,
        settings: TargetSettings,
        known: tuple[NameTable, ...] | None = None,
        role: Role = Role.ENGINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = f"{role}:{settings.name}"
        self.deadline_seconds = settings.deadline_seconds + 1  # our own deadline comes first
        self._settings = settings
        self._replica = settings.name
        self._clock = clock
        self._tables = tables() if known is None else known
        self._wanted = wanted(self._tables)
        self._telemetry = Telemetry(settings.name, self._tables)
        self._endpoint: Endpoint | None = None
        self._took = 0.0
        self._bad = self._exemplars = self._dropped = 0
        self._flaws: Counter[Bad] = Counter()

    @property
    def interval_seconds(self) -> float:
        """As configured, or ten times as long as a scrape takes: it costs the target time."""
        slowed = min(self._took / _SHARE, _LONGEST_SECONDS)
        return max(self._settings.interval_seconds, slowed)

    def open(self) -> None:
        """Makes a client; the first connection is made by the first collection."""
        url = self._settings.url + self._settings.metrics_path
        self._endpoint = Endpoint(url, self._settings.deadline_seconds)
        self._telemetry.gap()

    def collect(self, now: float) -> Iterable[Signal]:
        """The canonical signals of one scrape; NoData names what came instead."""
        if self._endpoint is None:
            raise RuntimeError("collect before open")
        started = self._clock()
        try:
            exposition = self._endpoint.get(self._wanted)
        finally:
            self._took = self._clock() - started
        translation, signals = self._telemetry.take(exposition, started)
        if not translation.samples:
            raise NoData(Absence.NO_SIGNAL, self._nothing(exposition, translation))
        return [*signals, *self._info(translation), *self._own(exposition, translation)]

    def close(self) -> None:
        """Closes the client; a request under way fails with an error of its own thread."""
        if self._endpoint is not None:
            self._endpoint.close()

    def _info(self, translation: Translation) -> Iterator[Sample]:
        for table in translation.tables:
            engine = table.role is Role.ENGINE
            label = ("engine" if engine else "gateway", table.engine)
            name = INFO.name if engine else GATEWAY_INFO.name
            yield Sample(name, 1.0, (label, ("replica", self._replica)))

    def _own(self, exposition: Exposition, translation: Translation) -> Iterator[Sample]:
        self._bad += exposition.bad
        self._exemplars += exposition.exemplars
        self._dropped += exposition.dropped + translation.folded
        self._flaws.update(translation.flaws)
        labels = (("replica", self._replica),)
        yield Sample(BAD_LINES.name, float(self._bad), labels)
        yield Sample(BAD_EXEMPLARS.name, float(self._exemplars), labels)
        yield Sample(DROPPED.name, float(self._dropped), labels)
        yield Sample(SAMPLES.name, float(exposition.samples), labels)
        yield Sample(INTERVAL.name, self.interval_seconds, labels)
        for flaw in Bad:
            yield Sample(REJECTED.name, float(self._flaws[flaw]), (*labels, ("flaw", flaw.value)))

    def _nothing(self, exposition: Exposition, translation: Translation) -> str:
        shown = self._endpoint.shown if self._endpoint else ""
        if not exposition.samples:
            return f"{shown} answers without a single metric"
        if translation.flaws:
            return f"{shown} has only values that are NaN, infinite or out of range"
        if translation.tables:
            titles = " and ".join(table.title for table in translation.tables)
            return f"{shown} is {titles}, but under none of the names that we know"
        prefixes = ", ".join(prefix for table in self._tables for prefix in table.prefixes)
        return f"{shown} has metrics but none that we know and that starts with {prefixes}"
