"""Falls of the token rate are seen as soon as is published: the bench's own, in small.

Bounds are of 3.3 standard errors: with the published means, one figure in a thousand would break
one. The bench's full run has the narrow intervals.
"""

import itertools
import math
import random
import statistics
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest

from bench import detectors_theory as theory
from bench.detectors_delays import FALLS, KNOWN, RULES, Delays, Fall, published
from bench.detectors_rate import DAY, correlated
from bench.detectors_watch import MEAN, SIGMA, Watch
from sidecar.detect import arl
from sidecar.detect.ewma import Lag, correction
from sidecar.detect.level import Level
from sidecar.detect.stored import recall

SEED, FELL, DAYS = 20_240_601, 150, 80
ERRORS = 3.3
Delay = dict[tuple[str, str], list[float]]


def mean(values: list[float]) -> tuple[float, float]:
    """And its standard error."""
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


@pytest.fixture(scope="module")
def known() -> Delay:
    """The delays of the shipped rules, by scenario and rule, with everything known."""
    found: Delay = {}
    for number in range(FELL):
        for name, rule, alarm, delay in Delays(KNOWN).trial(SEED + number):
            assert alarm, (name, rule, SEED + number)
            assert delay is not None
            found.setdefault((name, rule), []).append(delay)
    return found


Learned = list[tuple[Level, Lag]]


@pytest.fixture(scope="module")
def learned() -> Learned:
    """What the shipped detector knows after a day of independent minutes, many times."""
    found = []
    for number in range(DAYS):
        watch = Watch()
        series = correlated(random.Random(SEED + number))
        for minute, (value, running) in enumerate(itertools.islice(series, DAY)):
            watch.minute(60.0 * minute, value, running)
        kept = cast(Mapping[str, Mapping[str, Any]], watch.rate.remember())
        (level,) = (what for what in kept.values() if "mean" in what)
        (charts,) = (what for what in kept.values() if "lag" in what)
        state = {name: level[name] for name in Level.STATE}
        found.append((recall(Level(), state), recall(Lag(), charts["lag"])))
    return found


@pytest.mark.parametrize("sigmas", [1.0, 2.0, 3.0, 5.0])
def test_theory_of_steps_is_what_is_published(sigmas: float) -> None:
    """Two ways to the same figures: densities from minute to minute, and an integral equation."""
    assert theory.chart(sigmas) == pytest.approx(arl.ewma(0.2, 4.19, sigmas), rel=1e-6)
    assert theory.band(sigmas) == pytest.approx(arl.run_rule(shift=sigmas), rel=1e-6)


@pytest.mark.parametrize("fall", FALLS)
def test_theory_by_simulation(fall: Fall) -> None:
    """20,000 falls of plain normal numbers, judged by nothing of ours, have theory's delays."""
    rng, n = np.random.default_rng(SEED), 20_000
    average, row, seen = np.zeros(n), np.zeros(n), np.zeros((2, n))
    for minute in range(1, 2 * 1_440):
        part = min(1.0, minute / fall.minutes) if fall.minutes else 1.0
        z = rng.standard_normal(n) - fall.sigmas * part
        average = 0.8 * average + 0.2 * z
        row = np.where(np.abs(z) > 2.5, row + 1, 0)
        for at, beyond in zip(seen, (row >= 3, np.abs(average) > 4.19 / 3), strict=True):
            at[beyond & (at == 0)] = minute
        if seen.all():
            break
    assert seen.all()
    for delays, exact in zip(seen, (theory.band, theory.chart), strict=True):
        error = ERRORS * delays.std() / math.sqrt(n)
        assert delays.mean() == pytest.approx(exact(fall.sigmas, fall.minutes), abs=error)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fall", FALLS)
def test_with_a_known_baseline(known: Delay, fall: Fall, rule: str) -> None:
    """The shipped rules see steps and ramps after the published minutes."""
    of = f"{fall.name}, {KNOWN}", rule
    found, error = mean(known[of])
    assert found == pytest.approx(published()[of], abs=ERRORS * error), f"seed {SEED}, {FELL} falls"


def test_a_learned_day_has_no_bias(learned: Learned) -> None:
    """Neither the mean nor, by more than 0.5 %, σ."""
    off, error = mean([(level.mean - MEAN) / SIGMA for level, _ in learned])
    assert abs(off) <= ERRORS * error, f"seed {SEED}, {DAYS} days"
    spread, error = mean([level.sigma / SIGMA for level, _ in learned])
    assert abs(spread - 1) <= 0.005 + ERRORS * error, f"seed {SEED}, {DAYS} days"


@pytest.mark.parametrize("sigmas", [2.0, 3.0])
def test_a_learned_day_costs_little(learned: Learned, sigmas: float) -> None:
    """Both rules are on average over days at most 3 % later than is published.

    Each day's mean delay is exact, that of a chart with another limit after another step.
    """
    bands, charts = [], []
    for level, lag in learned:
        assert lag.adjusted is not None
        wide, step = level.sigma / SIGMA, sigmas + (level.mean - MEAN) / SIGMA
        own = (2 - 0.2) / 0.2 * (1 + lag.adjusted) / (1 - lag.adjusted) / level.size
        limit = 4.19 * wide * math.sqrt(correction(0.2, lag.adjusted) ** 2 + own)
        bands.append(arl.run_rule(2.5 * wide, shift=step))
        charts.append(arl.ewma(0.2, limit, step, nodes=51))
    for delays, exact in ((bands, theory.band), (charts, theory.chart)):
        found, error = mean(delays)
        assert found <= 1.03 * exact(sigmas) + ERRORS * error, f"seed {SEED}, {DAYS} days"
