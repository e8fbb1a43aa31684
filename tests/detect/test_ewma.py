"""Tests of sidecar.detect.ewma."""

import math
import random

import pytest

from sidecar.detect import arl
from sidecar.detect.ewma import Chart, Lag, correction
from sidecar.detect.inputs import Refusal, Refused, Side

MEAN, SIGMA = 42.6, 3.8


def delay(rng: random.Random, sigmas: float) -> int:
    """Minutes until a fresh chart sees a fall of so many σ."""
    chart, waited = Chart(), 0
    while True:
        waited += 1
        value = MEAN + SIGMA * (rng.gauss(0, 1) - sigmas)
        if chart.update(max(0.0, value), MEAN, SIGMA).side is Side.LOW:
            return waited


def test_z_is_the_classical_chart() -> None:
    """With a constant baseline z is (EWMA − μ) / (σ√(λ/(2−λ)))."""
    chart, average = Chart(lam=0.3), MEAN
    for value in (40.0, 51.0, 33.0, 47.0, 42.0):
        average += 0.3 * (value - average)
        z = chart.update(value, MEAN, SIGMA).z
        assert z == pytest.approx((average - MEAN) / (SIGMA * math.sqrt(0.3 / 1.7)))


def test_in_control_run_length_by_simulation() -> None:
    """λ 0.2 with L 2.962 runs 500 values between false alarms: 400 runs, seed 5."""
    rng, waited = random.Random(5), 0
    for _ in range(400):
        chart = Chart(lam=0.2, limit=2.962)
        side = None
        while side is None:
            waited += 1
            side = chart.update(MEAN + SIGMA * rng.gauss(0, 1), MEAN, SIGMA).side
    assert waited / 400 == pytest.approx(500, rel=0.15)  # three standard errors


@pytest.mark.parametrize(("sigmas", "published"), [(2, 6.1), (3, 3.4)])
def test_delay_after_a_step(sigmas: float, published: float) -> None:
    """The mean delay is the published one: 3,000 steps, seed 11."""
    rng = random.Random(11)
    mean = sum(delay(rng, sigmas) for _ in range(3_000)) / 3_000
    assert mean == pytest.approx(arl.ewma(0.2, 4.19, sigmas), rel=0.03)
    assert mean <= published * 1.03


def test_two_charts_of_one_point() -> None:
    """A quick and a slow chart on the same points keep to themselves."""
    quick, slow, alone = Chart(0.4, 3.054), Chart(0.05, 2.615), Chart(0.05, 2.615)
    for minute in range(50):
        value = MEAN - 3 * (minute > 20)
        quick.update(value, MEAN, SIGMA, at=60.0 * minute)
        slow.update(value, MEAN, SIGMA, at=60.0 * minute)
        alone.update(value, MEAN, SIGMA, at=60.0 * minute)
    assert slow == alone
    assert slow.average != quick.average


def test_an_alarm_resets_nothing() -> None:
    """The chart stays beyond its limit while the fault lasts and comes back when it ends."""
    chart = Chart()
    sides = [chart.update(MEAN - 4 * SIGMA, MEAN, SIGMA).side for _ in range(30)]
    assert sides[5:] == [Side.LOW] * 25
    sides = [chart.update(MEAN, MEAN, SIGMA).side for _ in range(30)]
    assert sides[0] is Side.LOW
    assert sides[-1] is None


def test_exact_limits_are_narrower_at_the_start() -> None:
    """The first value of an exact chart counts in full; later both charts agree."""
    plain, exact = Chart(), Chart(exact=True)
    first = plain.update(35.0, MEAN, SIGMA).z, exact.update(35.0, MEAN, SIGMA).z
    assert first[1] == pytest.approx((35.0 - MEAN) / SIGMA)
    assert abs(first[1]) > abs(first[0])
    for _ in range(40):
        last = plain.update(35.0, MEAN, SIGMA).z, exact.update(35.0, MEAN, SIGMA).z
    assert last[0] == pytest.approx(last[1])


def test_autocorrelation_widens() -> None:
    """At λ 0.2, ρ 0.6 spreads the average by 1.69, which is what an AR(1) process does."""
    assert correction(0.2, 0.6) == pytest.approx(math.sqrt(1.48 / 0.52))
    assert correction(0.2, 0.0) == 1
    rng, value, average, squares = random.Random(2), 0.0, 0.0, 0.0
    for _ in range(60_000):
        value = 0.6 * value + 0.8 * rng.gauss(0, 1)
        average += 0.2 * (value - average)
        squares += average**2
    assert math.sqrt(squares / 60_000 * 9) == pytest.approx(correction(0.2, 0.6), rel=0.03)


def test_a_young_baseline_widens() -> None:
    """The error of the mean of 60 values is part of z's spread; of very many it is nothing."""
    young = Chart().update(30.0, MEAN, SIGMA, size=60).z
    old = Chart().update(30.0, MEAN, SIGMA, size=1e9).z
    assert young == pytest.approx(old / math.sqrt(1 + 9 / 60))
    assert old == pytest.approx(Chart().update(30.0, MEAN, SIGMA).z)


