"""Rates and times against published values, textbook data and SciPy's own estimators."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chaos.statistics import (
    Interval,
    clopper_pearson,
    difference,
    kaplan_meier,
    mean_count,
    quantile,
    share,
    wilson,
)

# Weeks of remission under 6-MP and under placebo (Freireich et al., Blood 21, 1963): the data that
# textbooks of survival analysis are written on.
REMISSION = (6, 6, 6, 7, 10, 13, 16, 22, 23)
STILL = (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)
PLACEBO = (1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23)


@pytest.mark.parametrize(
    ("hits", "lower", "upper"), [(98, 93.0, 99.4), (95, 88.8, 97.8), (89, 81.4, 93.7)]
)
def test_wilson_has_the_published_values(hits: int, lower: float, upper: float) -> None:
    """The three rates of a hundred runs that a scenario is judged by."""
    found = wilson(hits, 100)
    assert (round(100 * found.lower, 1), round(100 * (found.upper or 0), 1)) == (lower, upper)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_both_intervals_are_those_of_scipy(counts: tuple[int, int]) -> None:
    """Its binomial test has the same two methods."""
    hits, n = counts
    test = stats.binomtest(hits, n)
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
        theirs = test.proportion_ci(0.95, method)
        assert ours(hits, n) == Interval(
            pytest.approx(theirs.low, abs=1e-9), pytest.approx(theirs.high, abs=1e-9)
        )


def test_clopper_pearson_holds_what_it_says() -> None:
    """For no true rate is it wrong in more than one case of twenty."""
    n = 20
    found = [clopper_pearson(hits, n) for hits in range(n + 1)]
    for rate in np.linspace(0.01, 0.99, 99):
        inside = [i.lower <= rate <= (i.upper or 0) for i in found]
        assert stats.binom.pmf(np.arange(n + 1), n, rate)[inside].sum() >= 0.95 - 1e-12


def test_no_runs_give_no_rate() -> None:
    """Nothing is known then, which is the whole interval."""
    found = share(0, 0)
    assert found.rate is None
    assert found.wilson == found.clopper == Interval(0.0, 1.0)


@pytest.mark.parametrize("counts", [(3, 2), (-1, 2), (0, -1)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int]) -> None:
    """The error names them."""
    with pytest.raises(ValueError, match=f"{counts[0]} of {counts[1]} is no count"):
        share(*counts)


def test_the_textbook_curve() -> None:
    """Six ties and twelve censored of twenty-one, as every textbook has them."""
    found = kaplan_meier(REMISSION, STILL)
    left = {step.at: round(1 - step.over, 3) for step in found.steps}
    assert left == {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    assert [step.risk for step in found.steps] == [21, 17, 15, 12, 11, 7, 6]
    first = found.steps[0]  # log-log, as R's survfit prints it
    assert (round(1 - first.upper, 3), round(1 - first.lower, 3)) == (0.620, 0.952)
    assert found.quantile(0.5).seconds == 23


def test_the_textbook_medians_interval() -> None:
    """All of the placebo group relapsed: median 8 weeks, 4 to 11 on the log-log scale."""
    median = kaplan_meier(PLACEBO).quantile(0.5)
    assert median.seconds == 8
    assert median.interval == Interval(4.0, 11.0)


TIMES = st.lists(st.integers(0, 30).map(float), max_size=30)


@given(TIMES.filter(bool), TIMES)
def test_the_curve_is_that_of_scipy(ended: list[float], cut: list[float]) -> None:
    """With ties, zeros and any censoring; where SciPy has an interval, it is ours too."""
    found = kaplan_meier(ended, cut)
    theirs = stats.ecdf(stats.CensoredData(uncensored=ended, right=cut))
    at = [step.at for step in found.steps]
    assert [s.over for s in found.steps] == pytest.approx(list(theirs.cdf.evaluate(at)), abs=1e-9)
    assert all(s.lower <= s.over + 1e-9 and s.over <= s.upper + 1e-9 for s in found.steps)


@pytest.mark.filterwarnings("ignore:The confidence interval is undefined")
def test_the_intervals_are_those_of_scipy() -> None:
    """Greenwood's variance on the log-log scale."""
    rng = random.Random(3)
    pairs = [(rng.expovariate(0.2), rng.expovariate(0.12)) for _ in range(60)]
    ended = [a for a, b in pairs if a <= b]
    cut = [b for a, b in pairs if b < a]
    found = kaplan_meier(ended, cut).steps[:-1]
    theirs = stats.ecdf(stats.CensoredData(uncensored=ended, right=cut)).sf
    bounds = theirs.confidence_interval(method="log-log")
    at = [step.at for step in found]
    assert len(at) > 30
    assert [1 - step.upper for step in found] == pytest.approx(list(bounds.low.evaluate(at)))
    assert [1 - step.lower for step in found] == pytest.approx(list(bounds.high.evaluate(at)))


