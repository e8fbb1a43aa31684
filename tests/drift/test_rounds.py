"""Tests of sidecar.drift.rounds: many series, again and again."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sidecar.drift.rounds import Round, adjusted
from sidecar.evaluation import Change, Evaluation, Ks, Series, Shape, Standing, Tail
from tests.drift.hours import OPTIONS, TTFT

BAD, SMALL, GOOD = (1e-9, 0.3), (1e-9, 0.05), (0.6, 0.0)  # p, and the change in seconds


def evaluation(p: float, change: float, series: Series = TTFT, **changes: object) -> Evaluation:
    """Judged: the tail test's p and change; a shape as usual."""
    moved = Change(change, change - 0.03, change + 0.03, 0.12)
    tail = Tail(0.99, 1.0, 0.9, 3_600, 60, 36.0, 1.0, 3.0, p, p, moved, drifts=False)
    shape = Shape(1.0, 0.95, 0.9, 0.9, moved, drifts=False)
    one = Evaluation(series, 0.0, Standing.JUDGED, n=3_600, tail=tail, shape=shape)
    return replace(one, **changes)  # type: ignore[arg-type]


def unjudged(standing: Standing) -> Evaluation:
    return Evaluation(TTFT, 0.0, standing)


def firing(rounds: Round, *evaluations: Evaluation) -> list[bool]:
    """Whether the tail fires after each, one a round."""
    return ["tail" in rounds.conclude([one], OPTIONS)[0].firing for one in evaluations]


def of(*verdicts: tuple[float, float]) -> list[Evaluation]:
    return [evaluation(*verdict) for verdict in verdicts]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_q_is_that_of_scipy(p: list[float]) -> None:
    """Benjamini and Hochberg's."""
    assert adjusted(p) == pytest.approx(stats.false_discovery_control(p))


def test_no_p_no_q() -> None:
    """A round in which nothing is judged."""
    assert adjusted([]) == []


def test_p_is_judged_among_the_others() -> None:
    """At p = 0.01 a series that is alone drifts, and one among a hundred does not."""
    one = evaluation(0.01, 0.3)
    others = [evaluation(0.5, 0.0, Series("ttft", "downstream", str(i))) for i in range(99)]
    [alone] = Round().conclude([one], OPTIONS)
    among = Round().conclude([one, *others], OPTIONS)[0]
    assert (alone.tail and alone.tail.drifts, alone.tail and alone.tail.q) == (True, 0.01)
    assert (among.tail and among.tail.drifts) is False
    assert among.tail
    assert among.tail.q == pytest.approx(0.505, abs=0.02)


def test_those_that_are_not_judged_are_no_series_of_the_round() -> None:
    """They do not make the others' q larger."""
    idle = [replace(unjudged(Standing.IDLE), series=Series("itl", "", str(i))) for i in range(50)]
    found = Round().conclude([*idle, evaluation(0.01, 0.3)], OPTIONS)
    assert found[-1].tail
    assert found[-1].tail.q == 0.01
    assert [one.standing for one in found[:-1]] == [Standing.IDLE] * 50


def test_false_discoveries_of_a_null_round() -> None:
    """Of 400 rounds of 40 healthy series, hardly more than 5 % have any with q of 0.05 or less."""
    rng = np.random.default_rng(1)
    some = [min(adjusted(rng.random(40).tolist())) <= 0.05 for _ in range(400)]
    assert np.mean(some) < 0.085


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([BAD], [False]),
        ([BAD, BAD], [False, True]),
        ([BAD, GOOD, BAD], [False, False, True]),
        ([BAD, GOOD, GOOD, BAD], [False] * 4),
        ([SMALL, SMALL, SMALL], [False] * 3),
    ],
)
def test_two_of_three_fire(verdicts: list[tuple[float, float]], expected: list[bool]) -> None:
    """And what is below the guard never does."""
    assert firing(Round(), *of(*verdicts)) == expected


