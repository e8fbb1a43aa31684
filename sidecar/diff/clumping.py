"""How much less a side tells than as many independent requests would, at one duration.

Pearson's dispersion over blocks of 150 s sees what clumps within minutes; that over the pieces, of
five minutes or an hour, what drifts over longer. The latter has few degrees of freedom, so it is
shrunk to the former as in :mod:`sidecar.drift.dispersion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from sidecar.diff.sides import Measured
from sidecar.drift import dispersion
from sidecar.drift.stretch import EDGES
from sidecar.loghist import OVER

_PRIOR_DF = 12.0  # what the blocks weigh beside the pieces
_FEWEST_DF = 1.0
_FEWEST_PIECES = 8  # for r, the correlation of one with the next
_MOST_R, _SURE_R = 0.9, 1.0


@dataclass(frozen=True, slots=True)
class Clumping:
    """``phi`` of each side (A, B), and the degrees of freedom of both together."""

    phi: tuple[float, float]
    df: float

    def reach(self, side: int, alpha: float) -> float:
        """Standard deviations of independent requests within which a count of that side (0: A)
        lies with 1 − alpha.
        """
        return deviations(self.df, alpha) * math.sqrt(self.phi[side])


@lru_cache(maxsize=512)
def deviations(df: float, alpha: float) -> float:
    """Student's t that is exceeded, to either side, with ``alpha``."""
    return float(special.stdtrit(df, 1 - alpha / 2))


def clumping(a: Measured, b: Measured, cells: tuple[int, int]) -> Clumping | None:
    """At a cell of each side; None where both are too short for anything to be said.

    The two are pooled, since a canary of minutes has few blocks, and each has at least its own.
    """
    one, other = _of(a, cells[0]), _of(b, cells[1])
    (first, df_first), (second, df_second) = one, other
    df = df_first + df_second
    if df < _FEWEST_DF:
        return None
    pooled = (first * df_first + second * df_second) / df
    return Clumping((max(1.0, first, pooled), max(1.0, second, pooled)), df)


def _of(measured: Measured, cell: int) -> tuple[float, float]:
    """φ of one side and its degrees of freedom, 0 for none."""
    where = _parting(measured, cell)
    blocks, df = max(0.0, measured.whole.blocks - 1), float(len(measured.pieces) - 1)
    if where is None:  # all in one cell: nothing varies
        return 1.0, blocks
    share = float(measured.whole.counts[where + 1 :].sum()) / measured.n
    known = _parts_blocks(measured, where)
    fine = max(1.0, dispersion.across_blocks(measured.whole, where)) if known else 1.0
    if df < _FEWEST_DF:
        return fine, blocks if known else 0.0
    found = dispersion.across_days(measured.pieces, where, share)
    longer = _persistence(measured, where, share)
    if not known:
        return max(1.0, found) * longer, df / longer
    shrunk = longer * max(fine, (_PRIOR_DF * fine + df * found) / (_PRIOR_DF + df))
    # What the larger φ rests on decides: the pieces are fewer than the blocks.
    return (shrunk, min(blocks, _PRIOR_DF + df) / longer) if shrunk > fine else (fine, blocks)


def _persistence(measured: Measured, cell: int, share: float) -> float:
    """By how much the variance of a sum grows since what is slow stays slow into the next piece:
    (1+r)/(1−r) of an autoregressive series. r is corrected for its bias (Marriott and Pope 1954),
    and counts once it is more than chance.
    """
    many = len(measured.pieces)
    if many < _FEWEST_PIECES:
        return 1.0
    sums = np.array([(one.counts[cell + 1 :].sum(), one.n) for one in measured.pieces])
    off = (sums[:, 0] - share * sums[:, 1]) / np.sqrt(sums[:, 1])
    squares = float(off @ off)
    r = float(off[1:] @ off[:-1]) / squares if squares > 0 else 0.0
    r = min(_MOST_R, r + (1 + 4 * r) / many)
    return (1 + r) / (1 - r) if r > _SURE_R / math.sqrt(many) else 1.0


def _parting(measured: Measured, cell: int) -> int | None:
    """The cell, or the next lower one, above which some requests lie and some do not."""
    counts = measured.whole.counts
    for where in (min(cell, OVER - 1), cell - 1):
        above = float(counts[where + 1 :].sum()) if where >= 0 else 0.0
        if 0 < above < measured.n:
            return where
    return None


def _parts_blocks(measured: Measured, cell: int) -> bool:
    """Whether one of the thresholds beside a cell parts the requests: blocks know no others."""
    whole = measured.whole
    first = int(EDGES[cell])
    sides = (first, first + 1) if first + 1 < len(whole.squares) else (first,)
    return any(0 < whole.strata[:, side:].sum() < whole.n for side in sides)
