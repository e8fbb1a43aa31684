"""Tests of sidecar.drift.distance and of the probabilities in sidecar.drift.smirnov."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from sidecar.drift.distance import Distance, ks, ks_counts
from sidecar.drift.smirnov import one_sided, two_sided
from sidecar.loghist import CELLS, HIGHEST, LogHist, lower

Floats = NDArray[np.float64]
seeds = st.integers(0, 2**32)
few = st.lists(
    st.floats(0, 700) | st.floats(0.3, 0.33) | st.sampled_from([0.0, lower(500), HIGHEST]),
    min_size=1,
    max_size=60,
)


def of(seconds: Floats) -> LogHist:
    hist = LogHist()
    hist.add_many(seconds)
    return hist


def scipy_ks(current: Floats, baseline: Floats, slower_only: bool) -> tuple[float, float]:
    """D and p of the durations themselves; SciPy's `less` is a distribution that lies below."""
    found = stats.ks_2samp(
        np.minimum(current, HIGHEST),
        np.minimum(baseline, HIGHEST),
        alternative="less" if slower_only else "two-sided",
        method="asymp",
    )
    return float(found.statistic), float(found.pvalue)


def check(current: Floats, baseline: Floats, slower_only: bool) -> Distance:
    found = ks(of(current), of(baseline), slower_only=slower_only)
    assert found is not None
    true, p = scipy_ks(current, baseline, slower_only)
    assert (found.n, found.m) == (len(current), len(baseline))
    assert found.d <= true <= found.d_upper
    if found.d == true and not math.isnan(p):
        assert found.p == pytest.approx(p, abs=1e-9)
    assert found.differs == (found.p < 0.01)
    if found.certain:
        assert found.differs == (p < 0.01)
    return found


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # SciPy's, of one against one
@settings(deadline=None)
@given(few, few, st.booleans())
def test_the_true_distance_lies_between_the_bounds(
    current: list[float], baseline: list[float], slower_only: bool
) -> None:
    """Whatever the durations; and the decision is SciPy's unless it is said to be uncertain."""
    check(np.array(current), np.array(baseline), slower_only)


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(20, 4_000), st.integers(20, 8_000), st.floats(0.9, 1.3), st.booleans())
def test_so_it_does_for_latencies(
    seed: int, n: int, m: int, slower: float, slower_only: bool
) -> None:
    """Lognormal ones, now as before or slower."""
    rng = np.random.default_rng(seed)
    current = rng.lognormal(math.log(0.35 * slower), 0.45, n)
    check(current, rng.lognormal(math.log(0.35), 0.45, m), slower_only)


def test_both_bounds_are_reached() -> None:
    """Two samples within one cell are equal, or as far apart as can be."""
    near, far = np.full(30, lower(500)), np.full(30, lower(501) - 1e-9)
    found = check(near, far, slower_only=False)
    assert (found.d, found.d_upper, found.certain) == (0.0, 1.0, False)
    assert scipy_ks(near, far, False)[0] == 1.0
    assert scipy_ks(near, near, False)[0] == 0.0


def test_where_cells_separate_all_of_it_the_distance_is_exact() -> None:
    """No cell holds durations of both."""
    rng = np.random.default_rng(5)
    current, baseline = rng.uniform(0.5, 0.6, 97), rng.uniform(0.1, 0.4, 113)
    found = check(current, baseline, slower_only=False)
    assert (found.d, found.d_upper, found.certain) == (1.0, 1.0, True)


def test_what_never_ended_is_equal() -> None:
    """A service that fails 5 % of requests now as before is no more uncertain for it."""
    rng = np.random.default_rng(7)
    current, baseline = rng.lognormal(-1, 0.45, 3_600), rng.lognormal(-1, 0.45, 25_200)
    current[:180], baseline[:1_260] = math.inf, math.inf
    found = check(current, baseline, slower_only=False)
    assert found.d_upper - found.d < 0.01


def test_one_sided_sees_only_what_is_slower() -> None:
    """What is faster has no distance and the probability 1."""
    rng = np.random.default_rng(11)
    current, baseline = rng.lognormal(-1.2, 0.45, 3_600), rng.lognormal(-1, 0.45, 25_200)
    faster = check(current, baseline, slower_only=True)
    slower = check(baseline, current, slower_only=True)
    assert faster.d < 0.01
    assert not faster.differs
    assert slower.d > 0.15
    assert slower.differs


