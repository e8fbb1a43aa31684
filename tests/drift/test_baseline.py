"""Tests of sidecar.drift.baseline and sidecar.drift.dispersion."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sidecar import loghist
from sidecar.drift import dispersion
from sidecar.drift.baseline import CONTAMINATED, FEW, Baseline, Lacking, pool
from sidecar.drift.dispersion import Prior
from sidecar.drift.stretch import Stretch, sum_of
from sidecar.evaluation import Standing
from tests.drift.hours import OPTIONS, baseline, days, lognormal, stretch


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_the_threshold_is_the_median_of_the_days() -> None:
    """P99 of a log-normal hour is 997 ms; about 1 % lie above t₀."""
    [level, *_] = baseline(days(rng(), lognormal(3_600))).levels
    assert loghist.upper(level.cell) == pytest.approx(0.997, rel=0.02)
    assert level.share == pytest.approx(0.01, rel=0.15)


@pytest.mark.parametrize(
    ("n", "quantile"), [(3_600, 0.99), (2_000, 0.99), (1_999, 0.95), (400, 0.95), (399, 0.9)]
)
def test_the_quantile_that_so_many_requests_allow(n: int, quantile: float) -> None:
    """P99 from 2,000 on, P95 from 400, P90 from 200."""
    level = baseline(days(rng(), lognormal(3_600))).level(n)
    assert level is not None
    assert level.quantile == quantile
    assert baseline(days(rng(), lognormal(3_600))).level(199) is None


def test_days_with_few_requests_know_no_high_quantile() -> None:
    """Three hundred a day do for P95, not for P99."""
    assert [x.quantile for x in baseline(days(rng(), lognormal(300))).levels] == [0.95, 0.9]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_days(count: int) -> None:
    """Below three, nothing is said yet."""
    found = Baseline.of(days(rng(), lognormal(3_600), count), OPTIONS)
    assert isinstance(found, Lacking)
    assert found.standing is Standing.WARMING
    assert len(found.kept) == count


def test_a_day_with_next_to_nothing_is_none() -> None:
    """It is dropped by name, and does not make a third."""
    made = days(rng(), lognormal(3_600), 2) | {"2026-03-09": stretch(np.ones(20))}
    found = Baseline.of(made | {"2026-03-10": Stretch.empty()}, OPTIONS)
    assert isinstance(found, Lacking)
    assert found.dropped == (("2026-03-09", FEW), ("2026-03-10", FEW))


def test_a_contaminated_day_is_dropped() -> None:
    """An incident of last week, 5 % slow, is no part of what is usual."""
    random = rng()
    made = days(random, lognormal(3_600))
    clean = baseline(made)
    seconds = 0.35 * np.exp(0.45 * random.standard_normal(3_600))
    made["2026-03-04"] = stretch(np.where(random.random(3_600) < 0.05, 3.0, seconds))
    found = baseline(made)
    assert found.dropped == (("2026-03-04", CONTAMINATED),)
    assert found.levels[0].share == pytest.approx(clean.levels[0].share, rel=0.15)


def test_three_days_are_kept_whatever_they_are() -> None:
    """Of four of which two are bad, one goes; the other makes the baseline wide, not none."""
    random = rng()
    made = days(random, lognormal(3_600), 2)
    made |= {"2026-03-08": lognormal(3_600, 1.5)(random), "2026-03-09": lognormal(3_600, 9)(random)}
    found = Baseline.of(made, OPTIONS)
    assert isinstance(found, Baseline)
    assert len(found.kept) >= OPTIONS.keep_days


def test_of_three_days_none_is_dropped() -> None:
    """Not even one that stands out: two would be no baseline."""
    random = rng()
    made = {**days(random, lognormal(3_600), 2), "2026-03-09": lognormal(3_600, 9)(random)}
    assert (len(baseline(made).kept), baseline(made).dropped) == (3, ())


def test_clean_days_are_rarely_dropped() -> None:
    """Of 100 baselines of three to seven clean days, hardly any loses one, MAD 0 included."""
    random = rng()
    dropped = sum(
        bool(baseline(days(random, lognormal(500), 3 + i % 5)).dropped) for i in range(100)
    )
    assert dropped <= 2


def test_days_that_are_all_alike() -> None:
    """With no deviation at all, chance still allows some, and a bad day is still one."""
    same = np.full(3_600, 0.2)
    made = {f"2026-03-0{i}": stretch(same) for i in range(1, 7)}
    assert baseline(made).dropped == ()
    made["2026-03-07"] = stretch(np.where(np.arange(3_600) % 20 == 0, 2.0, 0.2))
    assert baseline(made).dropped == (("2026-03-07", CONTAMINATED),)


def test_one_cell_holds_all() -> None:
    """Nothing lies above t₀; its share is less than one request, and not 0."""
    [level, *_] = baseline(
        {f"2026-03-0{i}": stretch(np.full(3_600, 0.2)) for i in (1, 2, 3)}
    ).levels
    assert 0 < level.share < 1e-4
    assert level.phi == 1.0


def test_all_above_the_range() -> None:
    """Where the days before failed, there is nothing to compare with, and that is what is said."""
    found = Baseline.of(
        {f"2026-03-0{i}": stretch(np.full(900, math.inf)) for i in (1, 2, 3)}, OPTIONS
    )
    assert isinstance(found, Lacking)
    assert found.standing is Standing.BEYOND


def test_some_above_the_range() -> None:
    """With 2 % that failed on each day P99 is unknown, P95 is not."""
    seconds = np.where(np.arange(3_600) % 50 == 0, math.inf, 0.3)
    found = baseline({f"2026-03-0{i}": stretch(seconds) for i in (1, 2, 3)})
    assert [level.quantile for level in found.levels] == [0.95, 0.9]


def test_independent_requests_do_not_disperse() -> None:
    """φ is near 1 over days (6 degrees of freedom) and blocks (167)."""
    random = rng()
    levels = [baseline(days(random, lognormal(3_600))).levels[0] for _ in range(60)]
    assert np.mean([level.phi_days for level in levels]) == pytest.approx(1, abs=0.2)
    assert np.mean([level.phi_blocks for level in levels]) == pytest.approx(1, abs=0.05)


def test_clumps_disperse_blocks() -> None:
    """Each request thrice over: φ of blocks and days is 3."""
    random = rng()
    make = lognormal(1_200)
    levels = []
    for _ in range(40):
        made = {
            date: Stretch(
                3 * day.counts,
                day.kinds,
                3 * day.strata,
                3 * day.squares,
                day.blocks,
                3 * day.n,
                3 * day.n,
            )
            for date, day in days(random, make).items()
        }
        levels.append(baseline(made).levels[0])
    assert np.mean([level.phi_blocks for level in levels]) == pytest.approx(3, rel=0.08)
    assert np.mean([level.phi_days for level in levels]) == pytest.approx(3, rel=0.25)


def test_days_of_two_weighted_hours_do_not_disperse_less() -> None:
    """Half of two hours varies half as much as an hour; φ takes that into account."""
    random = rng()

    def between(random: np.random.Generator) -> Stretch:
        return sum_of([lognormal(3_600)(random).weighted(0.5) for _ in range(2)])

    levels = [baseline(days(random, between)).levels[0] for _ in range(60)]
    assert np.mean([level.phi_days for level in levels]) == pytest.approx(1, abs=0.2)
    assert np.mean([level.phi_blocks for level in levels]) == pytest.approx(1, abs=0.05)


def test_moderation() -> None:
    """(12 pool + 6 own) / 18, and never below 1 nor below that of the blocks."""
    assert dispersion.moderated(4.0, 1.0, 6, Prior(1.0, 12)) == pytest.approx(2.0)
    assert dispersion.moderated(1.0, 3.0, 6, Prior(1.0, 12)) == 3.0
    assert dispersion.moderated(0.1, 0.1, 6, Prior(1.0, 12)) == 1.0


def test_a_pool_weighs_what_is_in_it() -> None:
    """One series has no prior, several have one of twelve degrees of freedom at most."""
    assert Prior.of([5.0], 2, 12) == Prior(5.0, 0)
    assert Prior.of([5.0, 1.0, 2.0], 2, 12) == Prior(2.0, 4)
    assert Prior.of([1.5] * 300, 2, 12) == Prior(1.5, 12)
    assert Prior.of([], 2, 12) == Prior()
    one = baseline(days(rng(), lognormal(3_600)))
    wild = replace(one, levels=tuple(replace(level, phi_days=80.0) for level in one.levels))
    assert pool([one, one, wild])[0.99].phi == one.levels[0].phi
