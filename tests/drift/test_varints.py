"""Tests of sidecar.drift.varints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.drift.varints import Numbers, filled, packed, row_of
from sidecar.loghist import Damaged

counts = st.just(0) | st.integers(0, 300) | st.integers(0, 2**63 - 1)


@given(st.lists(st.lists(counts, max_size=40), max_size=5))
def test_rows_come_back(rows: list[list[int]]) -> None:
    """One after the other, whatever is between their runs."""
    numbers = Numbers(packed(number for row in rows for number in row_of(row)))
    for row in rows:
        found = [0] * len(row)
        for start, part in filled(numbers, len(row), "row"):
            found[start : start + len(part)] = part
        assert found == row
    numbers.finish()


def test_short_gaps_are_bridged() -> None:
    """A run costs two numbers, an empty cell one."""
    assert list(row_of([0, 7, 0, 0, 5, 0, 0, 0, 3])) == [2, 1, 4, 7, 0, 0, 5, 3, 1, 3]
    assert list(row_of([0, 0])) == [0]


@pytest.mark.parametrize(("number", "size"), [(0, 1), (127, 1), (128, 2), (2**63 - 1, 9)])
def test_seven_bits_a_byte(number: int, size: int) -> None:
    """Nine bytes hold whatever a record may."""
    assert len(packed([number])) == size
    assert Numbers(packed([number])).take(1, "it") == [number]


@pytest.mark.parametrize("data", [b"\x80", b"\xff" * 9 + b"\1", b"\1\0\0", b"\1\5\1\1", b"\2\0\1"])
def test_what_is_no_row_is_damage(data: bytes) -> None:
    """Cut short, too long a number, an empty run, or one beyond the row."""
    with pytest.raises(Damaged):
        list(filled(Numbers(data), 5, "row"))
