"""A histogram of durations with cells of 1 %: mergeable, subtractable, and 11 kB whatever comes.

Cell ``i`` holds what is at least ``LOWEST * GAMMA**(i - 1)`` and less than ``GAMMA`` times that, so
a quantile is known to half a per cent. Cell 0 is below the range, the last one at or above its end,
where requests lie that never came to theirs; the cell before it is cut short there.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy is loaded by the process that evaluates, not by the one that records
    import numpy as np
    from numpy.typing import NDArray

GAMMA = 1.01
LOWEST, HIGHEST = 1e-3, 600.0  # seconds
CELLS = math.ceil(math.log(HIGHEST / LOWEST) / math.log(GAMMA)) + 2
OVER = CELLS - 1
# Edge i parts cell i from cell i + 1. Everything below looks here: a logarithm instead would put
# what is within a rounding error of an edge on either side of it.
_EDGES = (*(LOWEST * GAMMA**i for i in range(OVER - 1)), HIGHEST)
_ZEROS = bytes(8 * CELLS)


class Damaged(ValueError):
    """What was to be decoded is no histogram of ours; the text says where it goes wrong."""


def cell(seconds: float) -> int:
    """The cell of a duration; +Inf is above the range. Raises ValueError for NaN and below 0."""
    if seconds >= 0.0:
        return bisect_right(_EDGES, seconds)
    raise ValueError(f"no duration: {seconds}")


def lower(index: int) -> float:
    """The least duration of a cell, in seconds."""
    return 0.0 if index <= 0 else _EDGES[min(index, OVER) - 1]


def upper(index: int) -> float:
    """The bound above every duration of a cell; +Inf for the last one."""
    return math.inf if index >= OVER else _EDGES[max(index, 0)]


def middle(index: int) -> float:
    """What a cell stands for: the geometric middle; the bound of the two at the ends."""
    if index <= 0:
        return LOWEST
    return HIGHEST if index >= OVER else math.sqrt(lower(index) * upper(index))


@cache
def _edges() -> NDArray[np.float64]:
    import numpy as np

    return np.array(_EDGES)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile in seconds and the bounds that it surely lies between."""

    value: float
    lower: float
    upper: float


class LogHist:
    """Counts by cell. Not safe for several threads. OverflowError, and nothing has changed, where
    it would come to hold 2**63.
    """

    __slots__ = ("counts",)

    def __init__(self, counts: array[int] | None = None) -> None:
        self.counts: array[int] = array("q", _ZEROS) if counts is None else counts
        if len(self.counts) != CELLS or self.counts.typecode != "q":
            raise ValueError(
                f"a histogram has {CELLS} cells of type 'q', "
                f"not {len(self.counts)} of type {self.counts.typecode!r}"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogHist) and self.counts == other.counts

    __hash__ = None  # type: ignore[assignment]  # it changes

    def add(self, seconds: float, times: int = 1) -> int:
        """Counts a duration; its cell. Raises ValueError for NaN and below 0."""
        index = cell(seconds)
        self.counts[index] += times
        return index

    def add_many(self, seconds: NDArray[np.float64]) -> None:
        """Counts an array of durations; ValueError, and none is counted, if one is no duration."""
        import numpy as np

        if not (seconds >= 0).all():
            raise ValueError("not all of these are durations")
        cells = np.searchsorted(_edges(), seconds.ravel(), side="right")
        self._put(self.view() + np.bincount(cells, minlength=CELLS))

    def view(self) -> NDArray[np.int64]:
        """The counts as an array that shares their memory."""
        import numpy as np

        return np.frombuffer(self.counts, dtype=np.int64)

    def merge(self, other: LogHist) -> None:
        """Adds what another holds."""
        self._put(self.view() + other.view())

    def _put(self, counts: NDArray[np.int64]) -> None:
        """Takes over sums of what is never negative: where one is, it went past the end."""
        if counts.min() < 0 or counts.sum(dtype=float) >= 2.0**63:
            raise OverflowError("a histogram holds fewer than 2**63")
        self.view()[:] = counts

    def subtract(self, other: LogHist) -> None:
        """Takes away what another holds, which was merged before; ValueError, and nothing has
        changed, if it was not.
        """
        left = self.view() - other.view()
        if left.min() < 0:
            raise ValueError("this histogram does not hold the other")
        self.view()[:] = left

    @property
    def total(self) -> int:
        """How many durations it holds."""
        return sum(self.counts)

    def above(self, index: int) -> int:
        """How many lie in cells above this one."""
        return sum(self.counts[max(index + 1, 0) :])

    def quantile(self, q: float) -> Quantile | None:
        """The smallest duration that a share of ``q`` does not exceed; None of nothing. Raises
        ValueError where ``q`` is not within 0 and 1.
        """
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"no share: {q}")
        seen = list(accumulate(self.counts))
        if not seen[-1]:
            return None
        # The share was a decimal before it was a float: 7 % of 100 are 7, not 8 for 7.000000000001.
        rank = max(1, math.ceil(q * seen[-1] * (1 - 2**-51)))
        index = bisect_left(seen, rank)
        return Quantile(middle(index), lower(index), upper(index))

    def filled(self) -> Iterator[tuple[int, int]]:
        """Cell and count of every cell that holds something, in their order."""
        return ((index, count) for index, count in enumerate(self.counts) if count)
