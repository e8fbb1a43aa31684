"""Tests of sidecar.engines.increases."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from sidecar.engines.increases import Increases
from sidecar.signals import Histogram, Sample

INF = float("inf")


def counter(value: float, name: str = "x_total") -> Sample:
    return Sample(name, value)


def histogram(*counts: int, bounds: tuple[float, ...] = (1.0, INF)) -> Histogram:
    return Histogram("h", bounds, counts, float(counts[-1]))


def grown(increases: Increases) -> dict[str, float]:
    return {name: value for (name, _), value in increases.counters()}


def observed(increases: Increases) -> list[tuple[int, ...]]:
    return [histogram.counts for _, histogram in increases.histograms()]


def test_one_scrape_is_no_increase() -> None:
    """What a counter had before we came is not of the last minute."""
    increases = Increases()
    increases.note([counter(1_009), histogram(3, 7)], at=0.0)
    assert (grown(increases), observed(increases)) == ({}, [])


def test_counters_and_histograms_grow() -> None:
    """By what is there more than at the oldest scrape of the window."""
    increases = Increases()
    for at, value in ((0.0, 3), (5.0, 10), (10.0, 16)):
        increases.note([counter(value), histogram(value, value + 4)], at)
    assert (grown(increases), observed(increases)) == ({"x_total": 13}, [(13, 13)])


def test_gauges_do_not_grow() -> None:
    """A level is no count."""
    increases = Increases()
    for at, value in ((0.0, 3), (5.0, 10)):
        increases.note([counter(value, "x_ratio")], at)
    assert grown(increases) == {}


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40), st.sampled_from([1.0, 5.0, 17.0]))
def test_the_window_is_the_last_minute(steps: list[int], interval: float) -> None:
    """It begins at the last scrape that is a minute old, or with the first."""
    increases = Increases()
    totals = list(accumulate(steps))
    for number, total in enumerate(totals):
        increases.note([counter(total)], at=number * interval)
    last = len(totals) - 1
    old = [number for number in range(last + 1) if (last - number) * interval >= 60]
    assert grown(increases)["x_total"] == totals[last] - totals[max(old, default=0)]


@given(st.lists(st.integers(0, 50), min_size=2, max_size=20))
def test_an_increase_is_never_negative(values: list[int]) -> None:
    """Whatever a counter does, resets included; and each reset is told."""
    increases = Increases()
    resets = sum(increases.note([counter(value)], at=5.0 * i) for i, value in enumerate(values))
    assert resets == sum(b < a for a, b in pairwise(values))
    assert all(value >= 0 for value in grown(increases).values())


def test_after_a_reset_a_series_starts_anew() -> None:
    """What the dead process had counted is not subtracted, nor added."""
    increases = Increases()
    for at, value in ((0.0, 100), (5.0, 131), (10.0, 7), (15.0, 24)):
        increases.note([counter(value), histogram(value, value)], at)
    assert (grown(increases), observed(increases)) == ({"x_total": 17}, [(17, 17)])


def test_other_bounds_start_anew() -> None:
    """Of a process that was started with other buckets."""
    increases = Increases()
    increases.note([histogram(3, 7)], at=0.0)
    assert increases.note([histogram(5, 11, bounds=(2.0, INF))], at=5.0) == 1
    assert observed(increases) == []
    increases.note([histogram(7, 24, bounds=(2.0, INF))], at=10.0)
    assert observed(increases) == [(2, 13)]


def test_a_series_that_is_absent_is_forgotten() -> None:
    """It may be another's when it comes again; label sets that come and go cost no memory."""
    increases = Increases()
    for at, samples in ((0.0, [counter(3)]), (5.0, []), (10.0, [counter(11)])):
        increases.note([*samples], at)
    assert grown(increases) == {}


def test_a_gap_is_not_computed_across() -> None:
    """After it everything starts anew."""
    increases = Increases()
    increases.note([counter(3)], at=0.0)
    increases.forget()
    increases.note([counter(1_009)], at=600.0)
    assert grown(increases) == {}
