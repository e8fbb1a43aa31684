"""Tests of sidecar.detect.runrule."""

import math
import random

import pytest

from sidecar.detect import arl
from sidecar.detect.inputs import Refusal, Refused, Side
from sidecar.detect.runrule import RunRule, band

MEAN, SIGMA = 42.6, 3.8


def feed(rule: RunRule, *values: float, start: float = 0.0) -> list[bool]:
    return [
        rule.update(start + 60.0 * i, value, MEAN, SIGMA).alarm for i, value in enumerate(values)
    ]


def test_the_specified_table() -> None:
    """Qwen2-7B, 42.6 ± 3.8, has a lower bound of 33.1; Llama3-8B, 38.2 ± 4.1, of 27.95."""
    assert band(42.6, 3.8)[0] == pytest.approx(33.1)
    assert band(38.2, 4.1)[0] == pytest.approx(27.95)
    assert band(42.6, 3.8)[1] == pytest.approx(52.1)


def test_three_consecutive_minutes() -> None:
    """The third minute below 33.1 alarms and so does every further one, until one is inside."""
    assert feed(RunRule(), 33.0, 30.0, 33.0, 20.0, 33.2, 33.0, 33.0) == [
        *(False, False, True, True),
        *(False, False, False),
    ]


def test_the_edge_is_inside() -> None:
    """A value on the bound is not outside it."""
    lower, upper = band(MEAN, SIGMA)
    assert not any(feed(RunRule(), *[lower, upper] * 5))


def test_either_side_counts_unless_told() -> None:
    """Low, high, low is three minutes outside the band; for drops alone it is one."""
    assert feed(RunRule(), 20.0, 60.0, 20.0)[-1]
    assert not any(feed(RunRule(only=Side.LOW), 20.0, 60.0, 20.0, 60.0))
    assert feed(RunRule(only=Side.LOW), 20.0, 20.0, 20.0)[-1]


def test_idle_minutes_neither_count_nor_break() -> None:
    """Three bad minutes with idle ones between are three; more than five minutes apart they
    are not.
    """
    rule = RunRule()
    assert not rule.update(0.0, 20.0, MEAN, SIGMA).alarm
    assert not rule.update(300.0, 20.0, MEAN, SIGMA).alarm
    assert rule.update(600.0, 20.0, MEAN, SIGMA).alarm
    assert rule.update(901.0, 20.0, MEAN, SIGMA).count == 1


def test_numbers_are_settings() -> None:
    """Five minutes beyond 1 σ, if that is wanted."""
    assert feed(RunRule(k=1.0, minutes=5), *[38.7] * 5) == [False] * 4 + [True]


@pytest.mark.parametrize(("sigmas", "published"), [(2, 48), (3, 6.6)])
def test_delay_after_a_step(sigmas: float, published: float) -> None:
    """The mean delay is the published one: 2,000 steps, seed 13."""
    rng, waited = random.Random(13), 0
    for _ in range(2_000):
        rule, at, alarm = RunRule(), 0.0, False
        while not alarm:
            at += 60.0
            value = max(0.0, MEAN + SIGMA * (rng.gauss(0, 1) - sigmas))
            alarm = rule.update(at, value, MEAN, SIGMA).alarm
            waited += 1
    assert waited / 2_000 == pytest.approx(arl.run_rule(shift=sigmas), rel=0.08)
    assert arl.run_rule(shift=sigmas) <= published


@pytest.mark.parametrize(
    ("at", "value", "refusal"),
    [
        (120.0, math.nan, Refusal.NOT_A_NUMBER),
        (120.0, -0.1, Refusal.NEGATIVE),
        (120.0, 1e12, Refusal.BEYOND_RANGE),
        (60.0, 40.0, Refusal.DUPLICATE),
        (0.0, 40.0, Refusal.UNORDERED),
        (math.nan, 40.0, Refusal.NOT_A_NUMBER),
    ],
)
def test_what_is_no_reading_leaves_the_row_alone(at: float, value: float, refusal: Refusal) -> None:
    """What is refused neither counts nor breaks."""
    rule = RunRule()
    rule.update(0.0, 20.0, MEAN, SIGMA)
    rule.update(60.0, 20.0, MEAN, SIGMA)
    with pytest.raises(Refused) as refused:
        rule.update(at, value, MEAN, SIGMA)
    assert refused.value.refusal is refusal
    assert rule.update(120.0, 20.0, MEAN, SIGMA).alarm