@pytest.mark.parametrize("seed", range(5))
def test_an_hour_like_the_week_is_certainly_like_it(seed: int) -> None:
    """The cells are fine enough for the usual case: of the same distribution nothing differs."""
    rng = np.random.default_rng(seed)
    now, before = rng.lognormal(-1, 0.45, 3_600), rng.lognormal(-1, 0.45, 25_200)
    found = check(now, before, slower_only=False)
    assert not found.differs
    assert found.d_upper - found.d < 0.01


def test_nothing_has_no_distance() -> None:
    """Nor is it zero."""
    assert ks(LogHist(), of(np.array([0.1]))) is None
    assert ks(of(np.array([0.1])), LogHist()) is None


def test_counts_that_sum_up_beyond_64_bits_do_not_wrap() -> None:
    """Sums are floats."""
    counts = np.full(CELLS, 2**62)
    found = ks_counts(counts, counts)
    assert found is not None
    assert (found.d, found.p) == (0.0, 1.0)


def distances(effective: int) -> list[float]:
    """From both sides of every place where another form is used, and between them."""
    edges = [2.2, 4.0, 0.02, 0.3, 0.755, 1.0, 1.7, 3.0, 6.0, 10.0, 18.0, 40.0]
    places = [math.sqrt(z2 / effective) for z2 in edges]
    places += [(1.4 / effective) ** (2 / 3), 0.5 / effective, 1 / effective, 0.5, 0.9, 1.0]
    return [d for place in places for d in (place * 0.999_999, place, place * 1.000_001) if d <= 1]


@pytest.mark.parametrize(
    "effective", [1, 2, 3, 7, 31, 139, 140, 141, 300, 511, 512, 513, 3_150, 4_999, 5_000, 20_011]
)
def test_p_is_scipys(effective: int) -> None:
    """To 1e-9, and to 1e-6 of itself where it matters and is small, whatever form is used."""
    for d in distances(effective):
        if effective > 10_000 and d > 0.1:
            continue  # SciPy sums for seconds what is 0
        mine, theirs = two_sided(2 * effective, 2 * effective, d), stats.kstwo.sf(d, effective)
        assert mine == pytest.approx(float(theirs), abs=1e-9), d
        if 1e-200 < theirs < 0.02:
            assert mine == pytest.approx(float(theirs), rel=1e-6), d


def test_p_of_more_than_a_million_is_exact_where_scipys_is_not() -> None:
    """It has an approximation there that is off by a millionth; the sum is Birnbaum's."""
    n = 1_000_003
    for z2 in (2.3, 2.6, 3.0):
        d = math.sqrt(z2 / n)
        j = np.arange(math.ceil(n * (1 - d)))
        chosen = special.gammaln(n + 1) - special.gammaln(j + 1) - special.gammaln(n - j + 1)
        terms = chosen + (j - 1) * np.log(d + j / n) + (n - j) * np.log1p(-d - j / n)
        exact = 2 * d * float(np.exp(terms).sum())
        assert two_sided(2 * n, 2 * n, d) == pytest.approx(exact, rel=1e-7)
        assert float(stats.kstwo.sf(d, n)) == pytest.approx(exact, rel=1e-5)


@settings(deadline=None)
@given(st.integers(1, 10**9), st.integers(1, 10**9), st.floats(0, 1))
def test_p_is_a_probability(n: int, m: int, d: float) -> None:
    """Of any sizes."""
    assert 0.0 <= two_sided(n, m, d) <= 1.0
    assert 0.0 <= one_sided(n, m, d) <= 1.0


@settings(deadline=None)
@given(st.integers(1, 10_000), st.floats(0, 1), st.floats(0, 1))
def test_p_falls_as_the_distance_grows(n: int, one: float, two: float) -> None:
    """Which is what makes a decision certain at both bounds certain between them."""
    near, far = sorted((one, two))
    assert two_sided(n, 7 * n, near) >= two_sided(n, 7 * n, far) - 1e-9
    assert one_sided(n, 7 * n, near) >= one_sided(n, 7 * n, far)
