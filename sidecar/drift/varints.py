"""Rows of counts as varints: seven bits a byte, the lowest first, and only what is filled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sidecar.loghist import Damaged

_BRIDGE = 2  # empty cells cost a byte each within a run, and a new run costs two
_MORE, _BITS = 0x80, 0x7F


def row_of(counts: Sequence[int]) -> Iterator[int]:
    """A row: how many runs, and of each how many cells lie before it, how many it has, and them."""
    runs, done = list(_runs(counts)), 0
    yield len(runs)
    for start, end in runs:
        yield start - done
        yield end - start
        yield from counts[start:end]
        done = end


def _runs(row: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where cells are filled, from and to, short gaps among them included."""
    start = end = -1
    for index, count in enumerate(row):
        if not count:
            continue
        if start < 0:
            start = index
        elif index - end > _BRIDGE:
            yield start, end
            start = index
        end = index + 1
    if start >= 0:
        yield start, end


def packed(numbers: Iterable[int]) -> bytes:
    """Numbers from 0 on, one after the other."""
    data = bytearray()
    for number in numbers:
        rest = number
        while rest >= _MORE:
            data.append(rest & _BITS | _MORE)
            rest >>= 7
        data.append(rest)
    return bytes(data)


class Numbers:
    """Varints, taken one after the other. Raises Damaged for what are none."""

    def __init__(self, data: bytes) -> None:
        self._values: list[int] = []
        self._at = value = shift = 0
        for byte in data:
            if byte < _MORE:
                self._values.append(value | byte << shift if shift else byte)
                value = shift = 0
            elif shift == 56:
                raise Damaged(f"number {len(self._values)}: it goes on after nine bytes")
            else:
                value |= (byte & _BITS) << shift
                shift += 7
        if shift:
            raise Damaged(f"number {len(self._values)}: the data ends within it")

    def take(self, count: int, what: str) -> list[int]:
        """So many of them, of ``what`` they are. Raises Damaged."""
        start, self._at = self._at, self._at + count
        if self._at > len(self._values):
            raise Damaged(f"{what}: the data ends within it")
        return self._values[start : self._at]

    def finish(self) -> None:
        """Raises Damaged where some are left."""
        if self._at < len(self._values):
            raise Damaged(f"{len(self._values) - self._at} numbers follow the last step")


def filled(numbers: Numbers, size: int, what: str) -> Iterator[tuple[int, list[int]]]:
    """The runs of a row of so many cells: where each starts, and its counts. Raises Damaged."""
    end = 0
    (runs,) = numbers.take(1, what)
    for _ in range(runs):  # as many as there are numbers for: a run takes three or more
        skipped, length = numbers.take(2, what)
        start = end + skipped
        end = start + length
        if not length or end > size:
            raise Damaged(f"{what}: a run from {start} to {end} of {size} cells")
        yield start, numbers.take(length, what)
