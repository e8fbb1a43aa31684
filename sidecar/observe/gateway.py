"""What requests joined across the gateway show and no count does: first tokens that it holds back,
retries that hide failures, answers that an engine broke off and that were called complete; and when
too few are joined to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.legs.minute import JoinWindow, Phase
from sidecar.legs.pairing import Reason
from sidecar.signals import CollectorState, Leg, Observation
from sidecar.snapshot import WIRE_COLLECTOR, Snapshot
from sidecar.units import count, duration, percent

_ENOUGH = 20  # requests in the minute; below, a share is an anecdote
_HELD_SECONDS = 0.1
_HELD_SHARE = 0.2  # of what the client waits
_RETRIED = 0.05
_JOINED = 0.5
_WHY = {
    Reason.NO_KEY: (
        "they carry no traceparent and no x-request-id, and no body or answer id was seen",
        "have clients send a traceparent and the gateway pass it on",
    ),
    Reason.NO_UPSTREAM: (
        "no request to an engine has a key in common with them",
        "have the gateway pass on traceparent, or keep x-request-id (Envoy: "
        "preserve_external_request_id); answers from a cache have no other side",
    ),
    Reason.AMBIGUOUS: (
        "others at the same time have the same keys, as identical prompts have",
        "have clients send a traceparent of its own with each request and the gateway pass it on",
    ),
    Reason.EVICTED: (
        "too many requests wait for their other side",
        "watch fewer ports with one sidecar",
    ),
}


def held(window: JoinWindow) -> Observation | None:
    """The gateway adds over 100 ms to half of the first tokens, and over 20 % of the wait."""
    first, wait = window.phase(Phase.FIRST_TOKEN), window.ttft_p50
    if first is None or wait is None or first.n < _ENOUGH:
        return None
    if first.p50 <= _HELD_SECONDS or first.p50 <= _HELD_SHARE * wait:
        return None
    text = (
        f"the gateway holds the first token back: from the engine's to the client's it takes "
        f"{duration(first.p50)} (median of {count(first.n, 'request')} of the last minute), of "
        f"{duration(wait)} that clients wait"
    )
    return Observation("held_back", Leg.DOWNSTREAM.value, "ttft", text)


def retries(window: JoinWindow) -> Observation | None:
    """At least 5 % of the requests took several attempts and ended well, so that clients saw none
    of the failures.
    """
    if window.joined < _ENOUGH or window.hidden < _RETRIED * window.joined:
        return None
    text = (
        f"retries hide failures from clients: the gateway asked more than once for "
        f"{window.hidden:,} of {count(window.joined, 'request')} that ended well in the last "
        f"minute ({percent(window.hidden / window.joined)})"
    )
    return Observation("retries", Leg.UPSTREAM.value, "requests", text)


def broken(window: JoinWindow) -> Observation | None:
    """Clients were told that all is well with answers that the engine did not end well."""
    if not window.broken:
        return None
    text = (
        f"the engine broke off {count(window.broken, 'answer')} of the last minute, with an error "
        f"or by closing, that the gateway ended for its client as complete"
    )
    return Observation("cut_short", Leg.DOWNSTREAM.value, "requests", text)


def seldom(window: JoinWindow) -> Observation | None:
    """Fewer than half are joined: what is said of the gateway is of the others only."""
    ratio = window.ratio
    if ratio is None or window.requests < _ENOUGH or ratio >= _JOINED:
        return None
    known = [(reason, n) for reason, n in window.unjoined if reason in _WHY]
    if not known:
        return None
    why, remedy = _WHY[known[0][0]]
    text = (
        f"{percent(ratio)} of {count(window.requests, 'request')} of clients in the last minute "
        f"could be joined with what the gateway asked of engines: of most others, {why}; {remedy}"
    )
    return Observation("unjoined", Leg.DOWNSTREAM.value, known[0][0].value, text)


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """What holds now; nothing while the tap is blind or watches one leg."""
    tap = snapshot.collector(WIRE_COLLECTOR)
    window = snapshot.joins
    if tap is None or tap.state is CollectorState.BLIND or window is None:
        return
    found = (held(window), retries(window), broken(window), seldom(window))
    yield from (observation for observation in found if observation)
