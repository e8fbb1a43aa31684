"""The sentences about joined requests: there when they hold, silent in every doubt."""

from __future__ import annotations

import pytest

from sidecar.legs.minute import JoinWindow, Phase, PhaseWindow
from sidecar.legs.pairing import Reason
from sidecar.observe.gateway import broken, held, observe, retries, seldom
from sidecar.signals import Observation
from tests.export import made


def window(
    first: float = 0.15, wait: float | None = 0.5, n: int = 20, **changes: object
) -> JoinWindow:
    """A minute in which the gateway added ``first`` of the ``wait`` of ``n`` requests."""
    fields: dict[str, object] = {
        "seconds": 60.0,
        "joined": n,
        "ttft_p50": wait,
        "phases": (PhaseWindow(Phase.FIRST_TOKEN, n, first, 2 * first),),
    }
    return JoinWindow(**{**fields, **changes})  # type: ignore[arg-type]


def said(found: Observation | None) -> str:
    """Its text with plain spaces; empty for none."""
    return found.text.replace("\N{NO-BREAK SPACE}", " ") if found else ""


def test_a_first_token_that_is_held_back_is_told_in_numbers() -> None:
    """150 of 500 ms."""
    assert said(held(window())) == (
        "the gateway holds the first token back: from the engine's to the client's it takes 150 ms "
        "(median of 20 requests of the last minute), of 500 ms that clients wait"
    )


@pytest.mark.parametrize(
    "quiet",
    [
        pytest.param(window(first=0.1), id="no more than 100 ms"),
        pytest.param(window(first=0.2, wait=1.0), id="no more than a fifth"),
        pytest.param(window(n=19), id="few requests"),
        pytest.param(window(phases=()), id="no first token"),
        pytest.param(window(wait=None), id="no wait known"),
    ],
)
def test_a_first_token_is_not_said_to_be_held_back(quiet: JoinWindow) -> None:
    """In every doubt there is no sentence."""
    assert held(quiet) is None


def test_retries_that_hide_failures_are_told() -> None:
    """One in twenty was asked again and ended well."""
    assert said(retries(window(hidden=1, retried=3))) == (
        "retries hide failures from clients: the gateway asked more than once for 1 of 20 requests "
        "that ended well in the last minute (5 %)"
    )


@pytest.mark.parametrize(
    "quiet", [window(n=19, hidden=19), window(n=21, hidden=1), window(retried=20, hidden=0)]
)
def test_other_retries_are_not(quiet: JoinWindow) -> None:
    """Few requests, a small share, or failures that clients did see."""
    assert retries(quiet) is None


def test_answers_that_were_broken_off_are_told_from_the_first() -> None:
    """One is enough: a client holds half an answer for a whole one."""
    assert said(broken(window(broken=1))).startswith("the engine broke off 1 answer of the last")
    assert broken(window()) is None


@pytest.mark.parametrize(
    ("reason", "why", "remedy"),
    [
        (Reason.NO_KEY, "they carry no traceparent", "have clients send a traceparent"),
        (Reason.NO_UPSTREAM, "has a key in common", "preserve_external_request_id"),
        (Reason.AMBIGUOUS, "as identical prompts have", "of its own with each request"),
        (Reason.EVICTED, "wait for their other side", "watch fewer ports"),
    ],
)
def test_a_small_share_is_told_with_reason_and_remedy(
    reason: Reason, why: str, remedy: str
) -> None:
    """Nine of twenty are joined; most others for one reason."""
    text = said(seldom(window(n=9, unjoined=((reason, 10), (Reason.BLIND, 1)))))
    assert text.startswith("45 % of 20 requests of clients in the last minute could be joined")
    assert why in text
    assert remedy in text


@pytest.mark.parametrize(
    "quiet",
    [
        pytest.param(window(n=10, unjoined=((Reason.NO_KEY, 10),)), id="half"),
        pytest.param(window(n=0, unjoined=((Reason.NO_KEY, 19),)), id="few"),
        pytest.param(window(n=0), id="none"),
        pytest.param(window(n=0, unjoined=((Reason.BLIND, 20),)), id="the tap was blind"),
    ],
)
def test_no_share_is_told_in_doubt(quiet: JoinWindow) -> None:
    """Half is enough, few are no share, and a blind tap says so itself."""
    assert seldom(quiet) is None


def test_it_is_said_while_both_legs_are_seen() -> None:
    """Of a snapshot with a window each that holds, of a blind tap or one leg nothing."""
    bad = window(hidden=3, broken=1)
    kinds = [one.kind for one in observe(made.snapshot(joins=bad))]
    assert kinds == ["held_back", "retries", "cut_short"]
    assert list(observe(made.snapshot())) == []
    blind = made.tap_blind().collectors
    assert list(observe(made.snapshot(joins=bad, collectors=blind))) == []
