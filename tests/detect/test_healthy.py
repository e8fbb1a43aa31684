"""Healthy series alarm at most as often as is published: the bench's own, in small.

The bounds are exact: with the published rate, one run in a thousand would break one.
"""

import math
from collections import Counter

import pytest

from bench.detectors_rate import NULLS, Falls
from bench.detectors_slo import Healthy
from bench.detectors_watch import NAIVE
from sidecar.detect import arl
from sidecar.detect.rate import OUT_OF_BAND, SHIFTED

SEED, ROUNDS = 20_240_601, 6
DAY = 1_440
PUBLISHED = {SHIFTED.name: arl.ewma(0.2, 4.19), OUT_OF_BAND.name: arl.run_rule()}
INDEPENDENT = ("null, iid", "null, idle half of the time", "null, load steps, by half octaves")
CORRELATED = ("null, AR(1) 0.3", "null, AR(1) 0.6", "null, AR(1) 0.8")


def most(days: int, a_day: float) -> int:
    """The number of days that a binomial of this rate exceeds in one run in a thousand."""
    below, count = 0.0, -1
    while below < 0.999:
        count += 1
        below += math.comb(days, count) * a_day**count * (1 - a_day) ** (days - count)
    return count


def told(trials: int, alarms: Counter[str]) -> str:
    return f"seed {SEED}, {trials} trials, {dict(alarms)}"


def alarmed(name: str) -> tuple[int, Counter[str]]:
    """Days, and by rule those with an alarm."""
    (scenario,) = (one for one in NULLS if one.name == name)
    days, alarms = 0, Counter[str]()
    for number in range(ROUNDS):
        for _, rule, alarm, _ in scenario.trial(SEED + number):
            alarms[rule] += alarm
            days += rule == SHIFTED.name
    return days, alarms


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_minutes(name: str) -> None:
    """Plain, half idle, or with a load that jumps from 121 to 51 to 22 tok/s: both rules keep to
    their rates.
    """
    days, alarms = alarmed(name)
    for rule, minutes in PUBLISHED.items():
        assert alarms[rule] <= most(days, 1 - math.exp(-DAY / minutes)), told(days, alarms)


@pytest.mark.parametrize("name", CORRELATED)
def test_correlated_minutes(name: str) -> None:
    """With an autocorrelation that it estimates itself, the chart keeps to its rate."""
    days, alarms = alarmed(name)
    a_day = 1 - math.exp(-DAY / PUBLISHED[SHIFTED.name])
    assert alarms[SHIFTED.name] <= most(days, a_day), told(days, alarms)


def test_a_load_that_is_not_conditioned_on_alarms_daily() -> None:
    """The same jumps of load, judged by one baseline, alarm on nearly every day."""
    days, alarms = alarmed("null, load steps, unconditioned")
    assert alarms[SHIFTED.name] > 0.8 * days


@pytest.mark.parametrize("hourly", [10, 1_000])
def test_failures_at_half_the_allowed_rate(hourly: int) -> None:
    """Fifteen days of them page nobody."""
    for number in range(3):
        for _, rule, alarm, _ in Healthy(hourly).trial(SEED + number):
            assert not (alarm and rule.startswith(("burn 14.4, 1 h", "burn 6"))), rule


def test_a_step_of_five_sigma() -> None:
    """The frozen baseline sees it in every one of 40 trials, one that learns at once in few."""
    seen = Counter[str]()
    for number in range(40):
        for _, rule, alarm, delay in Falls("step", sigmas=(5.0,)).trial(SEED + number):
            seen[rule] += alarm and delay is not None and delay <= 10
    assert seen[OUT_OF_BAND.name] >= 39, told(40, seen)
    assert seen[SHIFTED.name] >= 39, told(40, seen)
    assert seen[NAIVE] <= 6, told(40, seen)  # of 3 %: 7 in one run in five thousand


def test_a_ramp_is_not_learned_on_the_way() -> None:
    """A fall of 3 σ that takes an hour is seen before it is complete."""
    delays = []
    for number in range(20):
        for _, rule, _, delay in Falls("ramp", sigmas=(3.0,), minutes=60).trial(SEED + number):
            if rule == SHIFTED.name:
                delays.append(delay)
    assert all(delay is not None and delay <= 60 for delay in delays)
