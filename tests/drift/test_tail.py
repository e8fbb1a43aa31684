"""Tests of sidecar.drift.tail and sidecar.drift.shape: what they see, and what they leave alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar import loghist
from sidecar.drift import dispersion
from sidecar.drift.stretch import Floats, Stretch, sum_of
from sidecar.record import STEP
from tests.drift.hours import baseline, days, judged, lognormal, shape, stretch, tail

USUAL = lognormal(3_600)


def hour(rng: np.random.Generator) -> Floats:
    """The durations of one."""
    return np.asarray(0.35 * np.exp(0.45 * rng.standard_normal(3_600)))


def slower(seconds: Floats, top: float, plus: float) -> Stretch:
    """So much more for the slowest."""
    return stretch(np.where(seconds > np.quantile(seconds, 1 - top), seconds + plus, seconds))


def test_the_slowest_two_per_cent() -> None:
    """150 ms more for 2 %: of 40 hours all have p < 1 %, and most are above the guard of 120 ms."""
    rng = np.random.default_rng(1)
    found = [
        tail(judged(slower(hour(rng), 0.02, 0.15), baseline(days(rng, USUAL)))) for _ in range(40)
    ]
    assert sum(one.p < 0.01 for one in found) >= 39
    assert sum(one.drifts for one in found) >= 28
    assert np.mean([one.change.value for one in found]) == pytest.approx(0.15, abs=0.02)


def test_its_p_values_are_those_of_chance() -> None:
    """Of 400 usual hours about 5 % have p < 5 %; none drifts."""
    rng = np.random.default_rng(2)
    found = [tail(judged(USUAL(rng), baseline(days(rng, USUAL)))) for _ in range(400)]
    assert 0.02 < np.mean([one.p < 0.05 for one in found]) < 0.08
    assert np.mean([one.p < 0.5 for one in found]) == pytest.approx(0.5, abs=0.08)
    assert not any(one.drifts for one in found)


def test_so_are_those_against_hours_that_straddle_two() -> None:
    """A baseline of days that are half of one hour and half of the next is worth twice as much."""
    rng = np.random.default_rng(3)

    def between(rng: np.random.Generator) -> Stretch:
        return sum_of([USUAL(rng).weighted(0.5) for _ in range(2)])

    found = [tail(judged(USUAL(rng), baseline(days(rng, between)))) for _ in range(300)]
    assert 0.015 < np.mean([one.p < 0.05 for one in found]) < 0.085


def test_the_interval_holds_the_change() -> None:
    """Of 200 hours in which everything is 20 % slower, 95 % do, within chance."""
    rng, true = np.random.default_rng(4), 0.2 * 0.35 * math.exp(0.45 * 2.3263)
    changes = [
        tail(judged(stretch(1.2 * hour(rng)), baseline(days(rng, USUAL)))).change
        for _ in range(200)
    ]
    assert np.mean([one.lower <= true <= one.upper for one in changes]) > 0.9


def test_better_is_stated_and_never_drifts() -> None:
    """A fifth faster: p near 1, below 0 for certain."""
    rng = np.random.default_rng(5)
    one = judged(stretch(0.8 * hour(rng)), baseline(days(rng, USUAL)))
    assert one.improved
    assert not one.firing
    assert tail(one).p > 0.99
    assert tail(one).change.upper < 0
    assert "below the same hour of 7 days, an improvement" in one.text


def test_a_small_change_does_not_matter() -> None:
    """All 5 % slower is seen often, and is below the guard."""
    rng = np.random.default_rng(6)
    found = [tail(judged(stretch(1.05 * hour(rng)), baseline(days(rng, USUAL)))) for _ in range(40)]
    assert sum(one.drifts for one in found) <= 2


def test_the_slowest_per_cent_alone() -> None:
    """Exceedances of the usual P99 are as many as ever; the shape of the tail is not."""
    rng = np.random.default_rng(7)
    one = judged(slower(hour(rng), 0.01, 0.5), baseline(days(rng, USUAL)))
    assert not tail(one).drifts
    assert tail(one).p > 0.05
    assert shape(one).value > 3.6
    assert shape(one).rank > 0.99
    assert shape(one).drifts
    assert "furthest out at P99." in one.text


def test_the_shape_of_chance() -> None:
    """Of 300 usual hours about 1 % are at 3.60 or more, and no p is too small."""
    rng = np.random.default_rng(8)
    found = [shape(judged(USUAL(rng), baseline(days(rng, USUAL)))) for _ in range(300)]
    assert np.mean([one.value > 3.6 for one in found]) < 0.025
    assert np.mean([one.p < 0.1 for one in found]) < 0.13


def test_failures_count_as_slow() -> None:
    """4 % that failed are beyond the range; the change is finite, and more than ten minutes less
    the usual.
    """
    rng = np.random.default_rng(9)
    seconds = hour(rng)
    seconds[::25] = math.inf
    one = judged(stretch(seconds), baseline(days(rng, USUAL)))
    assert tail(one).drifts
    assert 590 < tail(one).change.value < 600
    assert math.isfinite(tail(one).change.upper)
    assert "is beyond" in one.text


def test_requests_that_wait_count_once_they_are_late() -> None:
    """Sixty that have waited for 30 s are slow for certain; sixty that have just begun are nothing
    yet.
    """
    rng = np.random.default_rng(10)
    before, now = baseline(days(rng, USUAL)), USUAL(rng)
    none, late, early = (judged(now, before, ages) for ages in ((), (30.0,) * 60, (0.2,) * 60))
    assert tail(late).exceeding == tail(none).exceeding + 60
    assert tail(late).n == tail(none).n + 60
    assert tail(late).drifts
    assert early == none


def test_a_few_slow_ones_where_none_ever_was() -> None:
    """All the same to the cell, then two of 3,600 slower: chance has no such days, and yet two
    requests are no drift.
    """
    same = {f"2026-03-0{i}": stretch(np.full(3_600, 0.2)) for i in range(1, 8)}
    seconds = np.full(3_600, 0.2)
    seconds[:2] = 1.0
    assert tail(judged(stretch(seconds), baseline(same))).p > 0.05
    seconds[:72] = 1.0
    assert tail(judged(stretch(seconds), baseline(same))).drifts


@given(st.floats(0, 200), st.floats(0.1, 100), st.floats(0.1, 50), st.floats(0, 50))
def test_deviations_rise_with_what_is_seen(
    seen: float, expected: float, requests: float, days: float
) -> None:
    """0 at what is expected, of its sign, at most the plain one above it, and never falling."""
    at = [dispersion.deviations(*np.array([k, expected, requests, days])) for k in (seen, seen + 1)]
    plain = (seen - expected) / math.sqrt(requests + days)
    assert at[0] < at[1]
    assert math.copysign(1, at[0]) == math.copysign(1, plain) or abs(plain) < 1e-6
    if seen > expected:
        reached = (seen - expected) / math.sqrt(requests)
        assert at[0] <= reached * (1 + 1e-6)


def test_deviations_of_independent_requests_are_plain() -> None:
    """Without days that differ, the difference over the standard deviation."""
    assert dispersion.deviations(*np.array([50.0, 36.0, 49.0, 0.0])) == pytest.approx(2.0, rel=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(-2, 5))
def test_another_unit_of_time_changes_nothing(seed: int, steps: int) -> None:
    """Baseline and hour both slower by so many steps of the thresholds: the same deviation."""
    rng, factor = np.random.default_rng(seed), loghist.GAMMA ** (STEP * steps)
    made = [hour(rng) for _ in range(4)]
    one, other = (
        judged(
            stretch(1.3 * f * made[3]),
            baseline({str(i): stretch(f * x) for i, x in enumerate(made[:3])}),
        )
        for f in (1.0, factor)
    )
    assert tail(one).z == pytest.approx(tail(other).z, abs=0.05)
