"""The signed webhook: what is sent, and that only what we signed, and lately, is taken for ours."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.export.notify.changes import Changes
from sidecar.export.notify.delivery import Outbox, Reason, Sender
from sidecar.export.notify.lane import Lane
from sidecar.export.notify.post import Poster
from sidecar.export.notify.secret import SecretFile
from sidecar.export.notify.webhook import HEADER, Webhook, message, signature, verify
from sidecar.testing import wait_for
from sidecar.verdicts import AlarmState, Mark, MarkKind
from tests.notify.made import AT, HOSTILE, SIGN, became, firing, resolved
from tests.notify.receiver import Answer, Receiver

Laned = Callable[[Sender, Outbox], Lane]
SECRET = b"0123456789abcdef0123456789abcdef"
BODY = b'{"schema": "model-probe.alarm/1"}'
TOLD = frozenset((AlarmState.FIRING, AlarmState.RESOLVED))


def webhook(server: Receiver, folder: Path, wall: Callable[[], float] = lambda: AT) -> Webhook:
    """A webhook to this server."""
    path = folder / "secret"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    secret = SecretFile(path, "notify.webhooks[0].secret_file", secret=True)
    return Webhook(Poster(f"{server.url}/hooks/alarms", 5.0), SIGN, secret, wall)


def test_the_message(server: Receiver, tmp_path: Path) -> None:
    """One alarm as JSON with a schema, signed, with the same id in header and body."""
    webhook(server, tmp_path).send((firing(),))
    [request] = server.requests
    assert verify(SECRET, request.headers[HEADER.lower()], request.body, AT)
    assert request.path == "/hooks/alarms"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == request.data["id"]
    assert request.data == {
        "schema": "model-probe.alarm/1",
        "id": request.data["id"],
        "instance": "pod-7",
        "rule": "TokenRateOutOfBand",
        "labels": {"model": "qwen2-7b", "replica": "r0"},
        "state": "firing",
        "severity": "page",
        "since": "2023-11-14T22:10:20.000+00:00",
        "fired": "2023-11-14T22:13:20.000+00:00",
        "resolved": None,
        "known": True,
        "text": "qwen2-7b decodes 33.1 tokens/s per sequence, usual are 42.6 ± 3.8",
        "evidence": [
            {"name": "rate", "value": 33.1},
            {"name": "lower_bound", "value": 33.1},
            {"name": "model", "value": "qwen2-7b"},
        ],
        "marks": [
            {
                "kind": "chaos",
                "author": "ana",
                "start": "2023-11-14T22:12:20.000+00:00",
                "end": "2023-11-14T22:14:20.000+00:00",
                "text": "slow decode",
            }
        ],
        "page": "https://probe.example:9838",
        "runbook": "https://docs.example/alarms.md#tokenrateoutofband",
    }


def test_what_is_no_number_stays_json() -> None:
    """NaN and infinity are words, as JSON has no such numbers."""
    figures = (("a", math.nan), ("b", math.inf), ("c", -math.inf), ("d", HOSTILE))
    text = json.dumps(message(firing(evidence=figures), SIGN), allow_nan=False)
    assert [one["value"] for one in json.loads(text)["evidence"]][:3] == ["NaN", "+Inf", "-Inf"]


def test_no_string_holds_half_a_surrogate_pair() -> None:
    """Python's JSON would carry it; other languages' parsers refuse the whole message for it."""
    half = f"{HOSTILE}\ud83d"
    mark = Mark(MarkKind.CHAOS, half, AT, AT + 1.0, half)
    alarm = firing(half, labels=((half, half),), text=half, evidence=((half, half),), marks=(mark,))
    told = message(alarm, replace(SIGN, instance=half))
    json.dumps(told, ensure_ascii=False).encode("utf-8")  # raises for a half


def test_each_change_has_an_id_of_its_own() -> None:
    """Firing, resolving, firing again, another alarm and another sender all differ."""
    alarm = firing()
    told = (
        message(alarm, SIGN),
        message(resolved(alarm), SIGN),
        message(firing(fired=AT + 1), SIGN),
        message(firing(labels=()), SIGN),
        message(alarm, replace(SIGN, instance="pod-8")),
    )
    assert len({str(one["id"]) for one in told}) == len(told)
    assert message(replace(alarm, text="other", evidence=()), SIGN)["id"] == told[0]["id"]


def test_a_retry_has_the_same_id_and_its_own_time(
    server: Receiver, tmp_path: Path, laned: Laned
) -> None:
    """So the receiver can tell it from a new change, and from a message that was recorded."""
    server.answers = [Answer(500), Answer(503), Answer()]
    times = iter((AT, AT + 400.0, AT + 800.0))
    lane = laned(webhook(server, tmp_path, lambda: next(times)), Changes(TOLD, repeats=True))
    lane.offer((firing(),), became(firing()))
    wait_for(lambda: lane.status().sent == 1)
    assert len({request.headers["idempotency-key"] for request in server.requests}) == 1
    signs = [request.headers[HEADER.lower()] for request in server.requests]
    assert [sign.partition(",")[0] for sign in signs] == [
        f"t={int(AT + wait)}" for wait in (0, 400, 800)
    ]
    assert dict(lane.status().failed) == {Reason.SERVER_ERROR: 2}


def test_what_the_receiver_rejects_is_not_sent_again(
    server: Receiver, tmp_path: Path, laned: Laned
) -> None:
    """400 is final for this message; the next one is tried."""
    server.answers = [Answer(400), Answer()]
    lane = laned(webhook(server, tmp_path), Changes(TOLD, repeats=True))
    lane.offer((firing("A"), firing("B")), became(firing("A"), firing("B")))
    wait_for(lambda: lane.status().sent == 1)
    assert [request.data["rule"] for request in server.requests] == ["A", "B"]
    assert lane.status().waiting == 0


def test_a_signature_is_ours() -> None:
    """What we signed is taken, within the window in both directions."""
    header = signature(SECRET, BODY, AT)
    assert header.startswith(f"t={int(AT)},v1=")
    for shift in (0.0, 300.0, -300.0):
        assert verify(SECRET, header, BODY, AT + shift)


@pytest.mark.parametrize("shift", [301.0, -301.0, 1e9, -1e9, math.nan, math.inf])
def test_a_recorded_message_is_refused(shift: float) -> None:
    """Outside the window the same message is a replay, or a clock that is wrong."""
    assert not verify(SECRET, signature(SECRET, BODY, AT), BODY, AT + shift)


def test_tampering_is_seen() -> None:
    """Another body, another secret, another time: none has our signature."""
    header = signature(SECRET, BODY, AT)
    assert not verify(SECRET, header, BODY.replace(b"1", b"2"), AT)
    assert not verify(SECRET, header, BODY + b" ", AT)
    assert not verify(SECRET[:-1], header, BODY, AT)
    later = header.replace(f"t={int(AT)}", f"t={int(AT) + 60}")
    assert not verify(SECRET, later, BODY, AT)


def test_every_bit_counts() -> None:
    """A signature with any one digit changed is refused."""
    head, _, digest = signature(SECRET, BODY, AT).rpartition("=")
    rng = random.Random(7)
    for place in range(len(digest)):
        other = rng.choice([digit for digit in "0123456789abcdef" if digit != digest[place]])
        forged = f"{head}={digest[:place]}{other}{digest[place + 1 :]}"
        assert not verify(SECRET, forged, BODY, AT)


def test_one_of_several_signatures_is_enough() -> None:
    """While a secret is replaced a message may bear both signatures; unknown parts are ignored."""
    header = signature(SECRET, BODY, AT)
    assert verify(SECRET, f"{header},v1={'0' * 64},v2=later", BODY, AT)
    assert verify(SECRET, header.replace(",", ", "), BODY, AT)


@pytest.mark.parametrize(
    "header",
    [
        *("", "t=1", "v1=", "t=,v1=", "t=1,t=2,v1=x", "t=-1,v1=x", "t=1e9,v1=x", "=,=,="),
        *("t=٣,v1=x", "t=1,v1=ü", "t=" + "9" * 5_000 + ",v1=x", "v1=x," * 10_000),
    ],
)
def test_a_malformed_header_is_no_signature(header: str) -> None:
    """And no error either."""
    assert not verify(SECRET, header, BODY, AT)


@given(header=st.text(max_size=200), body=st.binary(max_size=200))
def test_noise_is_no_signature(header: str, body: bytes) -> None:
    """Whatever comes is False and never an error."""
    assert not verify(SECRET, header, body, AT)
    assert not verify(SECRET, f"t={int(AT)},v1={header}", body, AT)