def test_each_value_is_judged_by_its_own_baseline() -> None:
    """A change of load that the baselines know moves nothing."""
    chart = Chart()
    for minute in range(100):
        mean = (121.0, 51.0, 22.0)[minute % 3]
        assert chart.update(mean, mean, mean / 10).z == 0


@pytest.mark.parametrize(
    ("value", "refusal"),
    [
        (math.nan, Refusal.NOT_A_NUMBER),
        (-1.0, Refusal.NEGATIVE),
        (-math.inf, Refusal.NEGATIVE),
        (1e12, Refusal.BEYOND_RANGE),
        (math.inf, Refusal.BEYOND_RANGE),
    ],
)
def test_what_is_no_reading_leaves_the_chart_alone(value: float, refusal: Refusal) -> None:
    """A value that is none is refused by name and changes nothing."""
    chart, untouched = Chart(), Chart()
    with pytest.raises(Refused) as refused:
        chart.update(value, MEAN, SIGMA, at=60.0)
    assert refused.value.refusal is refusal
    assert chart == untouched


def test_no_baseline_is_an_error() -> None:
    """A chart without a σ judges nothing."""
    for mean, sigma in ((42.6, 0.0), (42.6, math.nan), (math.nan, 3.8), (42.6, math.inf)):
        with pytest.raises(ValueError, match="no baseline"):
            Chart().update(40.0, mean, sigma)


@pytest.mark.parametrize(("lam", "limit"), [(0.0, 3.0), (1.1, 3.0), (0.2, 0.0)])
def test_impossible_designs(lam: float, limit: float) -> None:
    """λ lies in (0, 1] and L above 0."""
    with pytest.raises(ValueError, match="no chart"):
        Chart(lam, limit)


def residuals(rho: float, count: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    found = [rng.gauss(0, 1)]
    while len(found) < count:
        found.append(rho * found[-1] + math.sqrt(1 - rho * rho) * rng.gauss(0, 1))
    return found


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.8])
def test_lag_finds_the_autocorrelation(rho: float) -> None:
    """Within 0.06 of the truth after two days; a chart is given a little more, or of independent
    values a little less than none.
    """
    lag = Lag()
    for minute, residual in enumerate(residuals(rho, 2_880, seed=4)):
        lag.update(60.0 * minute, residual)
    assert lag.rho == pytest.approx(rho, abs=0.06)
    assert lag.rho is not None
    assert lag.adjusted is not None
    assert abs(lag.adjusted - rho) <= 0.06
    assert rho == 0 or lag.rho < lag.adjusted < lag.rho + 0.006


def test_lag_needs_pairs() -> None:
    """Values with gaps between them make no pairs, and below 120 pairs nothing is known."""
    lag = Lag()
    for minute in range(0, 1_000, 2):
        lag.update(60.0 * minute, 1.0)
    assert lag.pairs == 0
    for minute in range(2_000, 2_120):
        lag.update(60.0 * minute, 1.0)
    assert lag.rho is None
    lag.update(60.0 * 2_120, 1.0)
    assert lag.rho == 0.9  # clipped


def test_lag_is_robust() -> None:
    """One value in a hundred that is wild moves the estimate of 0.6 by less than 0.1."""
    lag = Lag()
    for minute, residual in enumerate(residuals(0.6, 2_880, seed=6)):
        lag.update(60.0 * minute, 50.0 if minute % 101 == 0 else residual)
    assert lag.rho == pytest.approx(0.6, abs=0.1)


def test_values_that_alternate() -> None:
    """They are no reason for a narrower chart, beyond what noise makes of independent ones."""
    lag = Lag()
    for minute in range(500):
        lag.update(60.0 * minute, 1.0 if minute % 2 else -1.0)
    assert lag.rho == 0
    assert lag.adjusted == pytest.approx(-2 / math.sqrt(lag.weight) + 7 / lag.weight)


def test_independent_values_make_no_wider_chart() -> None:
    """Over days of independent values the limits are on average within 1 % of those without
    autocorrelation: cutting off what is negative would widen them by 1 %, an upper bound by 4 %.
    """
    found = []
    for seed in range(200):
        lag = Lag()
        for minute, residual in enumerate(residuals(0.0, 1_440, seed)):
            lag.update(60.0 * minute, residual)
        assert lag.adjusted is not None
        found.append(correction(0.2, lag.adjusted))
    # One estimate spreads by 0.022; what is added to make up for that is 0.0055.
    bound = 3.3 * 0.022 / math.sqrt(len(found))
    assert sum(found) / len(found) == pytest.approx(1.0055, abs=bound)


def test_lag_passes_over_what_is_late() -> None:
    """A residual older than the last changes nothing, and one that is no number is refused."""
    lag, same = Lag(), Lag()
    for minute in (5, 6, 7):
        lag.update(60.0 * minute, 1.0)
        same.update(60.0 * minute, 1.0)
    lag.update(60.0, -1.0)
    with pytest.raises(Refused):
        lag.update(600.0, math.nan)
    assert lag == same
