"""Tests of sidecar.drift.codec."""

from __future__ import annotations

import math
import random
import struct
import subprocess
import sys
from array import array
from binascii import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.drift.codec import LONGEST, decode, encode
from sidecar.loghist import CELLS, OVER, Damaged, cell
from sidecar.record import STRATA, THRESHOLDS, Record, step_of

counts = st.integers(1, 300) | st.integers(1, 2**50)
parts = st.lists(st.tuples(st.integers(0, OVER), st.integers(0, STRATA - 1), counts), max_size=120)


def of(found: list[tuple[int, int, int]], blocks: int = 1) -> Record:
    """A record of these cells, strata and counts, each part a block of its own."""
    record = Record()
    for where, stratum, count in found:
        record.hist.counts[where] += count
        record.strata[stratum][step_of(where)] += count
        for i in range(step_of(where) + 1):
            record.squares[i] += count
    record.blocks = min(blocks, record.hist.total)
    return record


def hour(seed: int, n: int = 3_600, strata: int = 4) -> Record:
    """An hour of latencies with a median of 350 ms, in 24 blocks."""
    rng, record = random.Random(seed), Record()
    for _ in range(24):
        seen = [0] * THRESHOLDS
        for _ in range(n // 24):
            where = cell(rng.lognormvariate(math.log(0.35), 0.45))
            record.hist.counts[where] += 1
            record.strata[rng.randrange(strata)][step_of(where)] += 1
            for i in range(step_of(where) + 1):
                seen[i] += 1
        for i, above in enumerate(seen):
            record.squares[i] += above * above / seen[0]
        record.blocks += 1
    return record


def assert_same(found: Record, record: Record) -> None:
    assert (found.hist, found.strata, found.blocks) == (record.hist, record.strata, record.blocks)
    assert list(found.squares) == pytest.approx(list(record.squares), rel=6e-8)


def sealed(data: bytes) -> bytes:
    """With the checksum of a record."""
    return data + struct.pack("<I", crc32(data))


HOUR = encode(hour(2))
OPEN = HOUR[:-4]


@settings(deadline=None)
@given(parts, st.integers(0, 300))
def test_a_record_comes_back(found: list[tuple[int, int, int]], blocks: int) -> None:
    """All counts exactly, squares as float32; a second time it is the same bytes."""
    record = of(found, blocks)
    data = encode(record)
    assert_same(decode(data), record)
    assert encode(decode(data)) == data


def test_nothing_comes_back_as_nothing() -> None:
    """And is short."""
    assert decode(encode(Record())) == Record()
    assert len(encode(Record())) < 25


@pytest.mark.parametrize(("strata", "most"), [(1, 400), (4, 460), (14, 660)])
@pytest.mark.parametrize("seed", range(3))
def test_an_hour_is_small(seed: int, strata: int, most: int) -> None:
    """With 3,600 requests, so that 1,000 series of a week stay below 100 MB: `bench detect` has
    strata as real requests spread over them.
    """
    record = hour(seed, strata=strata)
    data = encode(record)
    assert_same(decode(data), record)
    assert len(data) <= most


def test_the_longest_record_is_no_longer_than_allowed() -> None:
    """All cells, all strata in all steps, nearly 2**63 in all."""
    record = of([(i, kind, 2**44) for i in range(CELLS) for kind in range(STRATA)])
    record.squares = array("d", [record.hist.total * 0.9 ** (i + 1) for i in range(THRESHOLDS)])
    assert len(encode(record)) <= LONGEST
    assert_same(decode(encode(record)), record)


def test_what_is_cut_off_is_damaged_wherever_it_is() -> None:
    """Every shorter piece of it."""
    data = encode(hour(1))
    for end in range(len(data)):
        with pytest.raises(Damaged):
            decode(data[:end])


@pytest.mark.parametrize("more", [b"\0", b"\1", b"\x80\1", b"\0" * 50])
def test_what_follows_is_damage(more: bytes) -> None:
    """A record ends where its data ends, with a checksum or without."""
    with pytest.raises(Damaged):
        decode(HOUR + more)
    with pytest.raises(Damaged, match="follow the last step"):
        decode(sealed(OPEN + more))


@settings(deadline=None)
@given(st.binary(max_size=600))
def test_any_bytes_are_damaged_or_a_record(data: bytes) -> None:
    """Nothing else is raised, and what is decoded can be encoded."""
    try:
        record = decode(data)
    except Damaged as damage:
        assert str(damage)
    else:
        assert_same(decode(encode(record)), record)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=400), st.integers(0, 3), st.integers(0, 3))
def test_nor_do_they_raise_anything_else_between_a_good_head_and_a_checksum(
    body: bytes, equal: int, following: int
) -> None:
    """Which bytes alone hardly ever have."""
    try:
        record = decode(sealed(HOUR[:5] + bytes([equal, following]) + body))
    except Damaged:
        return
    assert_same(decode(encode(record)), record)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(HOUR) - 1), st.integers(1, 255))
def test_a_changed_byte_is_damage(at: int, change: int) -> None:
    """Any, even where the numbers make sense."""
    data = bytearray(HOUR)
    data[at] ^= change
    with pytest.raises(Damaged):
        decode(bytes(data))


def test_long_data_is_refused_before_it_is_read() -> None:
    """A hundred megabytes cost nothing."""
    with pytest.raises(Damaged, match="no record has more"):
        decode(HOUR + bytes(10**8))


