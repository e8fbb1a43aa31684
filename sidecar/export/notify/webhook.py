"""A signed webhook: one JSON message for each alarm that fires or resolves.

How to verify one, in this order; :func:`verify` does all of it but the last:

1. Take the raw body, before any parser has touched it, and the header
   ``X-Model-Probe-Signature: t=<Unix seconds>,v1=<hex>``.
2. Compute HMAC-SHA256 of ``<t>.<body>`` and compare it with ``v1`` in constant time
   (``hmac.compare_digest``): ``==`` tells an attacker, byte by byte, how far a guess was right.
   There may be several ``v1``; one has to match. The key is the secret file's content as it stands
   (hex is not decoded), without white space around it. While a secret is being replaced, try both.
3. Refuse a ``t`` more than 300 s away from your clock, in both directions: within that window,
   and for no longer, somebody who recorded a message can send it again.
4. Remember the ``id`` of the body (also the header ``Idempotency-Key``) for two hours and take
   each only once. A retry has the same ``id`` and a signature of its own time. So has what a
   sidecar that was restarted tells again: what fires, and what resolved in the last hour.
   The header is not signed, the body is: trust the one in the body.

Answer 2xx when you have it, and 401 when its signature is not right. 400, 413 and 422 mean that
you will never take it: it is not sent again. Anything else is tried again, after the other
messages that wait, and what has become outdated meanwhile is left out.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import time
from collections.abc import Callable, Sequence

from sidecar.export.notify.post import Poster
from sidecar.export.notify.secret import SecretFile
from sidecar.export.notify.wording import Sign, change_id, encodable, figure, moment, plain
from sidecar.verdicts import Alarm

SCHEMA = "model-probe.alarm/1"
HEADER = "X-Model-Probe-Signature"
WINDOW_SECONDS = 300.0
_MAX_HEADER = 1_024


class Webhook:
    """Sends to one endpoint, one alarm a message."""

    batch = 1

    def __init__(
        self,
        poster: Poster,
        sign: Sign,
        secret: SecretFile,
        wall: Callable[[], float] = time.time,
        seconds: float = 10.0,
    ) -> None:
        self.name = f"webhook/{poster.place}"
        self.seconds = seconds
        self._poster = poster
        self._sign = sign
        self._secret = secret
        self._wall = wall

    def send(self, alarms: Sequence[Alarm]) -> None:
        """Returns when all of them are accepted; raises Undelivered."""
        for alarm in alarms:
            body = json.dumps(message(alarm, self._sign), allow_nan=False).encode()
            headers = {
                "content-type": "application/json",
                "idempotency-key": change_id(alarm, self._sign.instance),
                HEADER: signature(self._secret.read(), body, self._wall()),
            }
            self._poster.post(body, headers)

    def close(self) -> None:
        """From another thread: ends a ``send`` under way."""
        self._poster.close()


def message(alarm: Alarm, sign: Sign) -> dict[str, object]:
    """The body, as plain data: fields are added within schema 1, never renamed or removed. None of
    its strings holds half a surrogate pair, for which strict parsers of JSON refuse the whole.
    """
    return {
        "schema": SCHEMA,
        "id": change_id(alarm, sign.instance),
        "instance": encodable(sign.instance),
        "rule": encodable(alarm.rule),
        "labels": {encodable(name): encodable(value) for name, value in alarm.labels},
        "state": alarm.state.value,
        "severity": alarm.severity.value,
        "since": moment(alarm.since),
        "fired": None if alarm.fired is None else moment(alarm.fired),
        "resolved": None if alarm.resolved is None else moment(alarm.resolved),
        "known": alarm.known,
        "text": plain(alarm.text),
        "evidence": [
            {"name": encodable(name), "value": value if _is_json(value) else figure(value)}
            for name, value in alarm.evidence
        ],
        "marks": [
            {
                "kind": mark.kind.value,
                "author": plain(mark.author),
                "start": moment(mark.start),
                "end": moment(mark.end),
                "text": plain(mark.text),
            }
            for mark in alarm.marks
        ],
        "page": sign.page,
        "runbook": sign.runbook(alarm.rule),
    }


def _is_json(value: float | str) -> bool:
    return not isinstance(value, str) and math.isfinite(value)


def signature(secret: bytes, body: bytes, now: float) -> str:
    """The header's value for a body sent at ``now``, Unix seconds."""
    at = str(int(now))
    return f"t={at},v1={_digest(secret, at, body)}"


def _digest(secret: bytes, at: str, body: bytes) -> str:
    return hmac.new(secret, at.encode("ascii") + b"." + body, hashlib.sha256).hexdigest()


def verify(
    secret: bytes, header: str, body: bytes, now: float, window_seconds: float = WINDOW_SECONDS
) -> bool:
    """Whether ``header`` is a signature of the raw ``body`` with this secret, made at most
    ``window_seconds`` before or after ``now``. Malformed is False and never an error. It does not
    know which ``id`` it has seen: taking each only once is the receiver's part.
    """
    if len(header) > _MAX_HEADER or not header.isascii():
        return False
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not times[0].isdecimal() or len(times[0]) > 12:
        return False
    right = _digest(secret, times[0], body)
    # All are compared, so that the time it takes does not say which one matched.
    matches = [hmac.compare_digest(right.encode(), one.encode()) for one in given]
    return any(matches) and abs(now - int(times[0])) <= window_seconds
