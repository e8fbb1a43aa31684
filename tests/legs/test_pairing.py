"""Single pairs: what decides, what does not, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import pytest

from sidecar.legs.pairing import (
    COMBINED,
    LINGER_SECONDS,
    SETTLE_SECONDS,
    Join,
    Outcome,
    Pairing,
    Reason,
    Unjoined,
)
from sidecar.legs.request import Key, request_of
from sidecar.signals import End, Leg, RequestTiming
from sidecar.testing import timing

AT = 1_790_000_000.0
KEYS = {"trace_id": "a" * 32, "request_id": "r-1", "body_key": 71, "response_key": 73}


def down(start: float = 0.0, until: float = 1.0, **changes: object) -> RequestTiming:
    """A client's request from ``start`` to ``until``."""
    return timing(at=AT + start, seconds=until - start, ttft_seconds=None, **changes)


def up(start: float = 0.01, until: float = 0.99, **changes: object) -> RequestTiming:
    """The gateway's."""
    return down(start, until, leg=Leg.UPSTREAM, server="127.0.0.1:8000", **changes)


def settled(*timings: RequestTiming, after: float = 100.0) -> list[Outcome]:
    """What becomes of these, each told when it ended, by ``after`` seconds."""
    pairing = Pairing()
    for one in timings:
        pairing.add(one, one.at - AT + one.seconds)
    return run(pairing, 0.0, after)


def run(pairing: Pairing, since: float, until: float) -> list[Outcome]:
    """What is decided from one second to another."""
    found: list[Outcome] = []
    while since <= until:
        found += pairing.settle(since)
        since += 1.0
    return found


def joins(outcomes: Iterable[Outcome]) -> list[tuple[float, tuple[float, ...], str]]:
    """Starts of the client's requests and their attempts, and what decided."""
    return [
        (
            round(one.downstream.start - AT, 3),
            tuple(round(a.start - AT, 3) for a in one.attempts),
            one.by,
        )
        for one in outcomes
        if isinstance(one, Join)
    ]


def reasons(outcomes: Iterable[Outcome]) -> list[tuple[str, str]]:
    """Legs and reasons of what was not joined."""
    return sorted(
        (one.request.leg.value, one.reason.value) for one in outcomes if isinstance(one, Unjoined)
    )


@pytest.mark.parametrize("key", KEYS)
def test_one_key_is_enough(key: str) -> None:
    """Two requests that share any of the four keys, and no other, are one."""
    shared = {key: KEYS[key]}
    assert joins(settled(down(**shared), up(**shared))) == [(0, (0.01,), key)]


def test_the_first_of_several_keys_is_named() -> None:
    """A pair with all four is joined by its trace."""
    assert joins(settled(down(**KEYS), up(**KEYS))) == [(0, (0.01,), Key.TRACE_ID)]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_order_of_reports_does_not_matter(order: tuple[int, ...]) -> None:
    """Whatever is told first, the same requests are joined."""
    told = [
        down(0, 1, body_key=3),
        up(0.01, 0.99, body_key=3),
        down(0, 1.1, body_key=5),
        up(0.02, 1.09, body_key=5),
    ]
    found = joins(settled(*(told[i] for i in order)))
    assert sorted(found) == [(0, (0.01,), "body_key"), (0, (0.02,), "body_key")]


def test_time_alone_joins_nothing() -> None:
    """One request on each leg at the same time, with no key in common, stay apart."""
    found = settled(down(body_key=3), up(body_key=5))
    assert (joins(found), reasons(found)) == (
        [],
        [("downstream", "no_upstream"), ("upstream", "no_downstream")],
    )


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(up(-0.001, 0.5, **KEYS), id="began before the client asked"),
        pytest.param(up(1.001, 1.5, **KEYS), id="began after the answer was complete"),
        pytest.param(up(0.01, 1.6, **KEYS), id="ended long after a good answer"),
    ],
)
def test_time_rules_out(other: RequestTiming) -> None:
    """The same keys at impossible times are not one request."""
    assert joins(settled(down(**KEYS), other)) == []


def test_identical_prompts_at_once_are_ambiguous() -> None:
    """Two requests with one body at the same time: nothing tells which is which."""
    found = settled(
        down(0, 1, body_key=7),
        up(0.02, 0.9, body_key=7),
        down(0.01, 1.01, body_key=7),
        up(0.03, 0.91, body_key=7),
    )
    assert reasons(found) == [("downstream", "ambiguous")] * 2 + [("upstream", "ambiguous")] * 2


