"""Tests of sidecar.drift.stretch and sidecar.drift.quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar import loghist
from sidecar.drift import quantiles
from sidecar.drift.stretch import Stretch, sum_of
from sidecar.record import Record, step_of
from tests.drift.hours import stretch

durations = st.lists(st.floats(0, 700), min_size=1, max_size=50)
weights = st.floats(0.01, 10)


def record(seconds: list[float]) -> Record:
    """As a recorder leaves it after one block, all of kind 2."""
    made = Record()
    for one in seconds:
        made.strata[2][step_of(made.hist.add(one))] += 1
    above = [sum(made.strata[2][i:]) for i in range(len(made.squares))]
    for i, k in enumerate(above):
        made.squares[i] = k * k / len(seconds)
    made.blocks = 1
    return made


@given(durations)
def test_samples_in_bulk_make_what_a_record_makes(seconds: list[float]) -> None:
    """One block of one kind, either way."""
    one = Stretch.of(record(seconds))
    zeros = np.zeros(len(seconds), np.int64)
    other = Stretch.sampled(np.array(seconds), zeros, zeros + 2)
    assert np.array_equal(one.counts, other.counts)
    assert np.array_equal(one.strata, other.strata)
    assert np.allclose(one.squares, other.squares)
    assert (one.blocks, one.n, one.spread) == (other.blocks, other.n, other.spread)


@given(durations, weights, weights)
def test_weights_of_one_stretch_add_up(seconds: list[float], a: float, b: float) -> None:
    """Counts are linear in the weight, the spread is not: it goes with the square."""
    whole = Stretch.of(record(seconds))
    both = whole.weighted(a) + whole.weighted(b)
    assert np.allclose(both.counts, whole.weighted(a + b).counts)
    assert both.spread == pytest.approx((a * a + b * b) * len(seconds))


@given(durations, durations, weights)
def test_the_effective_size_is_known_to_lie(a: list[float], b: list[float], w: float) -> None:
    """A weighted sum is worth at most all the requests in it, and no scale changes that."""
    one = Stretch.of(record(a), w) + Stretch.of(record(b))
    assert one.size <= (len(a) + len(b)) * (1 + 1e-9)
    assert one.weighted(3.0).size == pytest.approx(one.size)
    assert Stretch.of(record(a), w).size == pytest.approx(len(a))


def test_kinds_are_joined_by_their_numbers() -> None:
    """Those of one stretch, of the other, and of both."""
    one, other = stretch(np.full(5, 0.3), [3, 3, 3, 9, 9]), stretch(np.full(4, 0.3), [0, 9, 9, 200])
    both = sum_of([one, other, Stretch.empty()])
    assert both.kinds.tolist() == [0, 3, 9, 200]
    assert both.strata.sum(axis=1).tolist() == [1, 3, 4, 1]
    assert np.array_equal((one + other).strata, both.strata)


def test_an_hour_that_straddles_two_varies_less_than_its_count() -> None:
    """Half of each of two hours of 3,600: as many requests, worth 7,200."""
    rng = np.random.default_rng(1)
    hour = stretch(rng.random(3_600))
    between = hour.weighted(0.5) + hour.weighted(0.5)
    assert (between.n, between.size) == (3_600, 7_200)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_no_weight(weight: float) -> None:
    """Below 0, or no number."""
    with pytest.raises(ValueError, match="no weight"):
        Stretch.of(Record(), weight)


def test_a_record_that_disagrees_with_itself() -> None:
    """A histogram without its strata is not taken for one."""
    made = Record()
    made.hist.add(1.0)
    with pytest.raises(ValueError, match="do not add up"):
        Stretch.of(made)


def test_nothing() -> None:
    """An empty sum holds nothing, and is worth nothing."""
    assert (sum_of([]).n, sum_of([]).size) == (0.0, 0.0)


@given(durations, st.floats(0.001, 0.999))
def test_a_quantile_is_that_of_the_histogram(seconds: list[float], q: float) -> None:
    """The same cell, also when the counts carry a weight."""
    made = record(seconds)
    expected = made.hist.quantile(q)
    assert expected is not None
    for weight in (1.0, 0.3):
        cumulative = np.cumsum(Stretch.of(made, weight).counts)
        assert quantiles.seconds_of(cumulative, q) == expected.value


def test_above_every_duration() -> None:
    """From 1 on, as an upper bound may be, a quantile is above the range."""
    assert quantiles.cell_of(np.cumsum(stretch(np.ones(9)).counts), 1.0) == loghist.OVER


def test_intervals_of_a_difference_hold_it() -> None:
    """Of 400 pairs of hours, 95 % hold the true difference of their P95, within chance."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(400):
        then, now = (np.cumsum(stretch(rng.exponential(s, 2_000)).counts) for s in (0.5, 0.6))
        change = quantiles.change(
            quantiles.between(now, 0.95, 2_000, 1.96),
            quantiles.between(then, 0.95, 2_000, 1.96),
            0.1,
        )
        held += change.lower <= 0.1 * math.log(20) <= change.upper
    assert 0.925 < held / 400 < 0.98
