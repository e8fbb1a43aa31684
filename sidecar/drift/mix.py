"""What the mix of requests alone does to a latency: longer requests are slower on a healthy server.

Direct standardisation: Σ w_s S_s(t), the baseline's survival of each kind at the shares of now. It
is used as a ratio to the same sum at the baseline's own shares, so that nothing at all is corrected
where the mix is the same.

Kinds are the record's strata, and of those that are too rare to tell anything several in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sidecar.drift.stretch import EDGES, STEP_OF_CELL, Floats, Ints, Stretch
from sidecar.loghist import CELLS
from sidecar.record import ANSWERED, ASKED, STRATA, THRESHOLDS

_WIDE: Ints = (np.arange(ASKED) + 1) // 4  # below 512 B, 2 kB, 8 kB …, 2 MB and above
_THRESHOLDS: Floats = np.arange(THRESHOLDS, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """The baseline's kinds, K and one more, the last, for what it does not know: ``shares`` (K+1,)
    of its requests, ``size`` (K+1,) independent requests of each; ``survival`` (K+1, THRESHOLDS):
    the share of a kind at or above each threshold, ``whole`` (THRESHOLDS,) that of all. ``kind_of``
    (STRATA,) is the kind of each stratum.
    """

    kind_of: Ints
    shares: Floats
    size: Floats
    survival: Floats
    whole: Floats

    @classmethod
    def of(cls, pooled: Stretch, known_requests: float) -> Kinds:
        """Of all the baseline's days. A size within a factor of 4, and a length of answers, of
        which there are fewer than ``known_requests`` independent ones is not known.
        """
        worth = pooled.size / pooled.n
        sizes = np.zeros(STRATA)
        sizes[pooled.kinds] = pooled.strata.sum(axis=1) * worth
        kind_of, last = _grouped(sizes.reshape(ANSWERED, ASKED), known_requests)
        counts = np.zeros((last + 1, THRESHOLDS))
        np.add.at(counts, kind_of[pooled.kinds], pooled.strata)
        n = counts.sum(axis=1)
        above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        survival = above / np.maximum(n, 1e-300)[:, None]
        shares = n / pooled.n
        return cls(kind_of, shares, n * worth, survival, shares @ survival)


def _grouped(sizes: Floats, least: float) -> tuple[Ints, int]:
    """The kind of each stratum (STRATA,), of so many independent requests (ANSWERED, ASKED), and
    the last kind, which is that of strata that are not known.

    Those of neighbouring sizes are one kind until there are ``least`` of them, with what is left
    over at the end in the last one. A stratum of which the baseline has none is of the kind of its
    neighbours, too: without that, finer strata would know less than wider ones do.
    """
    wide = np.bincount(_WIDE, weights=sizes.sum(axis=0))
    columns = np.flatnonzero(wide[_WIDE] >= least)
    kind_of, kind = np.full(sizes.shape, -1, dtype=np.intp), 0
    for answered in np.flatnonzero(sizes.sum(axis=1) >= least):
        first, found = kind, 0.0
        for asked in columns:
            kind_of[answered, asked] = kind
            found += sizes[answered, asked]
            if found >= least:
                kind, found = kind + 1, 0.0
        left_over = kind_of[answered] == kind
        if left_over.any():
            if kind > first:
                kind_of[answered, left_over] = kind - 1
            else:
                kind += 1
    kind_of[kind_of < 0] = kind
    return kind_of.ravel(), kind


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """Of an hour against a baseline. ``unknown`` is the share of requests whose kind the baseline
    does not know; ``counts`` (CELLS,) are those of the others. ``ratio`` (CELLS,) is r at the upper
    bound of each cell, None where the mix is the same. ``weights`` (K+1,) are shares now.
    """

    unknown: float
    counts: Floats
    weights: Floats
    ratio: Floats | None

    def at(self, cell: int) -> float:
        """What the mix makes of the share of requests above a cell: this times as much."""
        return 1.0 if self.ratio is None else float(self.ratio[cell])


def compare(current: Stretch, kinds: Kinds) -> Mix:
    """The mix of an hour that holds something."""
    kind, last = kinds.kind_of[current.kinds], len(kinds.shares) - 1
    requests = current.strata.sum(axis=1)
    weights = np.bincount(kind, weights=requests, minlength=last + 1).astype(np.float64)
    strange = float(weights[last])
    unknown, counts = strange / current.n, current.counts
    if strange:
        total = current.strata.sum(axis=0)
        of_step = current.strata[kind < last].sum(axis=0) / np.maximum(total, 1e-300)
        counts = counts * of_step[STEP_OF_CELL]
    weights[last] = 0.0
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