def test_what_was_ambiguous_does_not_look_unique_to_the_next() -> None:
    """One of two clients with the same prompt was served from a cache: neither is guessed at, at
    whatever moment they are decided.
    """
    found = settled(
        down(0, 3, body_key=7),
        up(0.2, 2.9, body_key=7),
        down(0.1, 13, body_key=7, end=End.CLIENT_GONE),
    )
    assert joins(found) == []
    assert reasons(found) == [("downstream", "ambiguous")] * 2 + [("upstream", "ambiguous")]


def test_identical_prompts_one_after_the_other_are_joined() -> None:
    """What is never there twice at a time is unique."""
    told = []
    for i in range(7):
        told += [up(i + 0.1, i + 0.9, body_key=7), down(i, i + 0.95, body_key=7)]
    assert joins(settled(*told)) == [(i, (i + 0.1,), "body_key") for i in range(7)]


def test_the_next_key_decides_where_one_is_shared() -> None:
    """Two calls of one trace at once are told apart by their bodies."""
    trace = {"trace_id": "b" * 32}
    found = settled(
        down(0, 1, body_key=3, **trace),
        up(0.02, 0.9, body_key=3, **trace),
        down(0, 1.1, body_key=5, **trace),
        up(0.03, 1.05, body_key=5, **trace),
    )
    assert joins(found) == [(0, (0.02,), "body_key"), (0, (0.03,), "body_key")]


def test_two_keys_decide_together() -> None:
    """Neither trace nor body is unique, both together are."""
    pairs = [("c" * 32, 3), ("c" * 32, 5), ("d" * 32, 3), ("d" * 32, 5)]
    told = []
    for i, (trace, body) in enumerate(pairs):
        keys = {"trace_id": trace, "body_key": body}
        told += [down(i / 100, 1 + i / 100, **keys), up(0.1 + i / 100, 0.9, **keys)]
    assert joins(settled(*told)) == [
        (i / 100, (round(0.1 + i / 100, 3),), COMBINED) for i in range(4)
    ]


@pytest.mark.parametrize("key", ["trace_id", "request_id", "body_key"])
def test_attempts_are_one_join(key: str) -> None:
    """Two that failed and the one that was answered belong to one request, in their order."""
    shared = {key: KEYS[key]}
    (found,) = settled(
        failed(0.01, 0.1, **shared),
        failed(0.12, 0.3, end=End.SERVER_CLOSED, status=None, **shared),
        up(0.31, 0.99, **shared),
        down(**shared),
    )
    assert isinstance(found, Join)
    assert joins([found]) == [(0, (0.01, 0.12, 0.31), key)]
    assert (found.answer, found.whole) == (found.attempts[-1], True)


def failed(start: float, until: float, **changes: object) -> RequestTiming:
    """An attempt that was answered with 503, if with anything."""
    return up(start, until, **{"status": 503, **changes})


def test_a_second_request_after_a_good_one_is_no_attempt() -> None:
    """A gateway that asks two models in one trace did not try twice: the body says which."""
    trace = {"trace_id": "e" * 32}
    found = settled(
        down(body_key=3, **trace),
        up(0.01, 0.2, body_key=5, **trace),
        up(0.21, 0.99, body_key=3, **trace),
    )
    assert joins(found) == [(0, (0.21,), "body_key")]
    assert [one.whole for one in found if isinstance(one, Join)] == [False]


@pytest.mark.parametrize("status", [401, 404, 429])
def test_what_the_gateway_refuses_has_no_upstream(status: int) -> None:
    """A refused request is decided as soon as it can be, and is no reason to wait."""
    outcomes = settled(down(0, 0.002, status=status, **KEYS), after=SETTLE_SECONDS + 1)
    assert reasons(outcomes) == [("downstream", "no_upstream")]


def test_the_gateways_own_requests_have_no_downstream() -> None:
    """A warm-up is nobody's; it is said when no client can come any more."""
    told = up(**KEYS)
    assert settled(told, after=LINGER_SECONDS - 1) == []
    assert reasons(settled(told, after=LINGER_SECONDS + 2)) == [("upstream", "no_downstream")]


def test_without_a_key_nothing_is_waited_for() -> None:
    """A request that has nothing in common with any other is not kept."""
    assert reasons(settled(down(), after=0)) == [("downstream", "no_key")]


