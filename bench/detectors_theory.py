"""What the two rules on token rates do when mean, σ and the independence of minutes are known.

Exact delays after a step or a ramp, by what the charts are and not by the code that ships: the
published figures for steps, and for ramps what would have been published.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

LAMBDA, LIMIT = 0.2, 4.19
BAND, ROW = 2.5, 3
_NODES = 101
_OVER = 1e-9  # the share of faults that may still be unseen


def shifts(sigmas: float, minutes: int) -> Iterator[float]:
    """By how many σ each minute lies lower, for ever: at once, or evenly over ``minutes``."""
    for minute in itertools.count(1):
        yield sigmas * min(1.0, minute / minutes) if minutes else sigmas


@cache
def chart(sigmas: float, minutes: int = 0) -> float:
    """The mean delay of the two-sided EWMA chart, in minutes, when the fault finds it at zero.

    The density of the average among faults that are not seen yet is carried from minute to minute
    on the nodes of a Gauss-Legendre quadrature; what is left of it is the chance of a longer delay.
    """
    edge = LIMIT * math.sqrt(LAMBDA / (2 - LAMBDA))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    y, weights = edge * nodes, edge * weights
    kept = (1 - LAMBDA) * y  # of each average, a minute later
    start: NDArray[np.float64] | None = None
    delay = 1.0
    for shift in shifts(sigmas, minutes):
        if start is None:
            density = _normal(y / LAMBDA - shift) / LAMBDA
        else:
            density = _normal((y[:, None] - kept) / LAMBDA - shift) @ start / LAMBDA
        start = density * weights
        unseen = float(start.sum())
        delay += unseen
        if unseen < _OVER:
            break
    return delay


@cache
def band(sigmas: float, minutes: int = 0) -> float:
    """The mean delay of three minutes in a row outside the band, when none was outside before."""
    rows, delay = [1.0] + [0.0] * (ROW - 1), 1.0  # by how many minutes in a row lie outside
    for shift in shifts(sigmas, minutes):
        out = _tail(BAND - shift) + _tail(BAND + shift)
        rows = [(1 - out) * sum(rows)] + [out * row for row in rows[:-1]]
        delay += sum(rows)
        if sum(rows) < _OVER:
            break
    return delay


def _normal(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))


def _tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))
