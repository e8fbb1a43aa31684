"""Both gateways before two real engines, under the load generator: no failures, and the lumps."""

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

import pytest

from rig.part import State, answers
from rig.schedule import schedule
from rig.stack import Plan, Stack
from rig.truth import Summary

RATE, SECONDS, TOKENS, SEED = 3.0, 9.5, 89, 6
STEP = 0.0005  # seconds; no machine decodes faster, and only lumps have shorter gaps
REQUESTS = sum(1 for _ in takewhile(lambda turn: turn.at <= SECONDS, schedule(SEED, RATE)))

Until = Callable[..., None]
pytestmark = pytest.mark.e2e


def played(plan: Plan, until: Until, gateway: str) -> Summary:
    """The client's truth after one short run through a gateway."""
    paced = replace(plan, rate=RATE, seconds=SECONDS, tokens=TOKENS, seed=SEED)
    wanted = replace(paced, gateway=gateway, load=True)
    with Stack(wanted) as stack:
        assert answers(stack.admin_url)
        until(lambda: stack.parts()["load"].state is State.DONE, 10 * SECONDS)
        summary = stack.truth()
    assert summary is not None
    return summary


def check_whole(summary: Summary) -> None:
    """Every request of the schedule came back whole."""
    assert summary.failures == {}
    assert summary.statuses == {"200": REQUESTS}
    assert (summary.requests, summary.unfinished) == (REQUESTS, 0)
    assert summary.tokens == REQUESTS * TOKENS


def test_envoy_loses_nothing_and_streams(plan: Plan, until: Until) -> None:
    """Through Envoy all requests succeed, and words come one by one, a decode step apart."""
    summary = played(plan, until, "envoy")
    check_whole(summary)
    assert summary.itl_seconds.p50 is not None
    assert summary.itl_seconds.p50 > STEP


def test_haproxy_loses_nothing_and_lumps(plan: Plan, until: Until, haproxy: None) -> None:
    """Through HAProxy all requests succeed, but most words come together and then none for long."""
    summary = played(plan, until, "haproxy")
    check_whole(summary)
    assert summary.itl_seconds.p50 == 0.0
    assert summary.itl_seconds.p99 is not None
    assert summary.itl_seconds.p99 > 0.1
