"""A histogram of durations with cells of 1 %: mergeable, subtractable, and 11 kB whatever comes.

Cell ``i`` holds what is at least ``LOWEST * GAMMA**(i - 1)`` and less than ``GAMMA`` times that, so
a quantile is known to half a per cent. Cell 0 is below the range, the last one above it, where
requests lie that never came to their end.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy is loaded by the process that evaluates, not by the one that records
    import numpy as np
    from numpy.typing import NDArray

GAMMA = 1.01
LOWEST, HIGHEST = 1e-3, 600.0  # seconds
_SCALE = 1.0 / math.log(GAMMA)
_FIRST = math.log(LOWEST) * _SCALE
CELLS = math.ceil(math.log(HIGHEST / LOWEST) * _SCALE) + 2
OVER = CELLS - 1
_ZEROS = bytes(8 * CELLS)


class Damaged(ValueError):
    """What was to be decoded is no histogram of ours; the text says where it goes wrong."""


def cell(seconds: float) -> int:
    """The cell of a duration; +Inf is above the range. Raises ValueError for NaN and below 0."""
    if seconds >= LOWEST:
        return (
            min(OVER, int(math.log(seconds) * _SCALE - _FIRST) + 1) if seconds < HIGHEST else OVER
        )
    if seconds >= 0.0:
        return 0
    raise ValueError(f"no duration: {seconds}")


def lower(index: int) -> float:
    """The least duration of a cell, in seconds."""
    return 0.0 if index <= 0 else LOWEST * GAMMA ** (index - 1)


def upper(index: int) -> float:
    """The bound above every duration of a cell; +Inf for the last one."""
    return math.inf if index >= OVER else LOWEST * GAMMA**index


def middle(index: int) -> float:
    """What a cell stands for: the geometric middle; the bound of the two at the ends."""
    if index <= 0:
        return LOWEST
    return lower(OVER) if index >= OVER else math.sqrt(lower(index) * upper(index))


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile in seconds and the bounds that it surely lies between."""

    value: float
    lower: float
    upper: float


class LogHist:
    """Counts by cell. Not safe for several threads."""

    __slots__ = ("counts",)

    def __init__(self, counts: array[int] | None = None) -> None:
        self.counts: array[int] = array("q", _ZEROS) if counts is None else counts
        if len(self.counts) != CELLS:
            raise ValueError(f"a histogram has {CELLS} cells, not {len(self.counts)}")

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
        inside = np.clip(seconds, LOWEST / 2, HIGHEST)
        cells = np.floor(np.log(inside) * _SCALE - _FIRST).astype(np.int64) + 1
        np.clip(cells, 0, OVER, out=cells)
        cells[seconds >= HIGHEST] = OVER
        self.view()[:] += np.bincount(cells, minlength=CELLS)

    def view(self) -> NDArray[np.int64]:
        """The counts as an array that shares their memory."""
        import numpy as np

        return np.frombuffer(self.counts, dtype=np.int64)

    def merge(self, other: LogHist) -> None:
        """Adds what another holds."""
        self.counts = array("q", map(int.__add__, self.counts, other.counts))

    def subtract(self, other: LogHist) -> None:
        """Takes away what another holds, which was merged before; ValueError if it was not."""
        left = array("q", map(int.__sub__, self.counts, other.counts))
        if min(left) < 0:
            raise ValueError("this histogram does not hold the other")
        self.counts = left

    @property
    def total(self) -> int:
        """How many durations it holds."""
        return sum(self.counts)

    def above(self, index: int) -> int:
        """How many lie in cells above this one."""
        return sum(self.counts[index + 1 :])

    def quantile(self, q: float) -> Quantile | None:
        """The smallest duration that a share of ``q`` does not exceed; None of nothing."""
        total = self.total
        if not total:
            return None
        rank = max(1, math.ceil(q * total - 1e-9))
        index = next(i for i, seen in enumerate(accumulate(self.counts)) if seen >= rank)
        return Quantile(middle(index), lower(index), upper(index))

    def filled(self) -> Iterator[tuple[int, int]]:
        """Cell and count of every cell that holds something, in their order."""
        return ((index, count) for index, count in enumerate(self.counts) if count)
