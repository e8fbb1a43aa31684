"""What is kept of one series over a stretch of time: enough to compare it with another stretch.

Beside the histogram: how requests clump (a burst of slow ones is less news than as many spread
out), and which kind of requests they were (a change of the mix is no change of the server).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from sidecar import loghist
from sidecar.loghist import LogHist

STEP = 35  # cells between two thresholds: a factor of 1.42
THRESHOLDS = loghist.CELLS // STEP + 1  # threshold i is the lower bound of cell ``i * STEP``
BLOCK_SECONDS = 150.0
SLOT_SECONDS = 300.0
STRATA = 8


def step_of(cell: int) -> int:
    """The threshold below a cell: it lies at or above thresholds 0 to this one."""
    return cell // STEP


def _rows() -> list[array[int]]:
    return [array("q", bytes(8 * THRESHOLDS)) for _ in range(STRATA)]


@dataclass(slots=True)
class Record:
    """Of one series.

    * ``hist``: all durations; what failed or timed out lies above the range.
    * ``strata[s][i]``: how many requests of stratum ``s`` lie in step ``i``, that is between
      thresholds ``i`` and ``i + 1``. Their sum is the histogram's total.
    * ``blocks``: how many blocks of 150 s held something. ``squares[i]``: over these, the sum of
      k²/n, with k of a block's n at or above threshold i: what Pearson's dispersion needs.
    """

    hist: LogHist = field(default_factory=LogHist)
    strata: list[array[int]] = field(default_factory=_rows)
    blocks: int = 0
    squares: array[float] = field(default_factory=lambda: array("d", bytes(8 * THRESHOLDS)))

    def merge(self, other: Record) -> None:
        """Adds what another stretch held; blocks stay blocks. OverflowError, and nothing has
        changed, where it would come to hold 2**63.
        """
        import numpy as np

        self.hist.merge(other.hist)
        for mine, theirs in zip(self.strata, other.strata, strict=True):
            np.frombuffer(mine, dtype=np.int64)[:] += np.frombuffer(theirs, dtype=np.int64)
        self.blocks += other.blocks
        np.frombuffer(self.squares)[:] += np.frombuffer(other.squares)
