"""Tests of sidecar.record."""

from __future__ import annotations

import pytest

from sidecar.loghist import CELLS, OVER
from sidecar.record import ASKED, STEP, STRATA, THRESHOLDS, Record, step_of, stratum


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


@pytest.mark.parametrize(
    ("size", "kind"),
    [
        *((0, 0), (255, 0), (256, 1), (362, 1), (363, 2), (511, 2), (512, 3), (724, 3), (725, 4)),
        *((2_047, 6), (2_048, 7), (2**21 - 1, 26), (2**21, 27), (2**40, 27)),
    ],
)
def test_sizes_of_requests_are_told_apart_by_the_root_of_two(size: int, kind: int) -> None:
    """From 256 B to 2 MB; every factor of 4 from 512 B on begins with a kind of its own."""
    assert stratum(size) == kind


@pytest.mark.parametrize(
    ("events", "row"), [(0, 0), (1, 0), (2, 1), (7, 1), (8, 2), (31, 2), (8_191, 6), (8_192, 7)]
)
def test_lengths_of_answers_are_told_apart_by_four(events: int, row: int) -> None:
    """Below 2 token events, 8, 32 and so on, for each size of the request."""
    assert stratum(1_000, events) == ASKED * row + stratum(1_000)


def test_every_kind_is_one_of_as_many_as_there_are() -> None:
    """None is beyond them, and none is never used."""
    sizes = [int(1.2 * 2 ** (i / 2)) for i in range(60)]
    assert {stratum(size, 2**i) for size in sizes for i in range(20)} == set(range(STRATA))


def test_a_new_record_is_empty_and_shares_nothing() -> None:
    """Two records are two."""
    one, two = Record(), Record()
    one.strata[0][0] += 1
    one.strata[1][0] += 2
    one.hist.counts[0] += 3
    one.squares[0] += 1.0
    assert two == Record()
    assert two.hist.total == len(two.strata) == 0
    assert {kind: sum(row) for kind, row in one.strata.items()} == {0: 1, 1: 2}


def test_merging_adds_all_of_it() -> None:
    """Counts, strata, blocks and squares; the other is as it was."""
    one, two = made(500, 2, 11, 0.5), made(700, 5, 13, 0.25)
    one.merge(two)
    assert two == made(700, 5, 13, 0.25)
    assert (one.hist.counts[500], one.hist.counts[700], one.hist.total) == (11, 13, 24)
    assert (one.strata[2][step_of(500)], one.strata[5][step_of(700)]) == (11, 13)
    assert sum(map(sum, one.strata.values())) == 24
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
