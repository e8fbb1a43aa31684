"""The drift rules on engines' own buckets: what is said, what is refused, and what fires."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sidecar.drift.bucketed_rule import Hours, judge
from sidecar.drift.bucketed_usual import OTHER_BOUNDS
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Floats
from sidecar.evaluation import ENGINE, Series, Standing
from tests.drift.engines import (
    FINE,
    OPTIONS,
    REAL,
    SGLANG_TTFT,
    TGI_DURATION,
    TTFT,
    VLLM_TTFT,
    bucketed,
    hour,
    judged,
    known,
    lognormal,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20_260_311)


def slower(rng: np.random.Generator, seconds: float, share: float = 0.02) -> Floats:
    """An hour of which the slowest ones took so much longer."""
    values = np.sort(lognormal(rng))
    values[-round(share * len(values)) :] += seconds
    return values


def p99(values: Floats) -> float:
    return float(np.sort(values)[math.ceil(0.99 * len(values)) - 1])


@pytest.mark.parametrize("bounds", REAL)
def test_the_example_is_refused_by_every_engines_buckets(
    bounds: tuple[float, ...], rng: np.random.Generator
) -> None:
    """+150 ms on the slowest reads as anything from +14 to +269 ms: all of it lies within, and so
    does +0, so that neither rule is answered.
    """
    now, days = slower(rng, 0.15), [lognormal(rng) for _ in range(7)]
    slots = {f"2026-03-0{i}": hour(day, bounds) for i, day in enumerate(days, 1)}
    here = hour(now, bounds)
    one = judged(Hours(hour=here, days=slots, whole=here, whole_days=slots))
    assert one.standing is Standing.UNRESOLVED
    assert one.tail is not None
    true = p99(now) - p99(np.concatenate(days))
    assert 0.1 < true < 0.25
    for seconds in (0.014, 0.15, 0.269, true):
        assert one.tail.change.lower <= seconds <= one.tail.change.upper
    assert one.ks is None
    assert one.firing == frozenset()
    assert "the rule as specified is refused" in one.text


@pytest.mark.parametrize("bounds", REAL)
def test_what_interpolation_says_is_not_to_be_believed(
    bounds: tuple[float, ...], rng: np.random.Generator
) -> None:
    """Of the same change it makes something else with each set of bounds; the interval holds the
    truth with all of them.
    """
    before, now = lognormal(rng, 25_200), slower(rng, 0.15)
    true = p99(now) - p99(before)
    here, usual = (bucketed(values, bounds).quantile(0.99) for values in (now, before))
    assert here is not None
    assert usual is not None
    assert here.lower - usual.upper < true <= here.upper - usual.lower


def test_a_refusal_says_which_bounds_would_tell(rng: np.random.Generator) -> None:
    """With those, it can be told."""
    one = judged(known(hour(lognormal(rng)), rng))
    said = one.text.replace("\N{NO-BREAK SPACE}", " ")
    assert "bounds at 800 ms, 850 ms, 900 ms, 950 ms, 1.05 s, 1.10 s, 1.15 s, 1.20 s" in said
    more = (*VLLM_TTFT, 0.8, 0.85, 0.9, 0.95, 1.05, 1.1, 1.15, 1.2)
    bounds = tuple(sorted(more))
    again = judged(known(hour(lognormal(rng), bounds), rng, bounds))
    assert (again.standing, again.firing) == (Standing.JUDGED, frozenset())
    worse = judged(known(hour(slower(rng, 0.35, 0.05), bounds), rng, bounds))
    assert worse.tail is not None
    assert worse.tail.drifts


@pytest.mark.parametrize("bounds", [VLLM_TTFT, SGLANG_TTFT])
def test_a_change_that_no_bucket_can_hide_is_a_drift(
    bounds: tuple[float, ...], rng: np.random.Generator
) -> None:
    """All of the interval is more than matters."""
    one = judged(known(hour(4 * lognormal(rng), bounds), rng, bounds))
    assert one.standing is Standing.JUDGED
    assert one.tail is not None
    assert one.tail.drifts
    assert one.tail.change.lower > one.tail.change.guard
    assert one.ks is not None
    assert one.ks.drifts


def test_fine_buckets_are_judged_as_usual(rng: np.random.Generator) -> None:
    """Where the interval lies below the guard, there is no drift, by either rule."""
    one = judged(known(hour(lognormal(rng), FINE), rng, FINE))
    assert one.standing is Standing.JUDGED
    assert one.tail is not None
    assert not one.tail.drifts
    assert one.ks is not None
    assert not one.ks.drifts
    assert "refused" not in one.text


def test_the_level_moves_to_the_bound(rng: np.random.Generator) -> None:
    """What lies above the bound next above the usual P99 is counted, and its share is said."""
    one = judged(known(hour(4 * lognormal(rng)), rng))
    assert one.tail is not None
    assert one.tail.threshold == 1.0
    assert one.tail.expected / one.tail.n == pytest.approx(0.0098, abs=0.001)
    assert "above 1.00\N{NO-BREAK SPACE}s, the bound next above its usual P99" in one.text


@pytest.mark.parametrize("bounds", [VLLM_TTFT, SGLANG_TTFT, FINE])
def test_no_false_alarm_though_every_bucket_is_tried(
    bounds: tuple[float, ...], rng: np.random.Generator
) -> None:
    """Of 60 usual hours at medians that put P99 all over the buckets none drifts."""
    for median in np.geomspace(0.05, 3.0, 60):
        days = {f"2026-03-{i:02}": hour(lognormal(rng, 3_600, median), bounds) for i in range(1, 8)}
        now = hour(lognormal(rng, 3_600, median), bounds)
        one = judged(Hours(now, days, (), now, days))
        assert one.tail is None or not one.tail.drifts
        assert one.ks is None or not one.ks.drifts


def test_two_of_three_fire_and_the_way_back_needs_no_finer_buckets(
    rng: np.random.Generator,
) -> None:
    """An hour as usual is refused by coarse buckets, which resolves nothing. But an alarm was
    certain, and ends when nothing of it is left to be seen.
    """
    rounds = Round()
    said = []
    for factor in (1, 4, 4, 1, 1, 1, 1):
        now = hour(factor * lognormal(rng, median=0.3))
        one = judged(known(now, rng, median=0.3), rounds)
        said.append((one.standing, "tail" in one.firing))
    judged_, refused = Standing.JUDGED, Standing.UNRESOLVED
    assert said[:3] == [(refused, False), (judged_, False), (judged_, True)]
    assert said[3:] == [(judged_, True), (judged_, True), (judged_, False), (refused, False)]


def test_what_the_wire_judges_begins_no_alarm(rng: np.random.Generator) -> None:
    """It sees every request. The numbers are there all the same."""
    hours = known(hour(4 * lognormal(rng)), rng)
    rounds = Round()
    for _ in range(3):
        one = judged(hours, rounds, frozenset({"ttft"}))
        assert (one.standing, one.firing, one.ks) == (Standing.COVERED, frozenset(), None)
        assert one.tail is not None
    other = judged(hours, rounds, frozenset({"itl"}))
    assert other.standing is Standing.JUDGED


def test_one_that_fires_goes_on_to_its_own_end(rng: np.random.Generator) -> None:
    """The wire that comes back knows nothing of it yet."""
    hours, rounds = known(hour(4 * lognormal(rng)), rng), Round()
    for _ in range(2):
        judged(hours, rounds)
    one = judged(hours, rounds, frozenset({"ttft"}))
    assert one.standing is Standing.JUDGED
    assert "tail" in one.firing


def test_days_with_other_bounds_are_left_out(rng: np.random.Generator) -> None:
    """Where enough have those of now."""
    hours = known(hour(lognormal(rng), FINE), rng, FINE)
    old = {date: hour(lognormal(rng), VLLM_TTFT) for date in list(hours.days)[:3]}
    one = judged(replace(hours, days={**hours.days, **old}))
    assert one.standing is Standing.JUDGED
    assert one.dropped == tuple((date, OTHER_BOUNDS) for date in old)


def test_otherwise_the_bounds_that_all_have_must_do(rng: np.random.Generator) -> None:
    """Coarser, and still exact."""
    old = {f"2026-03-0{i}": hour(lognormal(rng), VLLM_TTFT) for i in range(1, 8)}
    now = hour(4 * lognormal(rng), tuple(sorted({*FINE, *VLLM_TTFT})))
    one = judged(Hours(hour=now, days=old))
    assert one.tail is not None
    assert one.tail.threshold in VLLM_TTFT
    assert one.tail.drifts


@pytest.mark.parametrize("bounds", [(), (0.1, 0.2)])
def test_buckets_that_say_nothing_of_p99_are_refused(
    bounds: tuple[float, ...], rng: np.random.Generator
) -> None:
    """A summary has none; others end too early."""
    one = judged(known(hour(lognormal(rng), bounds), rng, bounds))
    assert (one.standing, one.tail) == (Standing.UNRESOLVED, None)


@pytest.mark.parametrize(
    ("n", "days", "standing"),
    [(0, 7, Standing.IDLE), (7, 7, Standing.INSUFFICIENT), (3_600, 2, Standing.WARMING)],
)
def test_what_else_hinders(n: int, days: int, standing: Standing, rng: np.random.Generator) -> None:
    """As with the wire."""
    hours = known(hour(lognormal(rng, n)), rng)
    kept = dict(list(hours.days.items())[:days])
    one = judged(replace(hours, days=kept))
    assert (one.standing, one.n, one.tail) == (standing, n, None)


def test_an_hour_with_fewer_requests_is_judged_by_a_lower_quantile(
    rng: np.random.Generator,
) -> None:
    """As with the wire: P95 of 400."""
    one = judged(known(hour(4 * lognormal(rng, 500)), rng))
    assert one.tail is not None
    assert one.tail.quantile == 0.95


def test_a_day_of_an_incident_is_left_out(rng: np.random.Generator) -> None:
    """It stands out from the others."""
    hours = known(hour(4 * lognormal(rng)), rng)
    bad = {"2026-03-03": hour(5 * lognormal(rng))}
    one = judged(replace(hours, days={**hours.days, **bad}))
    assert [date for date, _ in one.dropped] == ["2026-03-03"]


def test_a_few_beyond_a_distant_bound_contaminate_no_day(rng: np.random.Generator) -> None:
    """Above 1 s, one in a hundred thousand is usual: five of 3,600 are no incident."""
    hours = known(hour(lognormal(rng, median=0.08)), rng)
    days = {date: hour(lognormal(rng, median=0.08), TGI_DURATION) for date in hours.days}
    first = next(iter(days))
    odd = (*days[first][:-1], bucketed([0.7] * 5, TGI_DURATION))
    one = judged(Hours(hours.hour, {**days, first: odd}))
    assert one.dropped == ()


def test_series_are_judged_together(rng: np.random.Generator) -> None:
    """Q is p corrected for all of the round."""
    series = {Series("ttft", ENGINE, f"r{i}"): known(hour(lognormal(rng)), rng) for i in range(7)}
    found = judge(series, 0.0, Round(), frozenset(), OPTIONS)
    tails = [one.tail for one in found if one.tail is not None]
    assert len(tails) == 7
    assert all(tail.q >= tail.p * (1 - 1e-9) for tail in tails)
    assert TTFT in {one.series for one in found}
