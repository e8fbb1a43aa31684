"""What is kept of one series over a stretch of time: enough to compare it with another stretch.

Beside the histogram: how requests clump (a burst of slow ones is less news than as many spread
out), and which kind of requests they were (a change of the mix is no change of the server).
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, field

from sidecar import loghist
from sidecar.loghist import LogHist

STEP = 35  # cells between two thresholds: a factor of 1.42
THRESHOLDS = loghist.CELLS // STEP + 1  # threshold i is the lower bound of cell ``i * STEP``
BLOCK_SECONDS = 150.0
SLOT_SECONDS = 300.0
# Sizes of requests and lengths of answers that are told apart. A prompt of twice the size takes
# about twice as long, so that within a factor of 4 of bytes more would change than is to be seen.
ASKED, ANSWERED = 28, 8
STRATA = ANSWERED * ASKED
_SMALLEST = 15  # 256 B, the least that is told apart, is 2**(16/2)
Strata = defaultdict[int, "array[int]"]


def step_of(cell: int) -> int:
    """The threshold below a cell: it lies at or above thresholds 0 to this one."""
    return cell // STEP


def stratum(asked: int, answered: int = 0) -> int:
    """The kind of a request of so many bytes, and of an answer of so many token events, 0 where its
    length is all the same. Bytes in factors of √2: below 256, 362, 512 …, 2 MB and above; events in
    factors of 4: below 2, 8, 32 …, 8,192 and above.
    """
    twice = (asked * asked).bit_length() - 1  # the integer below 2·log₂
    size = min(max(twice - _SMALLEST, 0), ASKED - 1)
    return ASKED * min(answered.bit_length() // 2, ANSWERED - 1) + size


def zeros() -> array[int]:
    """A count of nothing for each step."""
    return array("q", bytes(8 * THRESHOLDS))


def _none() -> Strata:
    return defaultdict(zeros)


@dataclass(slots=True)
class Record:
    """Of one series.

    * ``hist``: all durations; what failed or timed out lies above the range.
    * ``strata[s][i]``: how many requests of stratum ``s`` (:func:`stratum`) lie in step ``i``, that
      is between thresholds ``i`` and ``i + 1``. Their sum is the histogram's total. Only strata
      that hold something are there: mostly a dozen of the 224.
    * ``blocks``: how many blocks of 150 s held something. ``squares[i]``: over these, the sum of
      k²/n, with k of a block's n at or above threshold i: what Pearson's dispersion needs.
    """

    hist: LogHist = field(default_factory=LogHist)
    strata: Strata = field(default_factory=_none)
    blocks: int = 0
    squares: array[float] = field(default_factory=lambda: array("d", bytes(8 * THRESHOLDS)))

    def merge(self, other: Record) -> None:
        """Adds what another stretch held; blocks stay blocks. OverflowError, and nothing has
        changed, where it would come to hold 2**63.
        """
        import numpy as np

        self.hist.merge(other.hist)
        for kind, theirs in other.strata.items():
            mine = np.frombuffer(self.strata[kind], dtype=np.int64)
            mine[:] += np.frombuffer(theirs, dtype=np.int64)
        self.blocks += other.blocks
        np.frombuffer(self.squares)[:] += np.frombuffer(other.squares)
