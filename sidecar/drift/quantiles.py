"""Quantiles of histograms, how sure they are, and their difference."""

from __future__ import annotations

import math

from sidecar import loghist
from sidecar.drift.stretch import Floats
from sidecar.evaluation import Change
from sidecar.loghist import CELLS, OVER

_MIDDLES = tuple(loghist.middle(cell) for cell in range(CELLS))
Between = tuple[float, float, float]  # the quantile, its lower and its upper bound, in seconds


def cell_of(cumulative: Floats, quantile: float) -> int:
    """The cell of the smallest duration that a share of ``quantile`` does not exceed; above the
    range from 1 on. ``cumulative`` (CELLS,) are counts up to and with each cell, not all 0.
    """
    if quantile >= 1:
        return OVER
    wanted = quantile * float(cumulative[-1]) * (1 - 1e-12)  # weighted sums are not quite exact
    return min(OVER, int(cumulative.searchsorted(wanted)))


def seconds_of(cumulative: Floats, quantile: float) -> float:
    """The same in seconds, within 0.5 %."""
    return _MIDDLES[cell_of(cumulative, quantile)]


def between(cumulative: Floats, quantile: float, size: float, reach: float) -> Between:
    """A quantile from ``size`` independent requests, between the order statistics whose ranks are
    ``reach`` standard deviations of a binomial count away.
    """
    half = reach * math.sqrt(quantile * (1 - quantile) / size)
    lower, upper = max(0.0, quantile - half), quantile + half
    return (
        seconds_of(cumulative, quantile),
        seconds_of(cumulative, lower),
        seconds_of(cumulative, upper),
    )


def change(now: Between, then: Between, guard: float) -> Change:
    """Their difference, with an interval that joins theirs (Zou and Donner, "Construction of
    confidence limits about effect measures", Statistics in Medicine 27, 2008).
    """
    value = now[0] - then[0]
    return Change(
        value=value,
        lower=value - math.hypot(now[0] - now[1], then[2] - then[0]),
        upper=value + math.hypot(now[2] - now[0], then[0] - then[1]),
        guard=guard,
    )