def test_a_run_of_absurd_length_costs_nothing() -> None:
    """Neither time nor memory for what is not there."""
    huge = b"\xff" * 8 + b"\x7f"
    for body in (b"\0\1\0" + huge, b"\0" + huge, b"\0\1" + huge + b"\1\1", huge):
        with pytest.raises(Damaged):
            decode(sealed(HOUR[:5] + b"\0\0" + body))


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        pytest.param(b"", "head: 0 bytes", id="empty"),
        pytest.param(b"\3" + HOUR[1:], "version 3, which a later", id="newer"),
        pytest.param(b"\1" + HOUR[1:], "version 1, of an earlier model-probe", id="older"),
        pytest.param(b"\0" + HOUR[1:], "version 0; this one reads version 2", id="no version"),
        pytest.param(HOUR[:1] + b"abcd" + HOUR[5:], "another grid", id="other cells"),
        pytest.param(HOUR[:5] + b"\x28\0" + HOUR[7:], r"squares: 40 \+ 0 of 39", id="thresholds"),
        pytest.param(sealed(HOUR[:5] + b"\0\x07\0"), r"squares: 0 \+ 7 of 39", id="cut in squares"),
        pytest.param(sealed(HOUR[:5] + b"\0\0"), "blocks: the data ends", id="no blocks"),
        pytest.param(
            sealed(HOUR[:5] + b"\0\0\0\1\0\3\1"), "histogram: the data ends", id="in a row"
        ),
        pytest.param(sealed(HOUR[:5] + b"\0\0\x80"), "number 0: the data ends", id="in a number"),
        pytest.param(
            sealed(HOUR[:5] + b"\0\0" + b"\xff" * 9 + b"\1"), "nine bytes", id="ten bytes"
        ),
        pytest.param(sealed(HOUR[:5] + b"\0\0\0\1\0\0"), "a run from 0 to 0", id="no run"),
        pytest.param(
            sealed(HOUR[:5] + b"\0\0\0\1\xbb\x0a\2\1\1"), "from 1339 to 1341", id="beyond"
        ),
        pytest.param(sealed(OPEN[:-1]), r"step \d+: the data ends", id="the last row"),
        pytest.param(OPEN + b"abcd", "checksum", id="checksum"),
    ],
)
def test_damage_is_said_with_its_place(damage: bytes, where: str) -> None:
    """In words."""
    with pytest.raises(Damaged, match=where):
        decode(damage)


def patched(floats: list[float], equal: int = 0, body: bytes = b"") -> bytes:
    """The head of a record, these squares, and a request in cell 5 and stratum 0."""
    row = b"\1\5\1\1" + b"\1\0\1\1"
    packed = struct.pack(f"<{len(floats)}f", *floats)
    return sealed(HOUR[:5] + bytes([equal, len(floats)]) + packed + (body or b"\1" + row))


@pytest.mark.parametrize("squares", [[math.nan], [math.inf], [-1.0], [1.5], [0.5, 0.7], [-0.5, 0]])
def test_squares_that_cannot_be_are_damage(squares: list[float]) -> None:
    """No number, more than there are requests, or more above a higher threshold."""
    assert decode(patched([1.0])).hist.total == 1
    with pytest.raises(Damaged, match="squares: "):
        decode(patched(squares))


def test_strata_that_do_not_add_up_are_damage() -> None:
    """To the histogram, in each step."""
    for row in (b"\1\0\1\2", b"\2\0\1\1\0\1\1", b"\0"):
        body = b"\1\1\5\1\1" + row
        with pytest.raises(Damaged, match="strata: they do not add up"):
            decode(patched([], body=body))


def test_more_blocks_than_requests_are_damage() -> None:
    """A block held something."""
    body = b"\2\1\5\1\1" + b"\1\0\1\1"
    with pytest.raises(Damaged, match="blocks: 2 of 1"):
        decode(patched([], body=body))


def test_counts_that_sum_up_beyond_64_bits_are_damage() -> None:
    """Though each of them fits."""
    most = b"\xff" * 8 + b"\x7f"
    body = b"\0" + b"\1\0\2" + most + most + b"\1\0\1" + most
    with pytest.raises(Damaged, match=r"2\*\*63"):
        decode(patched([], body=body))


def negative() -> Record:
    record = of([(5, 0, 1), (6, 0, 1)])
    record.hist.counts[5] = -1
    record.hist.counts[6] = 3
    return record


def unlike() -> Record:
    record = of([(5, 0, 1)])
    record.strata[0][7] += 1
    return record


def beyond() -> Record:
    record = of([(5, 0, 1)])
    record.strata[STRATA] = record.strata.pop(0)
    return record


def growing() -> Record:
    record = of([(500, 0, 1)])
    record.squares[0] = 0.5
    return record


@pytest.mark.parametrize("wrong", [negative, unlike, beyond, growing])
def test_what_contradicts_itself_is_not_encoded(wrong: object) -> None:
    """It could not be decoded."""
    assert callable(wrong)
    with pytest.raises(ValueError, match=r"counts|strata|squares"):
        encode(wrong())


def test_encoding_needs_no_numpy() -> None:
    """The process that records does without."""
    script = (
        "import sys; from sidecar.drift.codec import decode, encode; from sidecar import record"
    )
    script += "; decode(encode(record.Record())); sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=50)
