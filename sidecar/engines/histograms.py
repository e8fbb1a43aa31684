"""Puts a histogram together from its series, and takes from one what it can say for certain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

from sidecar.engines.table import Name
from sidecar.signals import Histogram, Labels


@dataclass(slots=True)
class Parts:
    """The series of one histogram, before they are known to fit together."""

    buckets: dict[float, float] = field(default_factory=dict)
    sum: float | None = None
    count: float | None = None

    def add(self, ending: str, le: str | None, value: float) -> None:
        """Takes in a value of ``_bucket`` (with its bound), ``_sum`` or ``_count``."""
        if ending == "bucket":
            bound = _bound(le)
            if bound is not None:
                self.buckets[bound] = self.buckets.get(bound, 0.0) + value
        elif ending == "sum":
            self.sum = (self.sum or 0.0) + value
        else:
            self.count = (self.count or 0.0) + value

    @property
    def observations(self) -> float:
        """How many there were."""
        return self.buckets.get(math.inf, self.count or 0.0)


def _bound(le: str | None) -> float | None:
    try:
        bound = float(le or "")
    except ValueError:
        return None
    return bound if bound >= 0 else None  # nor NaN: of times and counts


def build(name: Name, labels: Labels, parts: Parts) -> Histogram | None:
    """The histogram in base units with its bounds as found, None when its parts contradict each
    other (a bound that counts fewer than a lower one) or the sum or the number is missing.

    A summary, or a pair of counters, has one bucket: its sum and number are good and it says
    nothing of quantiles.
    """
    if parts.sum is None or (parts.count is None and math.inf not in parts.buckets):
        return None
    buckets = {**parts.buckets}
    buckets.setdefault(math.inf, parts.count or 0.0)
    bounds = sorted(buckets)
    counts = tuple(round(buckets[bound]) for bound in bounds)
    if any(later < earlier for earlier, later in pairwise(counts)):
        return None
    scaled = tuple(bound * name.scale for bound in bounds)
    return Histogram(name.metric.name, scaled, counts, parts.sum * name.scale, labels)


def difference(later: Histogram, earlier: Histogram) -> Histogram | None:
    """What was observed in between; None after a reset or a change of bounds."""
    if later.bounds != earlier.bounds or later.sum < earlier.sum:
        return None
    counts = tuple(a - b for a, b in zip(later.counts, earlier.counts, strict=True))
    if any(count < 0 for count in counts) or any(b < a for a, b in pairwise(counts)):
        return None
    return Histogram(later.metric, later.bounds, counts, later.sum - earlier.sum, later.labels)


def quantile(histogram: Histogram, q: float) -> tuple[float, float] | None:
    """Between which bounds the quantile lies; the upper one is infinite when it is in the last
    bucket. None of no observations, or of a histogram of one bucket.
    """
    total = histogram.counts[-1]
    if not total or len(histogram.bounds) < 2:
        return None
    rank = max(1, math.ceil(q * total))
    for index, count in enumerate(histogram.counts):
        if count >= rank:
            return (histogram.bounds[index - 1] if index else 0.0), histogram.bounds[index]
    return None


def together(histograms: list[Histogram]) -> Histogram | None:
    """One of several with equal bounds, without labels; None where the bounds differ."""
    first = histograms[0]
    if any(histogram.bounds != first.bounds for histogram in histograms):
        return None
    counts = tuple(sum(column) for column in zip(*(h.counts for h in histograms), strict=True))
    return Histogram(first.metric, first.bounds, counts, sum(h.sum for h in histograms))
