"""Ratios of interleaved pairs: the order of each pair, and the mean ratio with its 95 % interval.

A fifth of the pairs is set aside at either end (Yuen 1974): what other programs do to a machine for
a moment falls on one side of a pair and is not the tap's. What the tap does is in every pair.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from scipy import stats

_SET_ASIDE = 0.2  # of the pairs, at either end
_LEAST = 5  # pairs, below which there is no interval


@dataclass(frozen=True, slots=True)
class Ratio:
    """``point`` of ``n`` pairs between ``lower`` and ``upper``; these are infinitely far apart
    where the pairs are too few to say.
    """

    point: float
    lower: float
    upper: float
    n: int

    @property
    def half_width(self) -> float:
        """Of the interval, in the ratio's own unit."""
        return (self.upper - self.lower) / 2


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """First over second. The mean is of logarithms, so that neither side is favoured; raises
    ValueError without a pair, or with one that holds something else than positive numbers.
    """
    if not pairs or not all(0 < one < math.inf for pair in pairs for one in pair):
        raise ValueError("a ratio wants pairs of positive numbers, and at least one pair")
    logs = sorted(math.log(one / other) for one, other in pairs)
    n, cut = len(logs), int(_SET_ASIDE * len(logs))
    mean = statistics.fmean(logs[cut : n - cut])
    if n < _LEAST:
        return Ratio(math.exp(mean), 0.0, math.inf, n)
    half = _half_width(logs, cut)
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n)


def _half_width(logs: list[float], cut: int) -> float:
    """Of the interval of a trimmed mean: Student's t on what is kept, with the spread of all when
    those at the ends are drawn in to the last that is kept (Tukey and McLaughlin 1963).
    """
    n, kept = len(logs), len(logs) - 2 * cut
    drawn_in = [min(max(one, logs[cut]), logs[n - cut - 1]) for one in logs]
    spread = sum((one - statistics.fmean(drawn_in)) ** 2 for one in drawn_in)
    error = math.sqrt(spread / (kept * (kept - 1)))
    return float(stats.t.ppf(0.975, kept - 1)) * error


def orders(rng: random.Random) -> Iterator[tuple[bool, bool]]:
    """For each pair, whether its first and its second half is the one with the tap: in turn the
    one and the other order (ABBA), so that a drift cancels out, from a start by chance.
    """
    first = rng.random() < 0.5
    while True:
        yield first, not first
        first = not first


def shams(halves: Sequence[tuple[bool, float]]) -> list[tuple[float, float]]:
    """Pairs of two halves in a row that are both without the tap (or both with it), later over
    earlier: their ratio should be 1, and shows what the method alone would find.
    """
    return [(two, one) for (a, one), (b, two) in pairwise(halves) if a == b]
