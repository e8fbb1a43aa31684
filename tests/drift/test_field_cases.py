"""Field cases 33, 34 and 36: latencies that drift while something else improves."""

from __future__ import annotations

import numpy as np

from sidecar.drift import kolmogorov
from sidecar.drift.evaluating import conclude, evaluate
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Stretch, sum_of
from sidecar.evaluation import Evaluation, Series
from tests.drift.hours import OPTIONS, Make, baseline, days, lognormal, shape, stretch, tail


def fired(signal: str, before: Make, after: Make, seed: int = 1) -> Evaluation:
    """After two evaluations in a row of an hour of another regime; the specified rule beside."""
    rng, rounds = np.random.default_rng(seed), Round()
    made = days(rng, before)
    usual = baseline(made)
    found: list[Evaluation] = []
    for at in (0.0, 300.0):
        current = after(rng)
        ks = kolmogorov.judge(current, sum_of(list(made.values())), OPTIONS)
        one = evaluate(Series(signal, "downstream", "s"), at, current, (), usual, OPTIONS, ks=ks)
        found = conclude([one], rounds, OPTIONS)
    return found[0]


def test_33_a_ttft_three_times_worse_drifts() -> None:
    """600 requests at 0.36 s where 0.12 s is usual: D near 1, the upper quantile three times as
    high, and both rules fire.
    """
    one = fired("ttft", lognormal(600, 0.12, 0.25), lognormal(600, 0.36, 0.25))
    assert one.ks is not None
    assert one.ks.d > 0.95
    assert one.ks.p < 1e-9
    assert {"tail", "ks"} <= one.firing
    usual = tail(one).seconds - tail(one).change.value
    assert 2.7 < tail(one).seconds / usual < 3.3


def test_33_the_end_to_end_improvement_is_stated_and_no_alarm() -> None:
    """2.6 to 2.3 s in the median."""
    for seed in range(5):
        one = fired("duration", lognormal(600, 2.6, 0.2), lognormal(600, 2.3, 0.2), seed)
        assert one.firing == frozenset()
        assert one.improved
        assert "an improvement" in one.text
        assert "below the same hour" in one.text


def itl(p99_seconds: float, n: int = 450) -> Make:
    """Inter-token latencies with that P99: preempted requests pause, most tokens do not notice."""
    return lognormal(n, p99_seconds / np.exp(2.326 * 0.3), 0.3)


def test_34_itl_drifts_though_ttft_improves() -> None:
    """450 requests of each regime: ITL P99 17.7 to 40.6 ms, which is no 120 ms, and TTFT P50 11.2
    to 6.56 s.
    """
    for seed in range(5):
        one = fired("itl", itl(0.0177), itl(0.0406), seed)
        assert "tail" in one.firing
        assert "ks" not in one.firing
        assert 1.9 < tail(one).seconds / (tail(one).seconds - tail(one).change.value) < 2.7
        first = fired("ttft", lognormal(450, 11.2, 0.3), lognormal(450, 6.56, 0.3), seed)
        assert first.firing == frozenset()
        assert first.improved


def test_34_when_only_the_slowest_gaps_move() -> None:
    """45,000 gaps, of which the slowest 3 % are 2.3 times as long: a median that is as ever."""

    def preempted(rng: np.random.Generator) -> Stretch:
        seconds = 0.0088 * np.exp(0.3 * rng.standard_normal(45_000))
        slow = seconds > np.quantile(seconds, 0.97)
        return stretch(np.where(slow, 2.3 * seconds, seconds))

    one = fired("itl", lognormal(45_000, 0.0088, 0.3), preempted)
    assert "tail" in one.firing
    assert tail(one).quantile == 0.99
    assert shape(one).drifts


def test_36_throttled_itl_drifts() -> None:
    """ITL P50 8 to 80 ms of 600 gaps: ten times as long, and still below the specified 120 ms."""
    one = fired("itl", lognormal(600, 0.008, 0.1), lognormal(600, 0.080, 0.1))
    assert "tail" in one.firing
    assert one.ks is not None
    assert one.ks.d == 1.0
    assert not one.ks.drifts
    assert tail(one).change.value > 0.06
