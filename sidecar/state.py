"""The one owner of what is known: takes in signals, gives out immutable snapshots.

Only the pipeline's state thread calls it. Values of a collector are its latest batch, withdrawn
when it goes blind: an old number is worse than none.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sidecar.bucket_recorder import BucketRecorder
from sidecar.evaluation import ENGINE, Evaluation
from sidecar.ledger import Ledger, Span
from sidecar.loghist import cell
from sidecar.objectives import Objective
from sidecar.recorder import MAX_SERIES, Slot
from sidecar.signals import (
    CollectorState,
    CollectorStatus,
    Coverage,
    Event,
    Histogram,
    Leg,
    Observation,
    OpenRequests,
    RequestTiming,
    Sample,
    Signal,
)
from sidecar.snapshot import TARGETS, WIRE_COLLECTOR, Plotted, SeriesKey, Snapshot
from sidecar.traffic import Traffic

HISTORY_SECONDS = 300
_EVENTS = 200
_OBSERVATIONS = 100  # of one collector


@dataclass(slots=True)
class _Batch:
    at: float
    samples: dict[SeriesKey, Sample | Histogram]
    rates: dict[SeriesKey, float]
    observations: tuple[Observation, ...]
    evaluations: tuple[Evaluation, ...] = ()
    coverage: tuple[Coverage, ...] = ()


class State:
    """Accumulates signals.

    ``started`` is Unix time, ``clock`` the monotonic time of the same moment (by default the same
    number). ``plotted`` names the metrics that get a history beside the wire's. ``slots`` takes
    each slot of latencies when it ends, of ``max_series``, and must not wait.
    """

    def __init__(
        self,
        started: float,
        plotted: tuple[Plotted, ...] = (),
        max_label_sets: int = 1_000,
        clock: float | None = None,
        objectives: tuple[Objective, ...] = (),
        slots: Callable[[Slot], None] | None = None,
        max_series: int = MAX_SERIES,
    ) -> None:
        self._slots = slots
        self._started = started
        self._since = started if clock is None else clock
        self._plotted = plotted
        self._levels = {p.metric for p in plotted if not p.metric.endswith("_total")}
        self._max = max_label_sets
        self._traffic = Traffic(
            min(max_label_sets, 50), objectives=objectives, max_series=max_series
        )
        self._batches: dict[str, _Batch] = {}
        self._history: dict[str, deque[tuple[float, float | None]]] = {}
        self._events: deque[Event] = deque(maxlen=_EVENTS)
        self._ledgers: dict[str, Ledger] = {}
        self._buckets = BucketRecorder()
        self._sequence = 0
        self._capped = 0

    def apply(self, collector: str, signals: Iterable[Signal], at: float) -> None:
        """Takes in one batch: timings add up, samples replace the collector's earlier ones.

        ``at`` is a monotonic time, the same clock as that of :meth:`snapshot`.
        """
        if collector == WIRE_COLLECTOR:
            self._traffic.watch(at)
        series: list[Sample | Histogram] = []
        observations: list[Observation] = []
        evaluations: list[Evaluation] = []
        coverage: list[Coverage] = []
        for signal in signals:
            if isinstance(signal, Sample | Histogram):  # nearly all are
                series.append(signal)
            elif isinstance(signal, Observation):
                observations.append(signal)
            elif isinstance(signal, Evaluation):
                evaluations.append(signal)
            elif isinstance(signal, Coverage):
                coverage.append(signal)
            else:
                self._note(signal, at)
        samples = {(one.metric, one.labels): one for one in self._within_cap(series)}
        if collector.startswith(TARGETS):
            counters = dict(_counters(samples))
            ledger = self._ledgers.setdefault(collector, Ledger())
            ledger.note(at, counters, self._traffic.tallies())
            self._buckets.note(samples.values(), at)
        rates = _rates(self._batches.get(collector), samples, at)
        if evaluations:
            self._watch_thresholds(evaluations)
        told = tuple(observations[:_OBSERVATIONS])
        self._batches[collector] = _Batch(
            at, samples, rates, told, tuple(evaluations), tuple(coverage)
        )

    def _note(self, signal: RequestTiming | OpenRequests | Event, at: float) -> None:
        if isinstance(signal, RequestTiming):
            self._traffic.add(signal, at)
        elif isinstance(signal, OpenRequests):
            self._traffic.set_open(signal, at)
        else:
            self._events.append(signal)

    def _watch_thresholds(self, evaluations: list[Evaluation]) -> None:
        """Between evaluations, what lies above their thresholds is counted request by request."""
        self._traffic.recorder.watch(
            {
                one.series: cell(one.tail.threshold)
                for one in evaluations
                if one.tail is not None and one.series.leg != ENGINE  # no request of that is seen
            }
        )

    def _within_cap(self, series: list[Sample | Histogram]) -> list[Sample | Histogram]:
        if len(series) <= self._max:
            return series
        sets: Counter[str] = Counter()
        kept = []
        for one in series:
            sets[one.metric] += 1
            if sets[one.metric] <= self._max:
                kept.append(one)
        self._capped += len(series) - len(kept)
        return kept

    def withdraw(self, collector: str) -> None:
        """Forgets a blind collector's values; counted requests stay, they did happen."""
        self._batches.pop(collector, None)
        self._ledgers.pop(collector, None)
        if collector == WIRE_COLLECTOR:
            self._traffic.lose()

    def snapshot(
        self, statuses: tuple[CollectorStatus, ...], now: float, clock: float | None = None
    ) -> Snapshot:
        """An immutable view of now; also adds one point to every history.

        ``now`` is Unix time, ``clock`` the monotonic one (by default the same).
        """
        clock = now if clock is None else clock
        slot = self._traffic.roll(now, clock)
        if slot is not None:
            slot = replace(slot, buckets=self._buckets.take(clock))
            if self._slots is not None:
                self._slots(slot)
        windows = tuple(self._traffic.window(leg, clock) for leg in Leg)
        joins = self._traffic.settle(clock)
        samples = [s for batch in self._batches.values() for s in batch.samples.values()]
        samples.extend(self._traffic.signals(windows, joins))
        samples.extend(self._buckets.signals())
        rates = {key: r for batch in self._batches.values() for key, r in batch.rates.items()}
        self._remember(now, clock, statuses, samples, rates)
        self._sequence += 1
        return Snapshot(
            at=now,
            started=self._started,
            sequence=self._sequence,
            collectors=statuses,
            samples=tuple(samples),
            rates=MappingProxyType(rates),
            windows=windows,
            totals=tuple(self._traffic.total(leg, clock, clock - self._since) for leg in Leg),
            history=MappingProxyType({key: tuple(points) for key, points in self._history.items()}),
            legs=self._traffic.legs(),
            joins=joins,
            events=tuple(self._events),
            observations=tuple(o for batch in self._batches.values() for o in batch.observations),
            scores=self._traffic.scores.read(),
            tallies=self._traffic.tallies(),
            stalls=self._traffic.stalls(clock),
            evaluations=tuple(e for batch in self._batches.values() for e in batch.evaluations),
            coverage=tuple(c for batch in self._batches.values() for c in batch.coverage),
            exceedances=self._traffic.recorder.exceedances(),
            spans=self._spans(),
            capped=self._capped + self._traffic.folded,
        )

    def _spans(self) -> Mapping[str, Span]:
        spans = ((name, ledger.span()) for name, ledger in self._ledgers.items())
        return MappingProxyType({name: span for name, span in spans if span is not None})

    def _remember(
        self,
        now: float,
        clock: float,
        statuses: tuple[CollectorStatus, ...],
        samples: list[Sample | Histogram],
        rates: dict[SeriesKey, float],
    ) -> None:
        blind = any(s.name == WIRE_COLLECTOR and s.state is CollectorState.BLIND for s in statuses)
        for leg in Leg:
            window = self._traffic.window(leg, clock, seconds=10)
            for name in ("ttft_p50", "ttft_p99", "itl_p50", "itl_p99", "token_events_per_second"):
                self._point(f"{leg}.{name}", now, None if blind else getattr(window, name))
            self._point(f"{leg}.open", now, None if blind else window.open_requests)
        levels = {
            (s.metric, s.labels): s.value
            for s in samples
            if s.metric in self._levels and isinstance(s, Sample)
        }
        for plotted in self._plotted:
            values = rates if plotted.metric.endswith("_total") else levels
            self._point(plotted.key or plotted.metric, now, plotted.of(values))

    def _point(self, key: str, now: float, value: float | None) -> None:
        points = self._history.setdefault(key, deque(maxlen=HISTORY_SECONDS))
        points.append((now, value))


def _rates(
    before: _Batch | None, samples: dict[SeriesKey, Sample | Histogram], at: float
) -> dict[SeriesKey, float]:
    if before is None or at <= before.at:
        return {}
    rates, seconds, old = {}, at - before.at, before.samples
    for key, value in _counters(samples):
        earlier = old.get(key)
        if isinstance(earlier, Sample) and value >= earlier.value:
            rates[key] = (value - earlier.value) / seconds
    return rates


def _counters(samples: Mapping[SeriesKey, Sample | Histogram]) -> Iterator[tuple[SeriesKey, float]]:
    for key, sample in samples.items():
        if key[0].endswith("_total") and isinstance(sample, Sample):
            yield key, sample.value
