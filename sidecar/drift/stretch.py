"""Records as arrays with a weight, since an hour that slides lies across two hours of the clock.

The baseline of 14:20 to 15:20 is two thirds of the hour from 14:00 and one third of that from
15:00. A weighted sum of counts varies less than a count of its size: ``spread`` keeps how much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar import loghist
from sidecar.loghist import CELLS
from sidecar.record import STEP, THRESHOLDS, Record

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
# Where the upper bound of each cell lies among the thresholds, on the scale of their logarithms.
EDGES: Floats = (np.arange(CELLS) + 1.0) / STEP
STEP_OF_CELL: NDArray[np.intp] = np.arange(CELLS) // STEP


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """What a :class:`~sidecar.record.Record` holds, times its weight, summed over records.

    * ``counts`` (CELLS,): requests by cell; ``n`` their sum.
    * ``strata`` (K, THRESHOLDS): requests by kind and step; their sum is ``n``, too. ``kinds``
      (K,) are the record's numbers of these kinds, ascending: of the 224 few are ever there.
    * ``squares`` (THRESHOLDS,) and ``blocks``: of blocks of 150 s, as in the record.
    * ``spread``: Σ w²n. A share p that is estimated from the stretch has the variance
      p(1−p)·spread/n², that of ``size`` independent requests.
    """

    counts: Floats
    kinds: Ints
    strata: Floats
    squares: Floats
    blocks: float
    n: float
    spread: float

    @classmethod
    def of(cls, record: Record, weight: float = 1.0) -> Stretch:
        """Of one record. Raises ValueError for a weight below 0 and for counts that disagree."""
        counts = record.hist.view().astype(np.float64)
        listed = sorted(record.strata)
        kinds = np.array(listed, dtype=np.intp)
        rows = b"".join([record.strata[kind].tobytes() for kind in listed])
        strata = np.frombuffer(rows, np.int64).astype(np.float64).reshape(-1, THRESHOLDS)
        if strata.sum() != counts.sum():
            raise ValueError("the strata of a record do not add up to its histogram")
        squares = np.array(record.squares, dtype=np.float64)
        n = float(counts.sum())
        return cls(counts, kinds, strata, squares, float(record.blocks), n, n).weighted(weight)

    @classmethod
    def empty(cls) -> Stretch:
        """Of nothing: where a sum starts."""
        kinds, strata = np.zeros(0, np.intp), np.zeros((0, THRESHOLDS))
        return cls(np.zeros(CELLS), kinds, strata, np.zeros(THRESHOLDS), 0.0, 0.0, 0.0)

    @classmethod
    def sampled(
        cls, seconds: Floats, block: NDArray[np.int64], kind: NDArray[np.int64] | None = None
    ) -> Stretch:
        """Of samples in bulk: durations (n,), the block each lies in, and the kind, 0 if None."""
        hist = loghist.LogHist()
        hist.add_many(seconds)
        counts = hist.view().astype(np.float64)
        inside = np.clip(seconds, loghist.LOWEST / 2, loghist.HIGHEST)
        step = np.searchsorted(_THRESHOLDS, inside * (1 + 1e-12), side="right") - 1
        kind = np.zeros(len(seconds), np.int64) if kind is None else kind
        kinds, which = np.unique(kind, return_inverse=True)
        strata = np.bincount(which * THRESHOLDS + step, minlength=len(kinds) * THRESHOLDS)
        where = block * THRESHOLDS + step
        size = (int(block.max(initial=-1)) + 1) * THRESHOLDS
        blocks = np.bincount(where, minlength=size).reshape(-1, THRESHOLDS)
        blocks = blocks[blocks.sum(axis=1) > 0]
        above = blocks[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64)
        squares = (above**2 / above[:, :1]).sum(axis=0)
        n = float(len(seconds))
        shaped = strata.reshape(-1, THRESHOLDS).astype(np.float64)
        return cls(counts, kinds.astype(np.intp), shaped, squares, float(len(blocks)), n, n)

    def weighted(self, weight: float) -> Stretch:
        """Every request counted so often; ValueError for a weight below 0 or that is no number."""
        if not 0 <= weight < np.inf:
            raise ValueError(f"no weight: {weight}")
        if weight == 1.0:
            return self
        return Stretch(
            self.counts * weight,
            self.kinds,
            self.strata * weight,
            self.squares * weight,
            self.blocks * weight,
            self.n * weight,
            self.spread * weight * weight,
        )

    def __add__(self, other: Stretch) -> Stretch:
        return sum_of([self, other])

    @property
    def size(self) -> float:
        """How many independent requests would tell as much: Kish's effective sample size."""
        return self.n * self.n / self.spread if self.spread > 0 else 0.0


# The lower bound of step i, in seconds; the first one takes what is below the range, too.
_THRESHOLDS: Floats = np.array([loghist.lower(i * STEP) for i in range(THRESHOLDS)])


def sum_of(stretches: list[Stretch]) -> Stretch:
    """All of them together."""
    if len(stretches) < 2:
        return stretches[0] if stretches else Stretch.empty()
    kinds = np.unique(np.concatenate([one.kinds for one in stretches]))
    strata = np.zeros((len(kinds), THRESHOLDS))
    for one in stretches:
        strata[np.searchsorted(kinds, one.kinds)] += one.strata
    return Stretch(
        np.sum([one.counts for one in stretches], axis=0),
        kinds,
        strata,
        np.sum([one.squares for one in stretches], axis=0),
        sum(one.blocks for one in stretches),
        sum(one.n for one in stretches),
        sum(one.spread for one in stretches),
    )
