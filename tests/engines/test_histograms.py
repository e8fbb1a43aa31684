"""Tests of sidecar.engines.histograms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.engines import canonical
from sidecar.engines.histograms import Parts, build, difference, quantile, together
from sidecar.engines.table import Name
from sidecar.signals import Histogram

E2E = Name("e2e", canonical.E2E)
INF = math.inf
Bucket = tuple[str | None, float]


def parts(buckets: list[Bucket], total: float | None = 7.0, number: float | None = None) -> Parts:
    """The series of one histogram as they come."""
    made = Parts()
    for le, value in buckets:
        made.add("bucket", le, value)
    if total is not None:
        made.add("sum", None, total)
    if number is not None:
        made.add("count", None, number)
    return made


def histogram(bounds: tuple[float, ...], counts: tuple[int, ...], total: float = 7.0) -> Histogram:
    return Histogram(canonical.E2E.name, bounds, counts, total)


def counted(bounds: list[float], values: list[float]) -> Histogram:
    """What a client library counts of these values."""
    ends = (*sorted(set(bounds)), INF)
    return histogram(ends, tuple(sum(v <= end for v in values) for end in ends), sum(values))


def test_bounds_are_as_found_and_in_order() -> None:
    """Whatever the engine was told to use, and in whatever order they come."""
    found = build(E2E, (), parts([("+Inf", 13), ("0.3", 2), ("1e1", 11)]))
    assert found == Histogram(E2E.metric.name, (0.3, 10.0, INF), (2, 11, 13), 7.0, ())


@pytest.mark.parametrize(
    ("buckets", "total", "number"),
    [
        pytest.param([("1", 5), ("+Inf", 3)], 7, None, id="a bound counts fewer than a lower one"),
        pytest.param([("1", 5)], 7, 3, id="fewer in all than below a bound"),
        pytest.param([("1", 5), ("+Inf", 7)], None, 7, id="no sum"),
        pytest.param([("1", 5)], 7, None, id="no number"),
        pytest.param([], 7, None, id="a sum alone"),
    ],
)
def test_parts_that_do_not_fit_are_no_histogram(
    buckets: list[Bucket], total: float | None, number: float | None
) -> None:
    """Half of one, or one that contradicts itself, is left out."""
    assert build(E2E, (), parts(buckets, total, number)) is None


@pytest.mark.parametrize("le", [None, "", "x", "NaN", "-1", "-Inf"])
def test_a_bound_that_is_none_is_left_out(le: str | None) -> None:
    """The others stay: nothing that is counted here is below zero."""
    found = build(E2E, (), parts([(le, 1), ("2", 3), ("+Inf", 5)]))
    assert found is not None
    assert (found.bounds, found.counts) == ((2.0, INF), (3, 5))


def test_a_summary_has_one_bucket_and_no_quantile() -> None:
    """Its sum and number are good."""
    found = build(E2E, (), parts([], 7, 581))
    assert found is not None
    assert (found.bounds, found.counts, found.sum) == ((INF,), (581,), 7)
    assert quantile(found, 0.5) is None


def test_the_difference_is_what_was_observed_in_between() -> None:
    """Bound by bound."""
    later, earlier = histogram((1, INF), (11, 19), 31), histogram((1, INF), (3, 7), 13)
    assert difference(later, earlier) == histogram((1, INF), (8, 12), 18)


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(histogram((1, INF), (2, 5), 3), id="it starts anew"),
        pytest.param(histogram((2, INF), (5, 11), 17), id="other bounds"),
        pytest.param(histogram((1, 2, INF), (5, 6, 11), 17), id="more bounds"),
        pytest.param(histogram((1, INF), (5, 5), 17), id="it lost some above the bound"),
        pytest.param(histogram((1, INF), (5, 11), 3), id="its sum went back"),
    ],
)
def test_there_is_no_difference_to_another_histogram(later: Histogram) -> None:
    """After a reset or a change of bounds nothing is computed."""
    assert difference(later, histogram((1, INF), (3, 7), 13)) is None


_SECONDS = st.floats(0, 100, allow_nan=False)


@given(
    st.lists(_SECONDS, min_size=1, max_size=60),
    st.lists(st.floats(0.001, 90), min_size=1, max_size=12),
    st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]),
)
def test_the_true_quantile_lies_between_the_bounds(
    values: list[float], bounds: list[float], q: float
) -> None:
    """Of any data and any bounds; the upper one is infinite when it is in the last bucket."""
    true = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    between = quantile(counted(bounds, values), q)
    assert between is not None
    lower, upper = between
    assert lower <= true <= upper
    assert lower < upper


def test_nothing_observed_has_no_quantile() -> None:
    """0/0 is neither 0 nor NaN."""
    assert quantile(histogram((1, INF), (0, 0), 0), 0.5) is None


@given(st.lists(_SECONDS, max_size=30), st.lists(_SECONDS, max_size=30))
def test_two_histograms_are_one_of_all_values(one: list[float], other: list[float]) -> None:
    """Bound by bound, with the sums."""
    bounds = [0.5, 3, 17]
    joined = together([counted(bounds, one), counted(bounds, other)])
    whole = counted(bounds, one + other)
    assert joined is not None
    assert (joined.bounds, joined.counts) == (whole.bounds, whole.counts)
    assert joined.sum == pytest.approx(whole.sum)


def test_histograms_with_other_bounds_are_not_one() -> None:
    """Nothing is guessed about what lies in between."""
    assert together([histogram((1, INF), (1, 2)), histogram((2, INF), (1, 2))]) is None
