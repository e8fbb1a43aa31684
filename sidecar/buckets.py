"""Histograms under construction, and the bounds of those that we measure ourselves."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from sidecar.signals import Exemplar, Histogram, Labels, Metric

INF = float("inf")
# The OpenTelemetry GenAI boundaries for time to first token, and two more for hung prefills.
TTFT_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0),
    *(2.5, 5.0, 7.5, 10.0, 30.0, 60.0, INF),
)
# Finer than the convention's around 5-50 ms, where decode steps live.
ITL_BOUNDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05),
    *(0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, INF),
)
REQUEST_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, INF)


@dataclass(slots=True)
class Buckets:
    """A histogram under construction; counts here are per bucket, not cumulative."""

    bounds: tuple[float, ...]
    counts: list[int]
    exemplars: list[Exemplar | None]
    sum: float = 0.0

    @classmethod
    def of(cls, bounds: tuple[float, ...]) -> Buckets:
        """An empty one; the last bound must be +Inf."""
        return cls(bounds, [0] * len(bounds), [None] * len(bounds))

    def add(self, value: float, count: int = 1, trace_id: str | None = None, at: float = 0) -> None:
        """Counts a value ``count`` times; a trace id makes it the bucket's exemplar."""
        where = bisect_left(self.bounds, value)
        self.counts[where] += count
        self.sum += value * count
        if trace_id:
            self.exemplars[where] = Exemplar(trace_id, value, at)

    def view(self, metric: Metric, labels: Labels) -> Histogram:
        """The cumulative histogram as of now."""
        total, cumulative = 0, []
        for count in self.counts:
            total += count
            cumulative.append(total)
        exemplars = tuple(self.exemplars)
        return Histogram(metric.name, self.bounds, tuple(cumulative), self.sum, labels, exemplars)
