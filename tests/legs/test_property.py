"""Whatever clients and gateways do: never a wrong pair, and every request counted once."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.legs.pairing import Join, Outcome, Pairing
from tests.legs.gateway import Gateway, Habits, Traffic, play, size, wrong

SHARES = st.sampled_from((0.0, 0.1, 0.5))
HABITS = st.builds(
    Habits,
    clients=st.sampled_from((1, 3, 17)),
    traces=st.sampled_from((0.0, 0.5, 1.0)),
    calls_per_trace=st.integers(1, 3),
    trace_passed=st.booleans(),
    id_passed=st.booleans(),
    id_made=st.booleans(),
    bodies=st.sampled_from((None, 1, 2, 13)),
    body_kept=st.booleans(),
    answer_ids=st.sampled_from((0.0, 0.5, 1.0)),
    answer_id_kept=st.booleans(),
    retried=SHARES,
    cached=SHARES,
    refused=SHARES,
    gone=SHARES,
    guarded=SHARES,
    own=SHARES,
)
LOSSY = st.builds(
    Habits,
    clients=st.sampled_from((1, 3, 17)),
    traces=st.sampled_from((0.0, 0.5, 1.0)),
    calls_per_trace=st.integers(1, 3),
    bodies=st.sampled_from((None, 1, 2, 13)),
    cached=SHARES,
    own=SHARES,
    lost=st.sampled_from((0.01, 0.05)),
)


def played(seed: int, habits: Habits, most: int) -> tuple[Traffic, list[Outcome]]:
    """What became of it all; counted once each, within the bound of what may wait."""
    made = Gateway(random.Random(seed), habits).run(101)
    outcomes: list[Outcome] = []
    for decided, fed, pending in play(made, Pairing(most)):
        outcomes += decided
        assert size(outcomes) + pending == fed
        assert pending <= most
    seen = [
        (request.leg, request.start)
        for one in outcomes
        for request in ((one.downstream, *one.attempts) if isinstance(one, Join) else [one.request])
    ]
    assert len(seen) == len(set(seen)) == made.fed
    return made, outcomes


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), HABITS)
def test_never_a_wrong_pair(seed: int, habits: Habits) -> None:
    """With no record lost each pair is right, and where it says so it has all of its attempts."""
    made, outcomes = played(seed, habits, most=20_000)
    assert wrong(made, outcomes) == []
    for one in outcomes:
        if isinstance(one, Join) and one.whole:
            assert len(one.attempts) == made.attempts[made.truth[one.downstream.start]]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), LOSSY)
def test_never_a_wrong_pair_of_those_that_an_answer_tells_apart(seed: int, habits: Habits) -> None:
    """With records lost, where answers have ids: halves of two requests are not put together."""
    made, outcomes = played(seed, habits, most=20_000)
    assert wrong(made, outcomes) == []


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), HABITS, st.integers(1, 13))
def test_counts_add_up_however_few_may_wait(seed: int, habits: Habits, most: int) -> None:
    """What a small cap throws out is counted as the rest is."""
    played(seed, habits, most)
