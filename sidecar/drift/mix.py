"""What the mix of requests alone does to a latency: longer requests are slower on a healthy server.

Direct standardisation: Σ w_s S_s(t), the baseline's survival of each kind at the shares of now. It
is used as a ratio to the same sum at the baseline's own shares, so that nothing at all is corrected
where the mix is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.drift.stretch import EDGES, STEP_OF_CELL, Floats, Stretch
from sidecar.loghist import CELLS
from sidecar.record import THRESHOLDS

_THRESHOLDS: Floats = np.arange(THRESHOLDS, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """The baseline's kinds: ``shares`` (STRATA,) of its requests, ``size`` (STRATA,) independent
    requests of each; ``survival`` (STRATA, THRESHOLDS): the share of a kind at or above each
    threshold, ``whole`` (THRESHOLDS,) that of all.
    """

    shares: Floats
    size: Floats
    survival: Floats
    whole: Floats

    @classmethod
    def of(cls, pooled: Stretch) -> Kinds:
        """Of all the baseline's days."""
        n = pooled.strata.sum(axis=1)
        above = pooled.strata[:, ::-1].cumsum(axis=1)[:, ::-1]
        survival = above / np.maximum(n, 1e-300)[:, None]
        shares = n / pooled.n
        return cls(shares, n * (pooled.size / pooled.n), survival, shares @ survival)


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """Of an hour against a baseline. ``unknown`` is the share of requests whose kind the baseline
    does not know; ``counts`` (CELLS,) are those of the others. ``ratio`` (CELLS,) is r at the upper
    bound of each cell, None where the mix is the same. ``weights`` (STRATA,) are shares now.
    """

    unknown: float
    counts: Floats
    weights: Floats
    ratio: Floats | None

    def at(self, cell: int) -> float:
        """What the mix makes of the share of requests above a cell: this times as much."""
        return 1.0 if self.ratio is None else float(self.ratio[cell])


def compare(current: Stretch, kinds: Kinds, known_requests: float) -> Mix:
    """The mix of an hour that holds something."""
    now = current.strata.sum(axis=1)
    known: NDArray[np.bool_] = kinds.size >= known_requests
    strange = float(now[~known].sum())
    unknown, counts = strange / current.n, current.counts
    if strange:
        total = current.strata.sum(axis=0)
        of_step = current.strata[known].sum(axis=0) / np.maximum(total, 1e-300)
        counts = counts * of_step[STEP_OF_CELL]
    weights = np.where(known, now, 0.0)
    weights = weights / max(float(weights.sum()), 1e-300)
    return Mix(unknown, counts, weights, _ratio(weights, kinds))


def _ratio(weights: Floats, kinds: Kinds) -> Floats | None:
    """r(t), between thresholds linear in log r and log t; beyond the last one that any request of
    these kinds reached it stays what it was.
    """
    if np.abs(weights - kinds.shares).max() < 1e-9:
        return None
    now, before = weights @ kinds.survival, kinds.whole
    seen = (now > 0) & (before > 0)
    if not seen.any():  # no known request at all
        return np.ones(CELLS)
    logs = np.log(now[seen] / before[seen])
    ratio: Floats = np.exp(np.interp(EDGES, _THRESHOLDS[seen], logs))
    return ratio


def size(weights: Floats, kinds: Kinds, cell: int) -> float:
    """How many independent requests the baseline's standardised share above a cell is worth.

    Var Σ w_s Ŝ_s = Σ w_s² v_s/n_s with v_s = S_s(1−S_s), against Σ w_s v_s of one request: with the
    baseline's own shares this is its size, and less when a kind that was rare then is common now.
    A kind of which none was slow is not known never to be: S_s is (k+1)/(n+2) here.
    """
    used = weights > 0
    if not used.any():
        return 1.0
    first = min(int(EDGES[cell]), THRESHOLDS - 2)
    part = min(1.0, float(EDGES[cell]) - first)
    low, high = np.maximum(kinds.survival[used, first : first + 2], 1e-12).T
    share = low ** (1 - part) * high**part
    n = kinds.size[used]
    share = (n * share + 1) / (n + 2)
    varies = weights[used] * share * (1 - share)
    return float(varies.sum() / (varies * weights[used] / n).sum())
