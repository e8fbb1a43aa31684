"""One stretch of time of somebody else's histogram: what its buckets say for certain, and no more.

A bucket keeps how many durations lay between two bounds and not where. So counts above a bound are
exact, a quantile is an interval between two bounds, and so is the mean of a tail. Interpolating
within a bucket, as is usual, invents the rest: on the buckets of engines a P99 that rose by 150 ms
reads as anything from 14 to 269 ms more.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise

from sidecar.signals import Histogram

_ROUNDING = 1e-9  # of a rank, which is a product of floats


@dataclass(frozen=True, slots=True)
class Interval:
    """Above ``lower`` (or 0, where that is the lower end), and at most ``upper``; in seconds."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Bucketed:
    """``counts[i]`` durations were above ``bounds[i - 1]`` (or 0) and at most ``bounds[i]``;
    ``counts[-1]`` were above the last bound. ``bounds`` are finite, ascending seconds, none for a
    summary; ``sum`` is that of all durations.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    def __post_init__(self) -> None:
        """Raises ValueError for what cannot have been counted."""
        if len(self.counts) != len(self.bounds) + 1 or min(self.counts) < 0:
            raise ValueError("a bucket of each bound and one above, none negative")
        ascending = all(a < b for a, b in pairwise((*self.bounds, math.inf)))
        if not (ascending and all(bound >= 0 for bound in self.bounds[:1])):
            raise ValueError("bounds have to be finite and ascending")
        if not 0 <= self.sum < math.inf:
            raise ValueError(f"no sum of durations: {self.sum}")

    @classmethod
    def of(cls, histogram: Histogram) -> Bucketed:
        """All that a cumulative histogram has counted. Raises ValueError where a bound counts fewer
        than a lower one, the last bound is not +Inf, or the sum is none.
        """
        if not histogram.bounds or histogram.bounds[-1] != math.inf:
            raise ValueError("the last bound is not +Inf")
        counts = tuple(b - a for a, b in pairwise((0, *histogram.counts)))
        return cls(histogram.bounds[:-1], counts, histogram.sum)

    @property
    def n(self) -> int:
        """How many durations."""
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        """Exact; None of none."""
        return self.sum / self.n if self.n else None

    def above(self, bound: float) -> int:
        """How many durations were above it, exactly. ValueError where it is none of the bounds."""
        return sum(self.counts[self._index(bound) + 1 :])

    def quantile(self, q: float) -> Interval | None:
        """Where the smallest duration lies that a share of ``q`` does not exceed; None of none.
        Without an upper end (+Inf) it is above the last bound.
        """
        if not self.n:
            return None
        rank = min(self.n, max(1, math.ceil(q * self.n - _ROUNDING)))
        return self._interval(bisect_left(list(accumulate(self.counts)), rank))

    def tail_mean(self, bound: float) -> Interval | None:
        """Where the mean of all durations above a bound lies; None of none, and where the sum
        contradicts the counts. ValueError where it is none of the bounds.

        The sum less the least, and the most, that the durations below can have come to; within what
        the buckets above allow themselves.
        """
        first = self._index(bound) + 1
        below, above = self._reach(range(first)), self._reach(range(first, len(self.counts)))
        n = sum(self.counts[first:])
        lower = max(above.lower, self.sum - below.upper)
        upper = min(above.upper, self.sum - below.lower)
        slack = _ROUNDING * self.sum  # sums are floats that grew over weeks
        return Interval(lower / n, max(lower, upper) / n) if n and upper >= lower - slack else None

    def on(self, bounds: Iterable[float]) -> Bucketed:
        """The same with those of its bounds alone that are among these: coarser and still exact."""
        wanted = frozenset(bounds)
        kept, counts, held = [], [], 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            held += count
            if bound in wanted:
                kept.append(bound)
                counts.append(held)
                held = 0
        return Bucketed(tuple(kept), (*counts, held + self.counts[-1]), self.sum)

    def merge(self, other: Bucketed) -> Bucketed:
        """Both together, on the bounds that both have."""
        mine, theirs = (self, other) if self.bounds == other.bounds else self._common(other)
        counts = tuple(map(int.__add__, mine.counts, theirs.counts))
        return Bucketed(mine.bounds, counts, mine.sum + theirs.sum)

    def _common(self, other: Bucketed) -> tuple[Bucketed, Bucketed]:
        return self.on(other.bounds), other.on(self.bounds)

    def _index(self, bound: float) -> int:
        index = bisect_left(self.bounds, bound)
        if index == len(self.bounds) or self.bounds[index] != bound:
            raise ValueError(f"{bound} is none of the bounds")
        return index

    def _interval(self, index: int) -> Interval:
        lower = self.bounds[index - 1] if index else 0.0
        return Interval(lower, self.bounds[index] if index < len(self.bounds) else math.inf)

    def _reach(self, buckets: range) -> Interval:
        """The least and the most that the durations of some buckets can sum up to."""
        filled = [(self.counts[i], self._interval(i)) for i in buckets if self.counts[i]]
        least = sum(n * at.lower for n, at in filled)
        return Interval(least, sum(n * at.upper for n, at in filled))


def merged(stretches: Iterable[Bucketed]) -> Bucketed | None:
    """All of them together, on the bounds that all have; None of none."""
    total: Bucketed | None = None
    for one in stretches:
        total = one if total is None else total.merge(one)
    return total


class Step(StrEnum):
    """What became of a cumulative histogram from one scrape to the next."""

    GREW = "grew"
    RESET = "reset"  # its process began anew: what it shows came since
    REBOUNDED = "bounds_changed"  # a new start: what it shows may be older
    BACKWARDS = "sum_backwards"  # refused, and a new start: no count fell and the sum did
    UNSOUND = "unsound"  # refused: it contradicts itself; what was before still holds


def between(earlier: Histogram, later: Histogram) -> tuple[Step, Bucketed | None]:
    """What was observed from one scrape of a histogram to a later one; None unless it grew or was
    reset. A reset is seen by a bucket that holds fewer than before, so by any but the first
    moments of a new process; what came between the earlier scrape and the reset is lost.
    """
    try:
        after, before = Bucketed.of(later), Bucketed.of(earlier)
    except ValueError:
        return Step.UNSOUND, None
    if after.bounds != before.bounds:
        return Step.REBOUNDED, None
    counts = tuple(b - a for a, b in zip(before.counts, after.counts, strict=True))
    if min(counts) < 0:
        return Step.RESET, after
    if after.sum < before.sum:
        return Step.BACKWARDS, None
    return Step.GREW, Bucketed(after.bounds, counts, after.sum - before.sum)
