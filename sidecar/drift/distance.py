"""The distance of Kolmogorov and Smirnov between two histograms, and how far off it can be.

A histogram has lost the order within a cell, so the distance of the durations themselves lies
between two bounds. Both are certain, and so is the decision unless the critical value is between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.drift.smirnov import one_sided, two_sided
from sidecar.loghist import LogHist

ALPHA = 0.01


@dataclass(frozen=True, slots=True)
class Distance:
    """``d <= D <= d_upper`` for the D of the ``n`` and ``m`` durations themselves, those above the
    range taken as equal: they never came to their end.

    ``p`` is that of ``d`` and ``differs`` whether it is below alpha. ``certain`` is False where D
    may be on the other side of the critical value than ``d``.
    """

    n: int
    m: int
    d: float
    d_upper: float
    p: float
    differs: bool
    certain: bool


def ks(
    current: LogHist, baseline: LogHist, *, alpha: float = ALPHA, slower_only: bool = False
) -> Distance | None:
    """The two-sample distance, of current durations that are longer only if ``slower_only``; None
    where one of the two holds nothing.
    """
    return ks_counts(current.view(), baseline.view(), alpha=alpha, slower_only=slower_only)


def ks_counts(
    current: NDArray[np.int64],
    baseline: NDArray[np.int64],
    *,
    alpha: float = ALPHA,
    slower_only: bool = False,
) -> Distance | None:
    """The same of counts by cell, the last of which is above the range. None is negative."""
    # As floats, which a sum cannot wrap around, and exact below 2**53.
    a, b = current.astype(np.float64).cumsum(), baseline.astype(np.float64).cumsum()
    n, m = float(a[-1]), float(b[-1])
    if not (n and m):
        return None
    a /= n
    b /= m
    # At an edge x both counts below x are known, so max |A - B| over edges is reached: d <= D.
    # Within cell i, A rises from A[i-1] to A[i] and B from B[i-1] to B[i], so for every x in it
    # B(x) - A(x) <= B[i] - A[i-1], and the other way round: D is at most the larger maximum.
    d, d_upper = _to_one_side(b, a)
    if not slower_only:
        other = _to_one_side(a, b)
        d, d_upper = max(d, other[0]), max(d_upper, other[1])
    chance = one_sided if slower_only else two_sided
    p = chance(int(n), int(m), d)
    differs = p < alpha
    certain = differs or chance(int(n), int(m), d_upper) >= alpha  # p falls as D grows
    return Distance(int(n), int(m), d, d_upper, p, differs, certain)


def _to_one_side(high: NDArray[np.float64], low: NDArray[np.float64]) -> tuple[float, float]:
    """Bounds of the largest excess of one distribution function over another, from their values at
    the upper ends of cells.
    """
    inside = float((high[1:-1] - low[:-2]).max())  # the last cell holds equal values: no inside
    return max(0.0, float((high - low).max())), max(float(high[0]), inside)
