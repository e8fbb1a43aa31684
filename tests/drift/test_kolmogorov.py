"""Tests of sidecar.drift.kolmogorov: the rule as specified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sidecar.drift import kolmogorov
from sidecar.drift.stretch import Floats, Stretch
from sidecar.evaluation import Ks
from tests.drift.hours import OPTIONS, stretch


def usual(n: int) -> Floats:
    return np.asarray(0.35 * np.exp(0.45 * np.random.default_rng(n).standard_normal(n)))


def judge(now: Floats, then: Floats) -> Ks:
    found = kolmogorov.judge(stretch(now), stretch(then), OPTIONS)
    assert found is not None
    return found


@pytest.mark.parametrize("factor", [1.0, 1.03, 1.1, 1.3])
def test_d_is_that_of_the_durations(factor: float) -> None:
    """Between its bounds, and p agrees."""
    now, then = factor * usual(3_600), usual(25_200)
    found, true = judge(now, then), stats.ks_2samp(now, then, method="asymp")
    assert found.d <= true.statistic <= found.d_upper
    assert (found.p < 0.01) == (true.pvalue < 0.01)
    assert (found.n, found.m) == (3_600, 25_200)


@pytest.mark.parametrize(
    ("factor", "drifts"), [(1.0, False), (1.05, False), (1.3, True), (0.7, False)]
)
def test_both_conditions(factor: float, drifts: bool) -> None:
    """Another distribution, and P99 more than 120 ms above: 5 % differ and do not matter, and
    faster is no drift.
    """
    assert judge(factor * usual(3_600), usual(25_200)).drifts is drifts


def test_it_misses_a_slow_tail() -> None:
    """200 ms more for the slowest 2 %: D is 0.01, and no rule of whole distributions sees it."""
    now = usual(3_600)
    found = judge(np.where(now > np.quantile(now, 0.98), now + 0.2, now), usual(25_200))
    assert found.change.value > 0.12
    assert not found.drifts


def test_its_numbers_are_options() -> None:
    """Another least difference decides otherwise."""
    now, then = stretch(1.05 * usual(3_600)), stretch(usual(25_200))
    found = kolmogorov.judge(now, then, replace(OPTIONS, ks_delta_seconds=0.01))
    assert found is not None
    assert found.drifts


def test_nothing_to_compare() -> None:
    """An empty hour, or no day before."""
    some = stretch(usual(100))
    assert kolmogorov.judge(Stretch.empty(), some, OPTIONS) is None
    assert kolmogorov.judge(some, Stretch.empty(), OPTIONS) is None


def test_no_weighted_hours() -> None:
    """The rule is of whole ones."""
    some = stretch(usual(100))
    with pytest.raises(ValueError, match="whole hours"):
        kolmogorov.judge(some.weighted(0.5), some, OPTIONS)
