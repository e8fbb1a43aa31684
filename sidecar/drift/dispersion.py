"""By how much counts of slow requests vary more than independent requests would.

Pearson's dispersion, φ: McCullagh and Nelder, "Generalized Linear Models" (1989), 4.5. Shrunk to
that of the other series as variances are in Smyth, "Linear models and empirical Bayes methods",
Statistical Applications in Genetics and Molecular Biology 3 (2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidecar.drift.stretch import EDGES, Floats, Stretch


def across_days(days: Sequence[Stretch], cell: int, share: float) -> float:
    """Of the counts above a cell, a share of ``share`` in all; with D−1 degrees of freedom.

    A day of weighted hours varies by its ``spread``, not by its count.
    """
    sums = np.array([(day.counts[cell + 1 :].sum(), day.n, day.spread) for day in days])
    above, n, spread = sums.T
    squares = (above - n * share) ** 2 / (spread * share * (1 - share))
    return float(squares.sum()) / (len(days) - 1)


def across_blocks(pooled: Stretch, cell: int) -> float:
    """Of the counts above a cell in blocks of 150 s; 1 where nothing can be said.

    X² = (Σk²/n − 2pK + p²N) / (p(1−p)) with K = pN at the thresholds on either side of the cell's
    upper bound, and between them linear in log t. Weights of blocks weigh their parts of the sum,
    so that φ stays a mean over blocks.
    """
    if pooled.blocks <= 1:
        return 1.0
    first = min(int(EDGES[cell]), len(pooled.squares) - 1)
    sides = [_at(pooled, i) for i in (first, first + 1) if i < len(pooled.squares)]
    if len(sides) == 1 or sides[1] is None:
        return sides[0] or 1.0
    if sides[0] is None:
        return sides[1]
    part = EDGES[cell] - first
    return float((1 - part) * sides[0] + part * sides[1])


def _at(pooled: Stretch, threshold: int) -> float | None:
    above = float(pooled.strata[:, threshold:].sum())
    share = above / pooled.n
    if not 0 < share < 1:
        return None
    squares = (pooled.squares[threshold] - share * above) / (share * (1 - share))
    return float(squares) / (pooled.blocks - 1)


@dataclass(frozen=True, slots=True)
class Prior:
    """What φ usually is, over the series of a round, and how many degrees of freedom that weighs: a
    series that is alone has none but its own.
    """

    phi: float = 1.0
    df: float = 0.0

    @classmethod
    def of(cls, found: Sequence[float], df_of_each: float, most: float) -> Prior:
        """From φ of several series: the median, which a few wild ones do not move; at least 1. One
        of them is the series' own.
        """
        if not found:
            return cls()
        df = min(most, (len(found) - 1) * df_of_each)
        return cls(max(1.0, float(np.median(found))), df)


def deviations(seen: Floats, expected: Floats, requests: Floats, days: Floats) -> Floats:
    """By how many standard deviations more is seen than expected, of any shape.

    What requests vary by stays what it is; what days vary by are factors, so that twice as much is
    no further away than half as much. For the variance A + B·(m/expected)² of a mean m that is the
    integral of its inverse root, an inverse hyperbolic sine (Anscombe, "The transformation of
    Poisson, binomial and negative-binomial data", Biometrika 35, 1948). With B = 0 it is the plain
    difference over √A, and near what is expected always that over √(A + B).
    """
    relative = np.sqrt(np.maximum(days, 1e-9 * requests)) / expected
    scale = relative / np.sqrt(requests)
    found: Floats = (np.arcsinh(seen * scale) - np.arcsinh(expected * scale)) / relative
    return found


def moderated(days: float, blocks: float, df: float, prior: Prior) -> float:
    """φ̃ of a series whose days have ``df`` degrees of freedom: at least 1, and that of its blocks.

    The days are few, so they are shrunk to the prior. The blocks are some hundred and fifty and
    stand for themselves: a series that clumps among others that do not is not talked out of it.
    """
    own = max(1.0, days, blocks)
    return max(1.0, blocks, (prior.df * prior.phi + df * own) / (prior.df + df))