def test_an_open_request_is_not_ended_and_yet_a_doubt() -> None:
    """Another client with the same prompt is still open: the upstream may be its own."""
    pairing = Pairing()
    pairing.add(down(0.5, 1.5, body_key=7, end=End.OPEN), 1.5)
    pairing.add(up(0.6, 0.9, body_key=7), 1.5)
    pairing.add(down(0, 1.0, body_key=7), 1.5)
    assert pairing.pending(Leg.DOWNSTREAM) == 1
    for second in range(2, 7):
        pairing.add(down(0.5, float(second), body_key=7, end=End.OPEN), second)
        assert joins(pairing.settle(second)) == []
    pairing.add(down(0.5, 7.0, body_key=7), 7.0)
    found = run(pairing, 7.0, 90.0)
    assert joins(found) == []
    assert ("upstream", "ambiguous") in reasons(found)


def test_a_client_that_went_away_is_joined_when_the_engine_ends() -> None:
    """Half a minute later, as engines do that are not told."""
    pairing = Pairing()
    pairing.add(down(0, 1.0, body_key=7, end=End.CLIENT_GONE), 1.0)
    found = []
    for second in range(1, 31):
        pairing.add(up(0.1, float(second), body_key=7, end=End.OPEN), second)
        found += pairing.settle(second)
    pairing.add(up(0.1, 31.0, body_key=7), 31.0)
    found += run(pairing, 31.0, 40.0)
    assert joins(found) == [(0, (0.1,), "body_key")]


def test_an_upstream_waits_for_a_client_that_reads_slowly() -> None:
    """The engine ended long ago, the client is seen to be open."""
    pairing = Pairing()
    pairing.add(up(0.1, 1.0, body_key=7), 1.0)
    found = []
    for second in range(2, 200):
        pairing.add(down(0, float(second), body_key=7, end=End.OPEN), second)
        found += pairing.settle(second)
    pairing.add(down(0, 200.0, body_key=7), 200.0)
    found += run(pairing, 200.0, 210.0)
    assert joins(found) == [(0, (0.1,), "body_key")]


def test_what_falls_out_is_counted() -> None:
    """Beyond the cap the oldest leave, and are said to have been evicted."""
    pairing = Pairing(most=11)
    for i in range(17):
        pairing.add(down(i / 100, 1, body_key=i), 1.0)
    found = pairing.settle(1.0)
    assert reasons(found) == [("downstream", "evicted")] * 6
    assert pairing.pending(Leg.DOWNSTREAM) == 11


def test_a_blind_tap_ends_all_waiting() -> None:
    """What came before it lost sight is not joined with what comes after."""
    pairing = Pairing()
    pairing.add(down(body_key=7), 1.0)
    pairing.lose()
    pairing.add(up(body_key=7), 1.1)
    found = run(pairing, 1.0, 100.0)
    assert reasons(found) == [("downstream", Reason.BLIND), ("upstream", "no_downstream")]


def test_a_shared_key_costs_no_more_than_its_bound() -> None:
    """Thousands of identical prompts at once: none is guessed at, each is counted once."""
    pairing = Pairing()
    for i in range(2_003):
        pairing.add(up(0.01 + i * 1e-5, 0.9, body_key=7), 1.0)
        pairing.add(down(i * 1e-6, 1, body_key=7), 1.0)
    found = run(pairing, 1.0, 100.0)
    assert (
        reasons(found)
        == [("downstream", "ambiguous")] * 2_003 + [("upstream", "ambiguous")] * 2_003
    )


def test_a_search_ends() -> None:
    """A key that hundreds share is no key, even where time would leave one of them."""
    told = [up(0.01, 0.99, body_key=7), down(0, 1, body_key=7)]
    later = [up(1.5, 2.0, body_key=7) for _ in range(257)]
    assert joins(settled(*told)) == [(0, (0.01,), "body_key")]
    assert joins(settled(*told, *later)) == []


def test_an_answers_id_alone_does_not_tell_of_attempts() -> None:
    """An attempt that failed has no answer, so that there may have been some."""
    for key, whole in (("response_key", False), ("body_key", True)):
        (found,) = settled(down(**{key: 7}), up(**{key: 7}))
        assert isinstance(found, Join)
        assert found.whole is whole


def test_a_first_token_among_missed_bytes_is_none() -> None:
    """What was seen after a gap may not have been the first."""
    seen = timing(trace_id="a" * 32)
    assert request_of(seen, 0.0, generates=True).first_token == seen.at + 0.05
    missed = replace(seen, resynced=True)
    assert request_of(missed, 0.0, generates=True).first_token is None
