"""A record as bytes: some 420 where an hour held 3,600 requests, as they are kept and sent.

A version, the grid of cells, the sums of squares as float32, then nothing but varints (seven bits a
byte, the lowest first): blocks, and the rows of counts as runs of cells that hold something. At the
end a checksum. No NumPy, which the sidecar's own process does without.
"""

from __future__ import annotations

import struct
from array import array
from binascii import crc32
from collections.abc import Iterable, Iterator, Sequence

from sidecar import loghist
from sidecar.loghist import CELLS, Damaged, LogHist
from sidecar.record import STEP, STRATA, THRESHOLDS, Record

VERSION = 1
LONGEST = 2**14  # bytes; counts that sum up to less than 2**63 take fewer
_GRID = crc32(repr((loghist.GAMMA, loghist.LOWEST, CELLS, STEP, THRESHOLDS, STRATA)).encode())
_HEAD = struct.Struct("<BIBB")  # version, grid, thresholds that all exceed, sums that follow
_SUM = struct.Struct("<I")
_BRIDGE = 2  # empty cells cost a byte each within a run, and a new run costs two
_ROUNDING = 1 + 1e-6  # of a float32 is 6e-8
_MORE, _BITS = 0x80, 0x7F


def encode(record: Record) -> bytes:
    """The record without what float32 rounds off its squares, 6e-8 of each. Raises ValueError for
    one that contradicts itself.
    """
    wrong = _contradiction(record)
    if wrong:
        raise ValueError(wrong)
    numbers = [record.blocks]
    for row in (record.hist.counts, *record.strata):
        runs = list(_runs(row))
        numbers.append(len(runs))
        done = 0
        for start, end in runs:
            numbers += (start - done, end - start, *row[start:end])
            done = end
    # Thresholds below all durations have the total as their sum: one number says how many.
    squares = list(record.squares)
    while squares and not squares[-1]:
        squares.pop()
    total = record.hist.total
    equal = next((i for i, square in enumerate(squares) if square != total), len(squares))
    head = _HEAD.pack(VERSION, _GRID, equal, len(squares) - equal)
    sums = struct.pack(f"<{len(squares) - equal}f", *squares[equal:])
    data = head + sums + _varints(numbers)
    return data + _SUM.pack(crc32(data))


def decode(data: bytes) -> Record:
    """What was encoded. Raises Damaged, in bounded time and memory, for anything else."""
    if len(data) < _HEAD.size:
        raise Damaged(f"head: {len(data)} bytes instead of {_HEAD.size}")
    if len(data) > LONGEST:
        raise Damaged(f"{len(data)} bytes: no record has more than {LONGEST}")
    version, grid, equal, following = _HEAD.unpack_from(data)
    if version != VERSION:
        newer = ", which a later model-probe writes" if version > VERSION else ""
        raise Damaged(f"head: version {version}{newer}; this one reads version {VERSION}")
    if grid != _GRID:
        raise Damaged("head: made with another grid of cells")
    end = _HEAD.size + 4 * following
    if equal + following > THRESHOLDS or end + _SUM.size > len(data):
        raise Damaged(f"squares: {equal} + {following} of {THRESHOLDS}, in {len(data)} bytes")
    sums = struct.unpack_from(f"<{following}f", data, _HEAD.size)
    numbers = _Numbers(data[end : -_SUM.size])
    (blocks,) = numbers.take(1, "blocks")
    hist = LogHist(_row(numbers, CELLS, "histogram"))
    strata = [_row(numbers, THRESHOLDS, f"stratum {i}") for i in range(STRATA)]
    numbers.finish()
    squares = [float(hist.total)] * equal + [*sums] + [0.0] * (THRESHOLDS - equal - following)
    record = Record(hist, strata, blocks, array("d", squares))
    wrong = _contradiction(record)
    if not wrong and _SUM.unpack(data[-_SUM.size :]) != (crc32(data[: -_SUM.size]),):
        wrong = "checksum: it is that of other data"
    if wrong:
        raise Damaged(wrong)
    return record


def _contradiction(record: Record) -> str:
    """Where a record is not what its class promises; empty if it is."""
    counts, total = record.hist.counts, record.hist.total
    if min(counts) < 0 or any(min(row) < 0 for row in record.strata):
        return "counts: one is below 0"
    if total >= 2**63:
        return "histogram: it holds 2**63 or more"
    for step, column in enumerate(zip(*record.strata, strict=True)):
        if sum(column) != sum(counts[step * STEP : (step + 1) * STEP]):
            return f"strata: they do not add up to the histogram in step {step}"
    if not 0 <= record.blocks <= total:
        return f"blocks: {record.blocks} of {total} requests"
    above = float(total)
    for i, square in enumerate(record.squares):
        if not 0.0 <= square <= above * _ROUNDING:  # nor NaN
            return f"squares: {square} at threshold {i}, below which there is {above}"
        above = square
    return ""


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


def _varints(numbers: Iterable[int]) -> bytes:
    data = bytearray()
    for number in numbers:
        rest = number
        while rest >= _MORE:
            data.append(rest & _BITS | _MORE)
            rest >>= 7
        data.append(rest)
    return bytes(data)


class _Numbers:
    """Varints, taken one after the other."""

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
        start, self._at = self._at, self._at + count
        if self._at > len(self._values):
            raise Damaged(f"{what}: the data ends within it")
        return self._values[start : self._at]

    def finish(self) -> None:
        if self._at < len(self._values):
            raise Damaged(f"{len(self._values) - self._at} numbers follow the last stratum")


def _row(numbers: _Numbers, size: int, what: str) -> array[int]:
    row = array("q", bytes(8 * size))
    end = 0
    (runs,) = numbers.take(1, what)
    for _ in range(runs):  # as many as there are numbers for: a run takes three or more
        skipped, length = numbers.take(2, what)
        start = end + skipped
        end = start + length
        if not length or end > size:
            raise Damaged(f"{what}: a run from {start} to {end} of {size} cells")
        row[start:end] = array("q", numbers.take(length, what))
    return row
