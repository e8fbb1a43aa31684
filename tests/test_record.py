"""Tests of sidecar.record."""

from __future__ import annotations

import pytest

from sidecar.loghist import CELLS, OVER
from sidecar.record import STEP, STRATA, THRESHOLDS, Record, step_of


def made(where: int, stratum: int, times: int, squares: float) -> Record:
    record = Record()
    record.hist.counts[where] += times
    record.strata[stratum][step_of(where)] += times
    record.blocks += 1
    record.squares[3] += squares
    return record


def test_every_cell_has_a_step() -> None:
    """Steps are STEP cells wide; the last holds what is above the range."""
    assert [step_of(i * STEP) for i in range(THRESHOLDS)] == list(range(THRESHOLDS))
    assert step_of(STEP - 1) == 0
    assert step_of(OVER) == THRESHOLDS - 1
    assert THRESHOLDS * STEP >= CELLS


def test_a_new_record_is_empty_and_shares_nothing() -> None:
    """Two records are two."""
    one, two = Record(), Record()
    one.strata[0][0] += 1
    one.strata[1][0] += 2
    one.hist.counts[0] += 3
    one.squares[0] += 1.0
    assert two == Record()
    assert two.hist.total == sum(map(sum, two.strata)) == 0
    assert len(two.strata) == STRATA
    assert one.strata[2][0] == 0


def test_merging_adds_all_of_it() -> None:
    """Counts, strata, blocks and squares; the other is as it was."""
    one, two = made(500, 2, 11, 0.5), made(700, 5, 13, 0.25)
    one.merge(two)
    assert two == made(700, 5, 13, 0.25)
    assert (one.hist.counts[500], one.hist.counts[700], one.hist.total) == (11, 13, 24)
    assert (one.strata[2][step_of(500)], one.strata[5][step_of(700)]) == (11, 13)
    assert sum(map(sum, one.strata)) == 24
    assert (one.blocks, one.squares[3]) == (2, 0.75)


def test_merging_is_commutative() -> None:
    """Whichever holds the sum."""
    left, right = made(500, 2, 11, 0.5), made(700, 5, 13, 0.25)
    left.merge(made(700, 5, 13, 0.25))
    right.merge(made(500, 2, 11, 0.5))
    assert left == right


def test_what_would_overflow_changes_nothing() -> None:
    """Strata, blocks and squares neither."""
    full = made(500, 2, 2**62, 0.5)
    with pytest.raises(OverflowError):
        full.merge(made(700, 5, 2**62, 0.25))
    assert full == made(500, 2, 2**62, 0.5)
