"""What is known at one moment: the immutable answer to everything that reads.

The pipeline's state thread makes them, a second apart; any thread may read the latest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sidecar.evaluation import Evaluation, Series
from sidecar.ledger import Span, Tally
from sidecar.legs.minute import JoinWindow
from sidecar.objectives import Score
from sidecar.recorder import Exceedances
from sidecar.signals import (
    CollectorStatus,
    Coverage,
    Event,
    Histogram,
    Labels,
    Leg,
    Observation,
    Sample,
)
from sidecar.streams import Stall
from sidecar.verdicts import Alarm
from sidecar.windows import LegWindow

WIRE_COLLECTOR = "probes"
TARGETS = ("engine:", "gateway:")  # collectors of what is also seen on the wire
SeriesKey = tuple[str, Labels]


@dataclass(frozen=True, slots=True)
class Plotted:
    """A metric that gets a history: the sum, or the mean, over its series with these labels.

    Counters are plotted as rates. ``key`` is its name in ``Snapshot.history``.
    """

    metric: str
    key: str = ""
    where: Labels = ()
    mean: bool = False

    def of(self, values: Mapping[SeriesKey, float]) -> float | None:
        """The point that these values make, None of none."""
        chosen = [
            value
            for (name, labels), value in values.items()
            if name == self.metric and set(self.where) <= set(labels)
        ]
        if not chosen:
            return None
        return sum(chosen) / (len(chosen) if self.mean else 1)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known at one moment. Readers share it freely; nothing in it changes.

    ``rates`` are per-second rates of counters between a collector's last two batches, absent
    after a reset. ``history`` maps a series (``downstream.ttft_p50``, or the key of a
    :class:`Plotted` metric) to ``(unix seconds, value)`` points, with None where nothing was
    measured, oldest first. ``spans`` are what the collector of a target and the wire counted in
    the same minute, by collector.
    """

    at: float
    started: float
    sequence: int = 0
    collectors: tuple[CollectorStatus, ...] = ()
    samples: tuple[Sample | Histogram, ...] = ()
    rates: Mapping[SeriesKey, float] = field(default_factory=lambda: MappingProxyType({}))
    windows: tuple[LegWindow, ...] = ()  # the last minute, by leg
    totals: tuple[LegWindow, ...] = ()  # since the start, by leg
    history: Mapping[str, tuple[tuple[float, float | None], ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    legs: tuple[Leg, ...] = ()  # that the tap watches, as far as it has said
    joins: JoinWindow | None = None  # the last minute; None: not both legs are seen
    events: tuple[Event, ...] = ()  # the latest, oldest first
    observations: tuple[Observation, ...] = ()  # as they hold now
    alarms: tuple[Alarm, ...] = ()
    scores: Mapping[str, Score] = field(default_factory=lambda: MappingProxyType({}))
    tallies: Mapping[Leg, Tally] | None = None  # of the wire since the start; None: tap blind
    stalls: Mapping[Leg, Stall] | None = None  # open streams that stand still; None: tap blind
    evaluations: tuple[Evaluation, ...] = ()  # of latencies against earlier days
    coverage: tuple[Coverage, ...] = ()  # of the kernel probes, by probe and process
    exceedances: Mapping[Series, Exceedances] = field(default_factory=lambda: MappingProxyType({}))
    spans: Mapping[str, Span] = field(default_factory=lambda: MappingProxyType({}))
    capped: int = 0  # signals folded into `other` or dropped by a cap since the start
    _index: dict[str, list[Sample | Histogram]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def by_metric(self) -> Mapping[str, list[Sample | Histogram]]:
        """The samples by metric, in their order; made once, as many ask for a few of them."""
        if not self._index and self.samples:
            made: dict[str, list[Sample | Histogram]] = {}
            for sample in self.samples:
                made.setdefault(sample.metric, []).append(sample)
            self._index.update(made)
        return self._index

    def observed(self, observations: tuple[Observation, ...]) -> Snapshot:
        """The same with other observations; what was made of the samples is kept."""
        return replace(self, observations=observations).indexed_as(self)

    def indexed_as(self, other: Snapshot) -> Snapshot:
        """Itself, with the index of one that has the same samples."""
        self._index.update(other.by_metric())
        return self

    def scalars(self, *metrics: str) -> Iterator[Sample]:
        """The counters and gauges of these metrics."""
        index = self.by_metric()
        for metric in metrics:
            for sample in index.get(metric, ()):
                if isinstance(sample, Sample):
                    yield sample

    def collector(self, name: str) -> CollectorStatus | None:
        """The status of one collector, None if there is none of that name."""
        return next((status for status in self.collectors if status.name == name), None)
