"""Tests of sidecar.loghist."""

from __future__ import annotations

import math
import pickle
from array import array
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar import loghist
from sidecar.loghist import CELLS, HIGHEST, LOWEST, OVER, LogHist, cell, lower, middle, upper

NEIGHBOURS = [
    near
    for index in range(1, CELLS)
    for edge in (lower(index),)
    for near in (math.nextafter(edge, 0.0), edge, math.nextafter(edge, math.inf))
]
ODD = [0.0, -0.0, 5e-324, 2.2e-308, 1e-3, 599.999, 600.0, 605.2, 1e308, math.inf]
MOST = 2**63 - 1
durations = (
    st.floats(min_value=0.0, allow_infinity=True)
    | st.floats(LOWEST / 2, HIGHEST * 2)
    | st.sampled_from(NEIGHBOURS + ODD)
)
many = st.lists(durations, max_size=200)
shares = st.integers(0, 10_000).map(lambda number: Fraction(number, 10_000))


def of(values: list[float]) -> LogHist:
    hist = LogHist()
    for value in values:
        hist.add(value)
    return hist


@given(durations)
def test_a_duration_lies_in_its_cell(seconds: float) -> None:
    """At least its lower bound and below the upper one, for every float there is."""
    index = cell(seconds)
    assert lower(index) <= seconds
    assert seconds < upper(index) or (index == OVER and seconds == math.inf)


def test_next_to_an_edge_no_duration_is_on_its_wrong_side() -> None:
    """All 1,339 edges with the floats before and after them."""
    for seconds in NEIGHBOURS:
        assert lower(cell(seconds)) <= seconds < upper(cell(seconds))


def test_cells_are_contiguous_and_of_one_per_cent() -> None:
    """From 1 ms to 600 s; the last one below 600 s is cut short there."""
    assert (lower(0), upper(0), lower(OVER), upper(OVER)) == (0.0, LOWEST, HIGHEST, math.inf)
    for index in range(1, OVER):
        assert upper(index - 1) == lower(index) < upper(index)
        assert upper(index) / lower(index) <= loghist.GAMMA * (1 + 1e-12)
    assert CELLS == 1_340


def test_cells_beyond_the_ends_are_those_at_the_ends() -> None:
    """So that arithmetic on cells needs no check."""
    assert (lower(-3), upper(-3), middle(-3)) == (0.0, LOWEST, LOWEST)
    assert (lower(CELLS + 7), upper(CELLS + 7), middle(CELLS + 7)) == (HIGHEST, math.inf, HIGHEST)


@given(durations.filter(lambda seconds: LOWEST <= seconds < HIGHEST))
def test_a_cell_stands_for_its_durations_within_half_a_per_cent(seconds: float) -> None:
    """Inside the range."""
    assert abs(middle(cell(seconds)) - seconds) <= 0.005 * seconds


@given(st.lists(durations, min_size=1, max_size=200), shares)
def test_the_bounds_of_a_quantile_hold_the_sorted_one(values: list[float], q: Fraction) -> None:
    """The smallest of the durations that a share of q does not exceed, found by sorting."""
    true = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    found = of(values).quantile(float(q))
    assert found is not None
    assert found.lower <= true <= found.upper
    assert found.lower <= found.value <= found.upper
    if LOWEST <= true < HIGHEST:
        assert abs(found.value - true) <= 0.005 * true


@pytest.mark.parametrize("n", [100, 1_000, 10**9])
def test_a_share_is_the_decimal_that_was_meant(n: int) -> None:
    """In floats 0.07 * 100 is above 7, but 7 of 100 are enough."""
    for percent in range(1, 100):
        hist, fast = LogHist(), percent * n // 100
        hist.add(0.5, fast)
        hist.add(50.0, n - fast)
        enough, more = hist.quantile(percent / 100), hist.quantile((fast + 1) / n)
        assert enough is not None
        assert more is not None
        assert (enough.value, more.value) == (middle(cell(0.5)), middle(cell(50.0)))


def test_nothing_has_no_quantile() -> None:
    """Nor is it zero."""
    assert LogHist().quantile(0.5) is None


@pytest.mark.parametrize("q", [-1e-9, 1.0000001, math.nan, math.inf])
def test_what_is_no_share_is_refused(q: float) -> None:
    """By name."""
    with pytest.raises(ValueError, match="no share"):
        of([0.1]).quantile(q)


