"""Tests of sidecar.detect.level."""

import math
import random

import pytest

from sidecar.detect.inputs import Refusal, Refused
from sidecar.detect.level import Level, trimmed, winsorised
from sidecar.verdicts import AlarmState

MEAN, SIGMA = 42.6, 3.8
HOUR = 60


def learned(minutes: int, seed: int = 1, level: Level | None = None) -> Level:
    """One that has seen so many minutes of Qwen2-7B."""
    rng, level = random.Random(seed), level or Level()
    for minute in range(minutes):
        level.offer(60.0 * minute, MEAN + SIGMA * rng.gauss(0, 1))
    return level


def test_winsorising_constant() -> None:
    """The variance that is left at ±2.5 σ is 0.9776, and all of it without a bound."""
    assert winsorised(2.5) == pytest.approx(0.9776, abs=5e-5)
    assert winsorised(math.inf) == trimmed(math.inf) == pytest.approx(1.0)
    assert trimmed(2.5) == pytest.approx(0.9113, abs=5e-5)


def test_it_learns_mean_and_sigma() -> None:
    """After five days both are known to 3 %: σ is not biased by the winsorising."""
    level = learned(7_200)
    assert level.mean == pytest.approx(MEAN, rel=0.01)
    assert level.sigma == pytest.approx(SIGMA, rel=0.03)
    assert level.size == pytest.approx(3_899, rel=0.01)  # of 4,155 when settled


def test_ready_after_an_hour_of_active_minutes() -> None:
    """The first sixty values make the baseline; σ is then known to about 9 %."""
    level = learned(59)
    assert not level.ready
    level.offer(60.0 * 59, MEAN)
    assert level.ready
    errors = [learned(60, seed).sigma / SIGMA - 1 for seed in range(300)]
    assert math.sqrt(sum(e * e for e in errors) / 300) == pytest.approx(0.092, abs=0.02)


def test_the_start_is_robust() -> None:
    """A third of the first values at a tenth of the rate moves the mean by less than half a σ."""
    rng, level = random.Random(2), Level()
    for minute in range(HOUR):
        value = 4.0 if minute % 3 == 0 else MEAN + SIGMA * rng.gauss(0, 1)
        level.offer(60.0 * minute, value)
    assert level.ready
    assert level.mean == pytest.approx(MEAN, abs=SIGMA / 2)
    assert level.sigma == pytest.approx(SIGMA, rel=0.3)


def test_a_start_with_most_values_equal() -> None:
    """A median absolute deviation of zero is no σ of zero."""
    level = Level()
    for minute in range(HOUR):
        level.offer(60.0 * minute, 0.0 if minute % 5 else 1.0)
    assert level.sigma == pytest.approx(0.4, rel=0.05)


@pytest.mark.parametrize("clip", [2.5, math.inf])
def test_zeros_and_no_clipping(clip: float) -> None:
    """Neither a start of zeros nor one without a bound, nor both, loses a value."""
    level = Level(clip=clip, quarantine_seconds=0.0)
    for minute in range(HOUR):
        level.offer(60.0 * minute, 0.0 if minute < 50 else 10.0)
    assert level.mean == pytest.approx(10 / 6)
    flat = Level(clip=clip, quarantine_seconds=0.0)
    for minute in range(2 * HOUR):
        flat.offer(60.0 * minute, 0.0)
    flat.offer(7_200.0, 61.0)
    assert flat.mean == pytest.approx(61 / 121, rel=0.05)
    assert flat.sigma > 0


def test_a_start_of_nothing_is_not_ready_until_something_moves() -> None:
    """A series of zeros has no σ to judge by, and finds one when it moves."""
    level = Level(quarantine_seconds=0.0)
    for minute in range(100):
        level.offer(60.0 * minute, 0.0)
    assert not level.ready
    for minute in range(100, 200):
        level.offer(60.0 * minute, float(minute % 2))
    assert level.ready


def test_values_wait_an_hour() -> None:
    """A fault is not in the baseline before it is an hour old."""
    level = learned(1_000)
    mean = level.mean
    for minute in range(1_000, 1_060):
        level.offer(60.0 * minute, 10.0)
    assert level.mean == pytest.approx(mean, rel=0.02)  # healthy values of before came in
    entered = level.offer(60.0 * 1_060, 10.0)
    assert [one.at for one in entered] == [60.0 * 1_000]
    assert entered[0].residual < -8


def test_what_waits_when_an_alarm_begins_never_enters() -> None:
    """Firing drops the quarantine, and what comes while it fires is not taken in."""
    level = learned(1_000)
    mean, entered = level.mean, level.entered
    for minute in range(1_000, 1_030):
        level.offer(60.0 * minute, 10.0)
    level.follow(AlarmState.FIRING)
    before = level.mean
    for minute in range(1_030, 1_500):
        level.offer(60.0 * minute, 10.0)
        level.follow(AlarmState.FIRING)
    assert level.waiting == []
    assert level.mean == before == pytest.approx(mean, rel=0.01)
    level.follow(AlarmState.RESOLVED)
    for minute in range(1_500, 1_561):
        level.offer(60.0 * minute, MEAN)
    assert level.entered == entered + 30 + 1
    assert level.dropped == 60 + 470


def test_firing_spares_what_was_old_enough() -> None:
    """Fifty first values of a load seen yesterday survive an alarm; ones of this hour do not."""
    level = learned(50)
    for minute in range(1_440, 1_445):
        level.offer(60.0 * minute, 10.0)
    level.follow(AlarmState.FIRING, at=60.0 * 1_445)
    assert (len(level.waiting), level.dropped) == (50, 5)


