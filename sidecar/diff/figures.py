"""Two figures beside the quantiles: the rate at which a sequence decodes, and what failed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sidecar import loghist
from sidecar.diff.clumping import clumping, deviations
from sidecar.diff.findings import FigureFound, Verdict
from sidecar.diff.judging import ALPHA, bounds, judge, minus
from sidecar.diff.sides import Measured
from sidecar.drift.quantiles import Between, cell_of
from sidecar.drift.stretch import Floats
from sidecar.loghist import CELLS, OVER

FAILED_GUARD = 0.01  # of all requests
_FEWEST_PIECES = 6
_FEWEST_GAPS = 20.0
_FEWEST_REQUESTS = 20.0
_SECONDS: Floats = np.array([loghist.middle(cell) for cell in range(CELLS)])
_SECONDS[OVER] = 0.0


def rated(a: Measured, b: Measured) -> bool:
    """Whether there are enough gaps for a rate."""
    return min(a.n, b.n) >= _FEWEST_GAPS and decode_seconds(a) > 0 < decode_seconds(b)


def counted(a: Measured, b: Measured) -> bool:
    """Whether there are enough requests for a share of them."""
    return min(a.n, b.n) >= _FEWEST_REQUESTS


def decode_seconds(itl: Measured) -> float:
    """The sum of all gaps."""
    return float(itl.whole.counts @ _SECONDS)


def rate(a: Measured, b: Measured, tests: int, guard: float) -> FigureFound:
    """Token events per decode second of one sequence: one over the mean gap between events, of
    which each may carry several tokens. ``a`` and ``b`` are the gaps.
    """
    by_pieces = min(len(a.pieces), len(b.pieces)) >= _FEWEST_PIECES
    of = _rate_by_pieces if by_pieces else _rate_by_gaps
    then, now = of(a, b, ALPHA)
    wide_then, wide_now = of(a, b, ALPHA / tests)
    # Fewer a second are worse: judged as A − B, and told as B − A, as every difference is.
    less, joint = minus(then, now), minus(wide_then, wide_now)
    judged = judge(then[0], less, joint, guard * then[0], (a.n, b.n))
    told = replace(judged, difference=minus(now, then), joint=minus(wide_now, wide_then))
    how = "how stored pieces differ" if by_pieces else "all gaps, and how they clump"
    return FigureFound("rate", bounds(then), bounds(now), told, judged.verdict, how)


def _rate_by_pieces(a: Measured, b: Measured, alpha: float) -> tuple[Between, Between]:
    """A ratio of sums over pieces (Cochran, "Sampling Techniques", 1977, 6.3)."""
    found = []
    for side in (a, b):
        events = np.array([piece.n for piece in side.pieces])
        seconds = np.array([float(piece.counts @ _SECONDS) for piece in side.pieces])
        value, many = float(events.sum() / seconds.sum()), len(side.pieces)
        squares = float(((events - value * seconds) ** 2).sum()) * many / (many - 1)
        half = deviations(many - 1.0, alpha) * math.sqrt(squares) / float(seconds.sum())
        found.append((value, max(0.0, value - half), value + half))
    return found[0], found[1]


def _rate_by_gaps(a: Measured, b: Measured, alpha: float) -> tuple[Between, Between]:
    """One over the mean gap, whose variance is that of independent gaps times φ at their median."""
    cells = [cell_of(np.cumsum(side.whole.counts), 0.5) for side in (a, b)]
    clumps = clumping(a, b, (cells[0], cells[1]))
    found = []
    for which, side in enumerate((a, b)):
        mean = decode_seconds(side) / side.n
        square = float(side.whole.counts @ _SECONDS**2) / side.n - mean * mean
        error = math.sqrt(max(0.0, square) / side.whole.size) / mean
        part = math.inf if clumps is None else clumps.reach(which, alpha) * error
        upper = 1 / (mean * (1 - part)) if part < 1 else math.inf
        found.append((1 / mean, 1 / (mean * (1 + part)), upper))
    return found[0], found[1]


def failed(a: Measured, b: Measured, tests: int) -> FigureFound:
    """The share of requests above the range: those that failed, or took 600 s and more. ``a`` and
    ``b`` are durations.
    """
    then, now = _shares(a, b, ALPHA)
    joint = minus(*_shares(a, b, ALPHA / tests)[::-1])
    words = (Verdict.MORE, Verdict.FEWER)
    judged = judge(then[0], minus(now, then), joint, FAILED_GUARD, (a.n, b.n), words)
    return FigureFound("failed", bounds(then), bounds(now), judged, judged.verdict)


def _shares(a: Measured, b: Measured, alpha: float) -> tuple[Between, Between]:
    clumps = clumping(a, b, (OVER - 1, OVER - 1))
    found = []
    for which, side in enumerate((a, b)):
        reach = math.inf if clumps is None else clumps.reach(which, alpha)
        share = float(side.whole.counts[OVER]) / side.n
        found.append((share, *_wilson(share, side.whole.size, reach)))
    return found[0], found[1]


def _wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """The interval of a probability (Wilson 1927)."""
    if not math.isfinite(z):
        return 0.0, 1.0
    square = z * z / n
    middle = share + square / 2
    half = z * math.sqrt(share * (1 - share) / n + square / n / 4)
    lower, upper = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return min(share, max(0.0, lower)), max(share, min(1.0, upper))