def test_a_median_that_was_not_reached_is_none() -> None:
    """Five of eight did not recover: the median is not known, only that it is over a bound."""
    found = kaplan_meier([2.0, 3.0, 4.0], [60.0] * 5).quantile(0.5)
    assert found.seconds is None
    assert found.interval is not None
    assert (found.interval.lower, found.interval.upper) == (2.0, None)


@pytest.mark.parametrize(("n", "lower"), [(5, 0.0), (6, 1.0)])
def test_few_runs_set_no_lower_bound_of_a_median(n: int, lower: float) -> None:
    """The least of five is above the median in one case of 32, and no bound; that of six is."""
    bounds = kaplan_meier([float(at) for at in range(1, n + 1)]).quantile(0.5).interval
    assert bounds is not None
    assert bounds.lower == lower


@pytest.mark.parametrize("p", [0.5, 0.95])
def test_the_curves_quantiles_hold_what_they_say(p: float) -> None:
    """With a third censored about 95 of 100 intervals hold the true quantile: a lower bound of its
    own, and an upper one where the runs set one.
    """
    rng = random.Random(17)
    true = -math.log(1 - p)
    wrong = 0
    for _ in range(500):
        pairs = [(rng.expovariate(1), rng.expovariate(0.5)) for _ in range(40)]
        curve = kaplan_meier([a for a, b in pairs if a <= b], [b for a, b in pairs if b < a])
        bounds = curve.quantile(p).interval
        assert bounds is not None
        wrong += not bounds.lower <= true <= (math.inf if bounds.upper is None else bounds.upper)
    assert wrong <= 40


def test_all_censored_is_not_nothing() -> None:
    """That nobody recovered differs from that nobody was looked at."""
    assert kaplan_meier([], [60.0]).quantile(0.5).interval == Interval(0.0, None)
    assert kaplan_meier([]).quantile(0.5).interval is None


def test_censored_runs_are_not_thrown_away() -> None:
    """Leaving out who did not recover would halve the median here."""
    ended, cut = [1.0, 2.0, 3.0, 10.0, 11.0], [60.0] * 4
    assert kaplan_meier(ended, cut).quantile(0.5).seconds == 11.0
    assert kaplan_meier(ended).quantile(0.5).seconds == 3.0


@pytest.mark.parametrize("time", [-1.0, math.inf, math.nan])
def test_times_that_are_none_are_refused(time: float) -> None:
    """They would make a curve that looks like any other."""
    with pytest.raises(ValueError, match="finite seconds"):
        kaplan_meier([1.0, time])


def test_order_statistics_bound_a_median() -> None:
    """Of a hundred values the 40th and 61st do, as the tables say."""
    found = quantile([float(at) for at in range(1, 101)], 0.5)
    assert (found.seconds, found.interval) == (50.0, Interval(40.0, 61.0))


def test_few_values_set_no_upper_bound() -> None:
    """A median of five, and a 95th percentile of fifty, may lie above all of them."""
    assert quantile([1.0, 2.0, 3.0, 4.0, 5.0], 0.5).interval == Interval(0.0, None)
    p95 = quantile([float(at) for at in range(50)], 0.95)
    assert p95.interval is not None
    assert p95.interval.upper is None


def test_what_never_came_is_above_all() -> None:
    """The median is there only when more than half came; its lower bound may still be."""
    assert quantile([1.0, 2.0, math.inf], 0.5).seconds == 2.0
    found = quantile([1.0, math.inf, math.inf], 0.5)
    assert found.seconds is None
    assert quantile([1.0] + [math.inf] * 20, 0.5).interval == Interval(1.0, None)


@pytest.mark.parametrize("p", [0.5, 0.95])
def test_the_order_statistics_hold_what_they_say(p: float) -> None:
    """At least 95 of 100 samples have the true quantile inside, whatever the distribution."""
    rng = random.Random(11)
    true = -math.log(1 - p)
    inside = 0
    for _ in range(1000):
        bounds = quantile([rng.expovariate(1) for _ in range(120)], p).interval
        assert bounds is not None
        inside += bounds.lower <= true <= (bounds.upper or math.inf)
    assert inside >= 930


def test_alarms_an_hour_have_an_exact_interval() -> None:
    """Garwood's for 0 and 10 events: up to 3.69, and 4.80 to 18.39."""
    assert mean_count(0, 1.0) == Interval(0.0, pytest.approx(3.6889, abs=1e-4))
    ten = Interval(pytest.approx(4.7954, abs=1e-4), pytest.approx(18.3904, abs=1e-4))
    assert mean_count(10, 1.0) == ten
    assert mean_count(0, 0.0) == Interval(0.0, None)


def test_two_rates_are_compared_exactly() -> None:
    """Fisher's tea: 3 of 4 against 1 of 4 has P 0.486; without runs there is no comparison."""
    assert difference((3, 4), (1, 4)) == pytest.approx(0.4857, abs=1e-4)
    assert difference((0, 0), (1, 4)) is None
