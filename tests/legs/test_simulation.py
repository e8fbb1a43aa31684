"""Ten thousand requests of forty clients through a gateway with various habits.

Every request is accounted for at each moment, no pair is wrong, and what can be told is joined.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from sidecar.legs.pairing import Join, Outcome, Pairing
from sidecar.signals import Leg
from tests.legs.gateway import Gateway, Habits, Traffic, play, size, unjoined, wrong

NUMBER = 10_007
SEED = 7


def simulated(habits: Habits, number: int = NUMBER) -> tuple[Traffic, list[Outcome]]:
    """All of it and what became of it; joined, unjoined and pending add up in every second."""
    made = Gateway(random.Random(SEED), habits).run(number)
    outcomes: list[Outcome] = []
    told = fed = pending = 0
    for decided, fed, pending in play(made, Pairing()):
        outcomes += decided
        told += size(decided)
        assert told + pending == fed
    assert (fed, pending) == (made.fed, 0)
    return made, outcomes


def complete(made: Traffic, outcomes: list[Outcome]) -> bool:
    """Whether every join that says so has all of its attempts."""
    return all(
        len(one.attempts) == made.attempts[made.truth[one.downstream.start]]
        for one in outcomes
        if isinstance(one, Join) and one.whole
    )


@pytest.mark.parametrize(
    ("habits", "by"),
    [
        pytest.param(Habits(retried=0.1, refused=0.05, own=0.05), "trace_id", id="traces"),
        pytest.param(Habits(traces=0, id_passed=True, retried=0.1), "request_id", id="ids"),
        pytest.param(
            Habits(traces=0, id_made=True, answer_ids=0.5, retried=0.1, cached=0.05, gone=0.05),
            "body_key",
            id="bodies",
        ),
        pytest.param(Habits(traces=0, body_kept=False), "response_key", id="answers"),
    ],
)
def test_a_unique_key_joins_all(habits: Habits, by: str) -> None:
    """All that a gateway passed on is joined, with all attempts, and nothing else is."""
    made, outcomes = simulated(habits)
    assert wrong(made, outcomes) == []
    assert complete(made, outcomes)
    joined = Counter(one.by for one in outcomes if isinstance(one, Join))
    assert joined == {by: len(made.attempts)}


def test_what_stays_out_is_named() -> None:
    """Refused and cached requests have no upstream, and the gateway's own no downstream."""
    habits = Habits(refused=0.05, cached=0.05, own=0.05)
    made, outcomes = simulated(habits, 2_003)
    upstream = sum(number == -1 for number in made.truth.values())
    assert Counter((one.request.leg, one.reason.value) for one in unjoined(outcomes)) == {
        (Leg.DOWNSTREAM, "no_upstream"): 2_003 - len(made.attempts),
        (Leg.UPSTREAM, "no_downstream"): upstream,
    }


@pytest.mark.parametrize(
    ("habits", "least"),
    [
        pytest.param(
            Habits(calls_per_trace=3, answer_ids=0.5, bodies=997, retried=0.05, cached=0.05),
            0.99,
            id="agents: three calls of a trace at once, bodies that repeat",
        ),
        pytest.param(
            Habits(traces=0, bodies=101, answer_ids=0, retried=0.1, cached=0.1, gone=0.1),
            0.5,
            id="a load generator with 101 prompts and nothing else",
        ),
        pytest.param(
            Habits(traces=0.5, guarded=0.3, retried=0.05, answer_id_kept=False),
            0.99,
            id="a guard model first, answers with ids of the gateway's own",
        ),
        pytest.param(
            Habits(traces=0.5, bodies=101, calls_per_trace=2, lost=0.02, retried=0.1, cached=0.05),
            0.9,
            id="one record in fifty lost",
        ),
    ],
)
def test_in_doubt_nothing_is_guessed(habits: Habits, least: float) -> None:
    """No pair is wrong, and what some key or two tell apart is still joined."""
    made, outcomes = simulated(habits, 5_003)
    assert wrong(made, outcomes) == []
    assert habits.lost or complete(made, outcomes)
    joined = sum(isinstance(one, Join) for one in outcomes)
    assert least * len(made.attempts) <= joined <= len(made.attempts)


def test_one_prompt_for_all_joins_nothing() -> None:
    """Forty clients with one prompt and no id: every request is ambiguous, none is guessed at."""
    _, outcomes = simulated(Habits(traces=0, bodies=1, answer_ids=0), 2_003)
    assert not any(isinstance(one, Join) for one in outcomes)
    down = [one.reason.value for one in unjoined(outcomes) if one.request.leg is Leg.DOWNSTREAM]
    assert down == ["ambiguous"] * 2_003
