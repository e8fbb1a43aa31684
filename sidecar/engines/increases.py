"""How much counters and histograms grew in the last minute, over resets and without gaps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from sidecar.engines.histograms import difference
from sidecar.signals import Histogram, Labels, Sample

Key = tuple[str, Labels]
WINDOW_SECONDS = 60.0


class Increases:
    """Remembers each series for ``seconds``; after a reset a series starts anew.

    ``at`` are monotonic seconds. Bounded: a series that is absent from a scrape is forgotten.
    """

    def __init__(self, seconds: float = WINDOW_SECONDS) -> None:
        self._seconds = seconds
        self._points: dict[Key, deque[tuple[float, float | Histogram]]] = {}

    def note(self, samples: list[Sample | Histogram], at: float) -> int:
        """Takes in one scrape; how many series went back, as they do when a process restarts."""
        resets = 0
        current: dict[Key, deque[tuple[float, float | Histogram]]] = {}
        for sample in samples:
            if isinstance(sample, Sample) and not sample.metric.endswith("_total"):
                continue
            value = sample if isinstance(sample, Histogram) else sample.value
            key = (sample.metric, sample.labels)
            points = self._points.get(key) or deque()
            if points and _increase(value, points[-1][1]) is None:
                resets += 1
                points = deque()
            points.append((at, value))
            while len(points) > 1 and points[1][0] <= at - self._seconds:
                points.popleft()
            current[key] = points
        self._points = current
        return resets

    def forget(self) -> None:
        """Starts anew, as after a gap."""
        self._points.clear()

    def counters(self) -> Iterator[tuple[Key, float]]:
        """How much each counter grew; none where there are not two points yet."""
        for key, points in self._points.items():
            grown = _increase(points[-1][1], points[0][1]) if len(points) > 1 else None
            if grown is not None and not isinstance(grown, Histogram):
                yield key, grown

    def histograms(self) -> Iterator[tuple[Key, Histogram]]:
        """What each histogram observed."""
        for key, points in self._points.items():
            grown = _increase(points[-1][1], points[0][1]) if len(points) > 1 else None
            if isinstance(grown, Histogram):
                yield key, grown


def _increase(later: float | Histogram, earlier: float | Histogram) -> float | Histogram | None:
    if isinstance(later, Histogram):
        return difference(later, earlier) if isinstance(earlier, Histogram) else None
    if isinstance(earlier, Histogram) or later < earlier:
        return None
    return later - earlier
