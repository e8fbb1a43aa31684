"""Tests of sidecar.drift.mix: another mix of requests is no drift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.drift import mix
from sidecar.drift.mix import Kinds
from sidecar.drift.stretch import Stretch, sum_of
from sidecar.evaluation import Standing
from sidecar.record import stratum
from tests.drift.hours import Make, baseline, days, judged, shape, stretch, tail


def two_kinds(share: float, n: int = 3_600, slower: float = 1.0) -> Make:
    """Kind 1 around 350 ms and, of such a share, kind 4 that takes twice as long."""

    def make(rng: np.random.Generator) -> Stretch:
        long = rng.random(n) < share
        seconds = slower * 0.35 * np.exp(0.45 * rng.standard_normal(n)) * np.where(long, 2, 1)
        return stretch(seconds, np.where(long, 4, 1).tolist())

    return make


@given(st.integers(0, 2**32), st.floats(0.1, 5))
def test_the_same_mix_corrects_nothing(seed: int, weight: float) -> None:
    """Whatever is compared with itself, of whatever weight, keeps all its requests."""
    rng = np.random.default_rng(seed)
    hour = stretch(rng.exponential(1.0, 900), rng.integers(0, 3, 900).tolist())
    found = mix.compare(hour, Kinds.of(hour.weighted(weight), 0.0))
    assert found.ratio is None
    assert found.unknown == 0.0
    assert np.array_equal(found.counts, hour.counts)


def test_the_expected_share_is_that_of_the_new_mix() -> None:
    """From 20 to 50 % of long requests: more than twice as many lie above the usual P99, and that
    is what is expected, within 5 %.
    """
    rng = np.random.default_rng(2)
    before = baseline(days(rng, two_kinds(0.2, 20_000)))
    now = sum_of([two_kinds(0.5, 20_000)(rng) for _ in range(10)])
    found = mix.compare(now, before.kinds)
    for level in before.levels:
        above = now.counts[level.cell + 1 :].sum() / now.n
        assert level.share * found.at(level.cell) == pytest.approx(above, rel=0.05)
    assert found.at(before.levels[0].cell) > 2


def test_a_change_of_the_mix_alone_does_not_drift() -> None:
    """Of 60 hours none drifts, and the difference to the baseline at that mix is near 0."""
    rng = np.random.default_rng(3)
    found = [judged(two_kinds(0.5)(rng), baseline(days(rng, two_kinds(0.2)))) for _ in range(60)]
    assert not any(tail(one).drifts for one in found)
    assert np.mean([tail(one).p < 0.05 for one in found]) <= 0.1
    assert abs(np.mean([tail(one).change.value for one in found])) < 0.03


def test_a_drift_shows_behind_a_change_of_the_mix() -> None:
    """All requests 25 % slower while the mix turns to shorter ones: as many are slow as before, and
    it is seen.
    """
    rng = np.random.default_rng(4)
    one = judged(two_kinds(0.2, slower=1.25)(rng), baseline(days(rng, two_kinds(0.5))))
    assert one.mix < 0.6
    assert tail(one).drifts
    assert "at this mix" in one.text


def sized(share: float, slower: float = 1.0, known: bool = True) -> Make:
    """Requests of 512 B to 1 kB, and a share of 1 to 2 kB; 1 kB takes 350 ms, and what is larger as
    much longer. Not ``known``: told apart by a factor of 4, which all of them lie within.
    """

    def make(rng: np.random.Generator) -> Stretch:
        sizes = 512 * 2 ** (rng.random(3_600) + (rng.random(3_600) < share))
        seconds = slower * 0.35 * sizes / 1_000 * np.exp(0.3 * rng.standard_normal(3_600))
        return stretch(seconds, [stratum(int(size)) if known else 3 for size in sizes])

    return make


def drifting(now: Make, before: Make, hours: int = 20) -> int:
    """In how many hours it drifts, by the tail or the shape."""
    rng = np.random.default_rng(9)
    found = [judged(now(rng), baseline(days(rng, before))) for _ in range(hours)]
    return sum(tail(one).drifts or shape(one).drifts for one in found)


def test_sizes_that_shift_within_a_factor_of_four_do_not_drift() -> None:
    """From a fifth to two thirds of larger requests, each size as fast as it was: the P99 grows by
    300 ms and that is what is expected. Were the sizes not told apart, every hour would drift.
    """
    assert drifting(sized(0.67), sized(0.2)) == 0
    assert drifting(sized(0.67, known=False), sized(0.2, known=False)) == 20


def test_a_slower_server_drifts_behind_such_a_shift() -> None:
    """All sizes 30 % slower, more of the larger ones or fewer."""
    assert drifting(sized(0.67, slower=1.3), sized(0.2)) == 20
    assert drifting(sized(0.2, slower=1.3), sized(0.67)) == 20


def test_a_duration_is_expected_by_both_sizes() -> None:
    """Answers as long as they were, and three in ten more prompts of 16 kB: longer and no drift."""

    def both(share: float, slower: float = 1.0) -> Make:
        def make(rng: np.random.Generator) -> Stretch:
            long, events = rng.random(3_600) < share, rng.integers(8, 200, 3_600)
            noise = np.exp(0.1 * rng.standard_normal(3_600))
            seconds = slower * noise * (np.where(long, 2.0, 0.2) + 0.02 * events)
            pairs = zip(np.where(long, 16_000, 1_000).tolist(), events.tolist(), strict=True)
            return stretch(seconds, [stratum(*pair) for pair in pairs])

        return make

    assert drifting(both(0.4), both(0.1)) == 0
    assert drifting(both(0.4, slower=1.2), both(0.1)) == 20


def kinds_of(counts: dict[int, int], known: float = 100) -> Kinds:
    """Of a baseline with so many requests of each stratum."""
    listed = [kind for kind, count in counts.items() for _ in range(count)]
    return Kinds.of(stretch(np.ones(len(listed)), listed), known)


def test_neighbours_are_one_kind_until_there_are_enough() -> None:
    """What is left over goes to the last; what the baseline has none of, to its neighbours."""
    kinds = kinds_of({3: 60, 4: 50, 5: 700, 7: 300, 10: 20})
    assert kinds.kind_of[3:11].tolist() == [0, 0, 1, 2, 2, 2, 2, 2]
    assert kinds.size.tolist() == [110, 700, 320, 0]
    assert kinds.shares.sum() == pytest.approx(1)


def test_sizes_and_answers_that_are_rare_are_not_known() -> None:
    """By a factor of 4 of either: 99 requests of up to 32 kB, and 99 answers of 8 to 32 events."""
    few = {stratum(20_000): 99, stratum(1_000, 20): 99}
    kinds = kinds_of({stratum(1_000): 500, stratum(1_000, 5): 500, **few})
    last = len(kinds.shares) - 1
    assert [int(kinds.kind_of[kind]) for kind in few] == [last, last]
    assert kinds.shares[last] == pytest.approx(198 / 1_198)
    assert kinds.kind_of[stratum(1_000)] != kinds.kind_of[stratum(1_000, 5)] != last
    assert kinds.kind_of[stratum(20_000, 5)] == last


def test_a_rare_size_of_a_known_answer_has_a_kind() -> None:
    """Fewer than are enough of one answer and size, and of the answer there are enough."""
    kinds = kinds_of(
        {stratum(1_000, 5): 90, stratum(9_000, 5): 90, stratum(1_000): 500} | {14: 500}
    )
    assert kinds.kind_of[stratum(1_000, 5)] == kinds.kind_of[stratum(9_000, 5)]
    assert kinds.size[kinds.kind_of[stratum(9_000, 5)]] == 180


def test_requests_of_an_unknown_kind_are_left_out() -> None:
    """A tenth of the requests is of a kind never seen, and slow: no drift, and it is told."""
    rng = np.random.default_rng(5)
    before = baseline(days(rng, two_kinds(0.2)))
    new = stretch(np.full(400, 5.0), [7] * 400)
    one = judged(two_kinds(0.2)(rng) + new, before)
    assert one.unknown == pytest.approx(0.1)
    assert not tail(one).drifts
    assert tail(one).n == 3_600


def test_mostly_unknown_requests_are_not_judged() -> None:
    """Above 30 % the hour is unlike the days before."""
    rng = np.random.default_rng(5)
    before = baseline(days(rng, two_kinds(0.2)))
    one = judged(two_kinds(0.2)(rng) + stretch(np.full(2_000, 5.0), [7] * 2_000), before)
    assert one.standing is Standing.UNLIKE
    assert one.tail is None
    assert "36 %" in one.text.replace("35.7", "36")


def test_a_kind_that_was_rare_makes_the_baseline_small() -> None:
    """25,200 requests of which 1 % are of a kind that is half of them now: worth far fewer."""
    rng = np.random.default_rng(6)
    before = baseline(days(rng, two_kinds(0.01)))
    shares = before.kinds.shares
    cell = before.levels[0].cell
    assert mix.size(shares, before.kinds, cell) == pytest.approx(before.size, rel=0.1)
    half = np.where(shares > 0, 0.5, 0.0)
    assert mix.size(half, before.kinds, cell) < 1_500


def test_a_rare_kind_that_becomes_common_alarms_rarely() -> None:
    """Known from 250 requests, and the test knows that: of 150 hours few have p < 1 %."""
    rng, small = np.random.default_rng(7), 0
    for _ in range(150):
        one = judged(two_kinds(0.3)(rng), baseline(days(rng, two_kinds(0.01))))
        small += tail(one).p < 0.01
    assert small <= 4


def test_no_known_request_at_all() -> None:
    """An hour of nothing but a new kind has no mix to correct for."""
    rng = np.random.default_rng(8)
    before = baseline(days(rng, two_kinds(0.2)))
    found = mix.compare(stretch(np.ones(50), [7] * 50), before.kinds)
    assert found.unknown == 1.0
    assert found.counts.sum() == 0
