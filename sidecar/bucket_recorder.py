"""Records what engines' own histograms of latencies counted, in the same slots as the wire's.

Where no tap sees the requests there is nothing else. What came between two scrapes counts in the
slot of the later one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from sidecar.bucketed import Bucketed, Step, between
from sidecar.evaluation import ENGINE, Series
from sidecar.record import SLOT_SECONDS
from sidecar.recorder import MAX_SERIES, OTHER
from sidecar.signals import Histogram, Kind, Labels, Metric, Sample

SIGNALS: Mapping[str, str] = {
    "modelprobe_engine_time_to_first_token_seconds": "ttft",
    "modelprobe_engine_inter_token_latency_seconds": "itl",
    "modelprobe_engine_request_duration_seconds": "duration",
}
BREAKS = Metric(
    "modelprobe_drift_histogram_breaks_total",
    Kind.COUNTER,
    "Times that a latency histogram of an engine did not go on where it had been, by why: `reset` "
    "(counted from there), `bounds_changed`, `sum_backwards`, `gap` (counted anew), `unsound` "
    "(left out).",
    ("reason",),
)
METRICS = (BREAKS,)
GAP = "gap"
_REASONS = (*(step.value for step in Step if step is not Step.GREW), GAP)
_LONGEST_SECONDS = SLOT_SECONDS  # without a scrape; what came since belongs to no slot
_NO_LATENCY = "running_mean"  # an ITL of old engines that is a mean over the request so far
_Key = tuple[str, Labels]


class BucketRecorder:
    """The open slot of all engines. One thread owns it; ``at`` are monotonic seconds.

    Ranks of an engine are added up. Series beyond ``max_series`` share one a signal, ``other``.
    """

    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max = max_series
        self._last: dict[_Key, tuple[float, Histogram]] = {}
        self._open: dict[Series, Bucketed] = {}
        self._placed: set[Series] = set()
        self.breaks: Counter[str] = Counter()

    def note(self, samples: Iterable[Sample | Histogram], at: float) -> None:
        """Takes in the scrape of one engine; of a histogram that is new only what comes next
        counts.
        """
        for one in samples:
            if not isinstance(one, Histogram) or one.metric not in SIGNALS:
                continue
            if dict(one.labels).get("definition") == _NO_LATENCY:
                continue
            stretch = self._grown(one, at)
            if stretch is not None and stretch.n:
                series = self._place(_series(one))
                before = self._open.get(series)
                self._open[series] = stretch if before is None else before.merge(stretch)

    def _grown(self, later: Histogram, at: float) -> Bucketed | None:
        key = (later.metric, later.labels)
        last = self._last.get(key)
        if last is None:
            self._last[key] = (at, later)
            return None
        step, stretch = between(last[1], later)
        if step is not Step.UNSOUND:
            self._last[key] = (at, later)
        if at - last[0] > _LONGEST_SECONDS:
            self.breaks[GAP] += 1
            return None
        if step is not Step.GREW:
            self.breaks[step] += 1
        return stretch

    def _place(self, series: Series) -> Series:
        if series not in self._placed:
            if len(self._placed) >= self._max:
                return Series(series.signal, series.leg, OTHER)
            self._placed.add(series)
        return series

    def take(self, at: float) -> Mapping[Series, Bucketed]:
        """What the slot held that ends now; the next one begins."""
        found, self._open = self._open, {}
        self._placed = {series for series in found if series.server != OTHER}
        since = at - 2 * _LONGEST_SECONDS  # those of engines that are gone are let go of
        self._last = {key: one for key, one in self._last.items() if one[0] > since}
        return found

    def signals(self) -> Iterator[Sample]:
        """The samples of :data:`METRICS`; none before the first histogram."""
        if self._last or self.breaks:
            for reason in _REASONS:
                yield Sample(BREAKS.name, float(self.breaks[reason]), (("reason", reason),))


def _series(histogram: Histogram) -> Series:
    labels = dict(histogram.labels)
    replica, model = labels.get("replica", ""), labels.get("model")
    server = f"{replica}/{model}" if model else replica
    return Series(SIGNALS[histogram.metric], ENGINE, server)