def test_no_baseline_begins_in_a_fault() -> None:
    """A load that is first seen while an alarm is pending is not learned before it is over."""
    level = Level()
    level.follow(AlarmState.PENDING)
    for minute in range(100):
        level.offer(60.0 * minute, MEAN + minute % 3)
    assert not level.ready
    level.follow(AlarmState.INACTIVE)
    level.offer(6_000.0, MEAN)
    assert level.ready


def test_pending_holds_and_keeps() -> None:
    """While pending nothing enters; if it comes to nothing, what waited enters after all."""
    level = learned(1_000)
    entered = level.entered
    level.follow(AlarmState.PENDING)
    for minute in range(1_000, 1_003):
        level.offer(60.0 * minute, 30.0)
    assert level.entered == entered
    level.follow(AlarmState.INACTIVE)
    level.settle(60.0 * 1_003)
    assert level.entered == entered + 4
    assert level.dropped == 0


def test_an_idle_night_forgets_nothing() -> None:
    """Weight is lost by values, not by time."""
    level = learned(1_000)
    level.settle(60.0 * 1_060)
    before = (level.mean, level.sigma, level.weight)
    level.settle(60.0 * 100_000)
    assert (level.mean, level.sigma, level.weight) == before


def test_half_life() -> None:
    """After 1,440 values of another level half of the way is made."""
    level = Level(quarantine_seconds=0.0, clip=1e9)
    level.mean, level.variance = 40.0, 16.0
    level.weight, level.entered = 1 / (1 - 0.5 ** (1 / 1440)), 10_000
    for minute in range(1_440):
        level.offer(60.0 * minute, 50.0)
    assert level.mean == pytest.approx(45.0, abs=0.01)


def test_one_wild_value_is_one_value() -> None:
    """A value a thousand times too high moves the mean by a thousandth, not by half."""
    level = learned(1_440, level=Level(quarantine_seconds=0.0))
    mean, sigma = level.mean, level.sigma
    level.offer(60.0 * 1_440, 42_600.0)
    assert level.mean == pytest.approx(mean, rel=1e-3)
    assert level.sigma == pytest.approx(sigma, rel=1e-2)


def test_floor_of_sigma() -> None:
    """However steady a rate is, its band is no narrower than 5 % of it makes it."""
    level = Level()
    for minute in range(HOUR):
        level.offer(60.0 * minute, 50.0 + 0.01 * (minute % 2))
    assert level.sigma == pytest.approx(2.5, rel=1e-3)


def test_a_calibrated_one_is_ready_at_once() -> None:
    """The specification's table is a baseline before a minute has been seen."""
    level = Level.known(42.6, 3.8)
    assert level.ready
    assert (level.mean, level.sigma) == (42.6, pytest.approx(3.8))
    assert level.size == pytest.approx(1_440, rel=0.1)
    assert Level.known(42.6, 3.8, entered=30).ready
    assert Level.known(42.6, 0.5).sigma == pytest.approx(0.5)  # no floor: as decided
    with pytest.raises(ValueError, match="no baseline"):
        Level.known(42.6, 0.0)


def test_rebase_starts_anew() -> None:
    """After a deploy the old level is gone and the next hour makes a new one."""
    level = learned(1_000)
    level.rebase()
    assert not level.ready
    for minute in range(1_000, 1_060):
        level.offer(60.0 * minute, 60.0 + minute % 7)
    assert level.ready
    assert level.mean == pytest.approx(63.0, abs=0.5)


def test_memory_is_bounded() -> None:
    """A pending alarm that never ends keeps 1,024 values and counts the rest."""
    level = learned(100)
    level.follow(AlarmState.PENDING)
    for minute in range(100, 3_000):
        level.offer(60.0 * minute, MEAN)
    assert len(level.waiting) == 1_024
    assert level.dropped == 2_900 + 40 - 1_024


@pytest.mark.parametrize(
    ("at", "value", "now", "refusal"),
    [
        (6_060.0, math.nan, None, Refusal.NOT_A_NUMBER),
        (6_060.0, -5.0, None, Refusal.NEGATIVE),
        (6_060.0, 1e12, None, Refusal.BEYOND_RANGE),
        (5_940.0, 42.0, None, Refusal.DUPLICATE),
        (5_880.0, 42.0, None, Refusal.UNORDERED),
        (math.inf, 42.0, None, Refusal.NOT_A_NUMBER),
        (6_000.0 + 315_360_000, 42.0, 6_000.0, Refusal.AHEAD),
    ],
)
def test_what_is_no_reading_never_enters(
    at: float, value: float, now: float | None, refusal: Refusal
) -> None:
    """Refused by name, and the baseline is as it was."""
    level, untouched = learned(100), learned(100)
    with pytest.raises(Refused) as refused:
        level.offer(at, value, now)
    assert refused.value.refusal is refusal
    assert level == untouched


def test_a_clock_that_was_ten_years_ahead_is_forgotten() -> None:
    """Once the clock is right again readings are taken, and what waited for 2036 is not."""
    level = learned(100)
    level.offer(6_000.0 + 315_360_000, MEAN)
    level.offer(6_060.0, MEAN, now=6_061.0)
    assert level.last == 6_060.0
    assert level.waiting == [(6_060.0, MEAN)]
