"""A record as bytes: 300 to 1,100 where an hour held 3,600 requests, as they are kept and sent.

A version, the grid of cells, the sums of squares as float32, then nothing but varints: blocks, the
histogram, and of each of its steps how many are of each stratum, all as runs of cells that hold
something. At the end a checksum. No NumPy, which the sidecar's own process does without.
"""

from __future__ import annotations

import struct
from array import array
from binascii import crc32
from collections.abc import Iterator

from sidecar import loghist
from sidecar.drift.varints import Numbers, filled, packed, row_of
from sidecar.loghist import CELLS, Damaged, LogHist
from sidecar.record import ANSWERED, ASKED, STEP, STRATA, THRESHOLDS, Record, Strata, zeros

VERSION = 2  # 1 had eight strata, each a factor of 4 wide: what lies in one cannot be parted
LONGEST = 2**17  # bytes; counts that sum up to less than 2**63 take fewer
_KINDS = (ANSWERED, ASKED)
_GRID = crc32(repr((loghist.GAMMA, loghist.LOWEST, CELLS, STEP, THRESHOLDS, _KINDS)).encode())
_HEAD = struct.Struct("<BIBB")  # version, grid, thresholds that all exceed, sums that follow
_SUM = struct.Struct("<I")
_ROUNDING = 1 + 1e-6  # of a float32 is 6e-8


class Outdated(Damaged):
    """It is well, and an earlier version made it: what it says cannot be told in today's terms."""


def encode(record: Record) -> bytes:
    """The record without what float32 rounds off its squares, 6e-8 of each. Raises ValueError for
    one that contradicts itself.
    """
    wrong = _contradiction(record)
    if wrong:
        raise ValueError(wrong)
    numbers = [record.blocks, *row_of(record.hist.counts)]
    for column in _columns(record):
        numbers += row_of(column)
    # Thresholds below all durations have the total as their sum: one number says how many.
    squares = list(record.squares)
    while squares and not squares[-1]:
        squares.pop()
    total = record.hist.total
    equal = next((i for i, square in enumerate(squares) if square != total), len(squares))
    head = _HEAD.pack(VERSION, _GRID, equal, len(squares) - equal)
    sums = struct.pack(f"<{len(squares) - equal}f", *squares[equal:])
    data = head + sums + packed(numbers)
    return data + _SUM.pack(crc32(data))


def decode(data: bytes) -> Record:
    """What was encoded. Raises Damaged, in bounded time and memory, for anything else; of that
    Outdated for what an earlier version wrote.
    """
    if len(data) < _HEAD.size:
        raise Damaged(f"head: {len(data)} bytes instead of {_HEAD.size}")
    if len(data) > LONGEST:
        raise Damaged(f"{len(data)} bytes: no record has more than {LONGEST}")
    version, grid, equal, following = _HEAD.unpack_from(data)
    if 0 < version < VERSION:
        raise Outdated(f"head: version {version}, of an earlier model-probe; this reads {VERSION}")
    if version != VERSION:
        newer = ", which a later model-probe writes" if version > VERSION else ""
        raise Damaged(f"head: version {version}{newer}; this one reads version {VERSION}")
    if grid != _GRID:
        raise Damaged("head: made with another grid of cells")
    end = _HEAD.size + 4 * following
    if equal + following > THRESHOLDS or end + _SUM.size > len(data):
        raise Damaged(f"squares: {equal} + {following} of {THRESHOLDS}, in {len(data)} bytes")
    sums = struct.unpack_from(f"<{following}f", data, _HEAD.size)
    numbers = Numbers(data[end : -_SUM.size])
    (blocks,) = numbers.take(1, "blocks")
    hist = _hist(numbers)
    strata = _strata(numbers, _steps(hist))
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
    if min(counts) < 0 or any(min(row) < 0 for row in record.strata.values()):
        return "counts: one is below 0"
    if total >= 2**63:
        return "histogram: it holds 2**63 or more"
    if not all(0 <= kind < STRATA for kind in record.strata):
        return f"strata: one is beyond the {STRATA} that there are"
    for step, column in enumerate(zip(zeros(), *record.strata.values(), strict=True)):
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


def _columns(record: Record) -> Iterator[list[int]]:
    """Of each step that is filled the counts of all strata: neighbours are alike in it, so that
    there are fewer runs than in the rows of strata, of which many hold a request or two.
    """
    for step in _steps(record.hist):
        column = [0] * STRATA
        for kind, row in record.strata.items():
            column[kind] = row[step]
        yield column


def _steps(hist: LogHist) -> list[int]:
    """Those that hold something."""
    return [i for i in range(THRESHOLDS) if any(hist.counts[i * STEP : (i + 1) * STEP])]


def _hist(numbers: Numbers) -> LogHist:
    found = LogHist()
    for start, counts in filled(numbers, CELLS, "histogram"):
        found.counts[start : start + len(counts)] = array("q", counts)
    return found


def _strata(numbers: Numbers, steps: list[int]) -> Strata:
    strata = Strata(zeros)
    for step in steps:
        for start, counts in filled(numbers, STRATA, f"step {step}"):
            for kind, count in enumerate(counts, start):
                if count:
                    strata[kind][step] = count
    return strata
