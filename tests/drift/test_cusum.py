"""Tests of sidecar.drift.cusum."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.drift.cusum import Cusum

UP, DOWN = math.log(2), -math.log(0.98 / 0.99)


def delay(rng: random.Random, share: float, batch: int = 1) -> int:
    """Requests until the alarm; those before the first of each batch of slow ones at once."""
    chart, n = Cusum(), 0
    while True:
        n += batch
        if chart.update(batch, sum(rng.random() < share for _ in range(batch)), 0.01):
            return n


@pytest.mark.parametrize(("share", "median"), [(0.02, 1_900), (0.05, 349), (0.10, 146)])
@pytest.mark.parametrize("batch", [1, 5])
def test_how_soon_it_sees(share: float, median: float, batch: int) -> None:
    """The median delay by simulation of single requests, also when they come in fives."""
    rng = random.Random(1)
    found = statistics.median(delay(rng, share, batch) for _ in range(250))
    assert found == pytest.approx(median, rel=0.15)


@given(st.lists(st.booleans(), max_size=60))
def test_single_requests_are_the_published_chart(slow: list[bool]) -> None:
    """S = max(0, S − down) or S + up, until it alarms."""
    chart, value = Cusum(), 0.0
    for one in slow:
        chart.update(1, int(one), 0.01)
        value = value + UP if one else max(0.0, value - DOWN)
        if value >= 9:
            assert chart.alarm
            return
        assert chart.value == pytest.approx(value)


@given(st.integers(0, 300), st.integers(0, 40), st.floats(0, 8.9), st.floats(0.001, 0.3))
def test_a_batch_is_its_requests_spread_evenly(
    usual: int, slow: int, start: float, share: float
) -> None:
    """In closed form what a walk over a batch would do that is dense enough."""
    chart = Cusum(start)
    chart.update(usual + slow, slow, share)
    up, down = math.log(2), -math.log((1 - 2 * share) / (1 - share))
    value, gap = start, usual / (slow + 1) * down
    for _ in range(slow):
        value = max(0.0, value - gap) + up
    assert chart.value == pytest.approx(min(9.0, max(0.0, value - gap)), abs=1e-9)


def test_an_alarm_lasts_until_it_is_usual_again() -> None:
    """However bad it was, some 2,900 usual requests end it, and not the first good batch."""
    chart = Cusum()
    for _ in range(100):
        assert chart.update(1_000, 900, 0.01)
    n = 0
    while chart.update(100, 1, 0.01) and n < 10_000:
        n += 100
    assert 2_000 < n < 4_000


def test_large_batches_end_an_alarm_too() -> None:
    """One of ten thousand requests with its usual share is back at 0 on the way, not at its end."""
    chart = Cusum(9.0, alarm=True)
    assert chart.update(10_000, 100, 0.01) is False


def test_clumps_are_less_news() -> None:
    """With φ 5, five slow ones at once count as one."""
    one, five = Cusum(), Cusum()
    one.update(100, 2, 0.01)
    five.update(500, 10, 0.01, phi=5.0)
    assert five.value == pytest.approx(one.value, rel=0.35)


def test_an_empty_batch_changes_nothing() -> None:
    """No request is no news."""
    chart = Cusum(3.0)
    assert chart.update(0, 0, 0.01) is False
    assert chart.value == 3.0


@pytest.mark.parametrize(("n", "exceeding"), [(5, 6), (5, -1), (-1, 0)])
def test_no_batch(n: int, exceeding: int) -> None:
    """More slow ones than requests, or fewer than none."""
    with pytest.raises(ValueError, match="no batch"):
        Cusum().update(n, exceeding, 0.01)


@pytest.mark.parametrize(
    ("share", "phi"), [(0.0, 1.0), (0.5, 1.0), (math.nan, 1.0), (0.01, 0.5), (0.01, math.nan)]
)
def test_no_chart(share: float, phi: float) -> None:
    """A usual share of nothing, or of half and more."""
    with pytest.raises(ValueError, match="no chart"):
        Cusum().update(1, 0, share, phi)