@given(many)
def test_one_by_one_and_in_bulk_count_the_same(values: list[float]) -> None:
    """Whatever comes, edges and both ends included."""
    bulk = LogHist()
    bulk.add_many(np.array(values, dtype=np.float64))
    assert bulk == of(values)
    assert bulk.total == len(values)


def test_one_by_one_and_in_bulk_agree_next_to_edges() -> None:
    """All of them."""
    bulk = LogHist()
    bulk.add_many(np.array(NEIGHBOURS + ODD).reshape(-1, 1))
    assert bulk == of(NEIGHBOURS + ODD)


@pytest.mark.parametrize("wrong", [math.nan, -5e-324, -1.0, -math.inf])
def test_what_is_no_duration_is_refused_and_nothing_counted(wrong: float) -> None:
    """Alone and among others."""
    hist = of([0.3])
    with pytest.raises(ValueError, match="no duration"):
        hist.add(wrong)
    with pytest.raises(ValueError, match="durations"):
        hist.add_many(np.array([0.1, wrong, 0.2]))
    assert hist == of([0.3])


@given(many, many, many)
def test_merging_is_commutative_and_associative(
    one: list[float], two: list[float], three: list[float]
) -> None:
    """And the same as counting all of it at once."""
    left, right = of(one), of(three)
    left.merge(of(two))
    left.merge(of(three))
    right.merge(of(two))
    right.merge(of(one))
    assert left == right == of(one + two + three)


@given(many, many)
def test_subtracting_undoes_merging(one: list[float], two: list[float]) -> None:
    """To the last count."""
    hist = of(one)
    hist.merge(of(two))
    hist.subtract(of(two))
    assert hist == of(one)


def test_what_was_not_merged_cannot_be_subtracted() -> None:
    """And nothing is."""
    hist = of([0.1, 0.1, 7.0])
    with pytest.raises(ValueError, match="does not hold"):
        hist.subtract(of([0.1, 11.0]))
    assert hist == of([0.1, 0.1, 7.0])


def test_a_histogram_merges_with_itself() -> None:
    """It doubles, and minus itself it is empty."""
    hist = of([0.1, 7.0])
    hist.merge(hist)
    assert hist == of([0.1, 0.1, 7.0, 7.0])
    hist.subtract(hist)
    assert hist == LogHist()


def test_a_count_never_wraps_around() -> None:
    """OverflowError, and all counts are as before."""
    hist, other = LogHist(), of([0.1])
    hist.add(0.1, MOST)
    before = LogHist(array("q", hist.counts))
    with pytest.raises(OverflowError):
        hist.add(0.1)
    with pytest.raises(OverflowError):
        hist.merge(other)
    with pytest.raises(OverflowError):
        hist.add_many(np.array([0.1, 0.2]))
    assert hist == before


def test_a_sum_of_counts_never_wraps_around() -> None:
    """Cells that each fit may not together."""
    hist, other = LogHist(), LogHist()
    hist.add(0.1, 2**62)
    other.add(0.2, 2**62)
    with pytest.raises(OverflowError):
        hist.merge(other)
    assert hist.total == 2**62


@given(many, st.integers(-2, CELLS + 2))
def test_above_counts_the_cells_above(values: list[float], index: int) -> None:
    """That cell itself is not among them."""
    assert of(values).above(index) == sum(cell(value) > index for value in values)


@given(many)
def test_filled_cells_are_all_there_is(values: list[float]) -> None:
    """In their order, none of them empty."""
    hist, again = of(values), LogHist()
    for index, count in hist.filled():
        assert count > 0
        again.counts[index] = count
    assert again == hist
    assert [i for i, _ in hist.filled()] == sorted({cell(value) for value in values})


def test_a_view_is_the_counts_themselves() -> None:
    """What is written there is counted, and stays so after a merge."""
    hist = LogHist()
    view = hist.view()
    view[7] += 3
    hist.merge(of([0.5]))
    assert hist.total == 4
    assert view[cell(0.5)] == 1


@pytest.mark.parametrize("counts", [array("q", [0] * 7), array("d", [0.0] * CELLS)])
def test_other_cells_than_ours_are_refused(counts: array[int]) -> None:
    """Too few, or no integers."""
    with pytest.raises(ValueError, match=r"1340 cells of type 'q'"):
        LogHist(counts)


def test_a_histogram_travels() -> None:
    """Between processes, as it is."""
    hist = of([0.1, 0.5, math.inf])
    assert pickle.loads(pickle.dumps(hist)) == hist  # noqa: S301  # our own bytes