def test_it_clears_after_a_quarter_of_an_hour() -> None:
    """Three good evaluations in a row: one between good and bad starts the count anew."""
    between = (0.02, 0.07)  # above half of the guard, p below 0.1
    assert firing(Round(), *of(BAD, BAD, GOOD, GOOD, GOOD, BAD)) == [
        False, True, True, True, False, False,
    ]  # fmt: skip
    assert firing(Round(), *of(BAD, BAD, GOOD, GOOD, between, GOOD, GOOD, GOOD))[1:] == [
        True, True, True, True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("good", [(0.05, 0.0), (0.6, 0.07)])
def test_both_have_to_be_good(good: tuple[float, float]) -> None:
    """A p that is still small, or a change above half of the guard, keeps it firing."""
    assert all(firing(Round(), *of(BAD, BAD, *[good] * 9))[1:])


@pytest.mark.parametrize(
    "standing", [one for one in Standing if one not in (Standing.JUDGED, Standing.WARMING)]
)
def test_without_a_verdict_nothing_clears(standing: Standing) -> None:
    """No traffic, too little of it: what fires goes on, and good ones count."""
    nothing = [unjudged(standing)] * 20
    rounds = Round()
    assert all(firing(rounds, *of(BAD, BAD), *nothing)[1:])
    assert firing(rounds, *of(GOOD, GOOD, GOOD)) == [True, True, False]


def test_without_a_baseline_nothing_fires_on() -> None:
    """It was reset; and as long as something fires, no day would become usual again."""
    rounds = Round()
    assert firing(rounds, *of(BAD, BAD), unjudged(Standing.WARMING)) == [False, True, False]
    assert rounds.to_json() == {"memories": []}


@pytest.mark.parametrize("standing", [Standing.IDLE, Standing.INSUFFICIENT])
def test_without_a_verdict_nothing_fires(standing: Standing) -> None:
    """What was bad long ago is not the first of two."""
    nothing = [unjudged(standing)] * 3
    assert not any(firing(Round(), *of(BAD), *nothing, *of(BAD)))


def test_the_specified_rule_has_no_memory() -> None:
    """It fires and clears with its hour, as specified; not judged, it stays."""
    moved = Change(0.3, 0.2, 0.4, 0.12)
    bad, good = (Ks(900, 900, 0.2, 0.21, 1e-6, moved, drifts=drifts) for drifts in (True, False))
    rounds = Round()
    found = [
        rounds.conclude([evaluation(*GOOD, ks=ks)], OPTIONS)[0].firing
        for ks in (good, bad, None, good)
    ]
    assert found == [frozenset(), {"ks"}, {"ks"}, frozenset()]


def test_the_shape_fires_by_itself() -> None:
    """Above 3.60 and its guard, though exceedances are as usual."""
    shape = Shape(6.0, 0.997, 1e-5, 1e-5, Change(0.5, 0.3, 0.7, 0.12), drifts=False)
    one, rounds = evaluation(*GOOD, shape=shape), Round()
    assert [rounds.conclude([one], OPTIONS)[0].firing for _ in range(2)] == [
        frozenset(),
        {"shape"},
    ]


def test_below_3_60_the_shape_is_silent() -> None:
    """Whatever its q."""
    shape = Shape(3.5, 0.997, 1e-5, 1e-5, Change(0.5, 0.3, 0.7, 0.12), drifts=False)
    rounds = Round()
    for _ in range(3):
        assert not rounds.conclude([evaluation(*GOOD, shape=shape)], OPTIONS)[0].firing


@given(st.lists(st.sampled_from([BAD, SMALL, GOOD, None]), max_size=12), st.integers(0, 12))
def test_a_restart_changes_nothing(
    verdicts: list[tuple[float, float] | None], restart: int
) -> None:
    """Through JSON and back at any moment, the rest goes on as it would have."""
    listed = [unjudged(Standing.IDLE) if v is None else evaluation(*v) for v in verdicts]
    straight = firing(Round(), *listed)
    first = Round()
    before = firing(first, *listed[:restart])
    second = Round.from_json(json.loads(json.dumps(first.to_json())))
    assert before + firing(second, *listed[restart:]) == straight


def test_the_memory_holds_only_what_matters() -> None:
    """Nothing of series that are well, or that are gone for good."""
    rounds = Round()
    firing(rounds, *of(GOOD, BAD))
    assert rounds.to_json() != {"memories": []}
    rounds.keep({TTFT})
    assert rounds.to_json() != {"memories": []}
    rounds.keep(())
    firing(rounds, *of(GOOD))
    assert rounds.to_json() == {"memories": []}


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {"memories": 3},
        {"memories": [["ttft", "downstream"]]},
        {"memories": [["ttft", "downstream", "s", "other", [], True, 0]]},
        {"memories": [["ttft", "downstream", "s", "tail", ["yes"], True, 0]]},
        {"memories": [["ttft", "downstream", "s", "tail", [], "no", 0]]},
    ],
)
def test_what_is_no_state(state: object) -> None:
    """It is refused."""
    with pytest.raises(ValueError, match="no "):
        Round.from_json(state)
