"""Alertmanager, by its API v2: firing and resolved alarms as alerts.

https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml. Surprises of version
0.25 that shape this: an answer of 400 still takes the alerts of the message that are valid; labels
without a value are dropped; an alert may not end before it starts, so clocks that jumped are cut.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence

from sidecar.export.notify.delivery import Undelivered
from sidecar.export.notify.post import Poster
from sidecar.export.notify.secret import SecretFile
from sidecar.export.notify.wording import (
    Sign,
    evidence_lines,
    mark_line,
    moment,
    not_after,
    plain,
)
from sidecar.verdicts import Alarm, AlarmState

PATH = "/api/v2/alerts"
JOB = "model-probe"
LIFE = 4  # a firing alert ends by itself after so many times the resend interval
_BATCH = 64
_OWN = ("alertname", "severity", "job", "instance")


class Alertmanager:
    """Sends to one Alertmanager; each of several is sent the same."""

    batch = _BATCH

    def __init__(
        self,
        poster: Poster,
        sign: Sign,
        resend_seconds: float,
        token: SecretFile | None = None,
        wall: Callable[[], float] = time.time,
        seconds: float = 10.0,
    ) -> None:
        self.name = f"alertmanager/{poster.place}"
        self.seconds = seconds
        self._poster = poster
        self._sign = sign
        self._resend_seconds = resend_seconds
        self._life_seconds = LIFE * resend_seconds
        self._token = token
        self._wall = wall

    def send(self, alarms: Sequence[Alarm]) -> None:
        """Returns when all of them are accepted; raises Undelivered."""
        now = self._wall()
        alerts = [alert(alarm, self._sign, now, self._life_seconds) for alarm in alarms]
        headers = {"content-type": "application/json"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token.read().decode('ascii')}"
        try:
            self._poster.post(json.dumps(alerts).encode(), headers)
        except Undelivered as error:
            # If it asks for a longer rest, what fires would end there, as if it had resolved.
            error.wait_seconds = min(error.wait_seconds, self._resend_seconds)
            raise

    def close(self) -> None:
        """From another thread: ends a ``send`` under way."""
        self._poster.close()


def alert(alarm: Alarm, sign: Sign, now: float, life_seconds: float) -> dict[str, object]:
    """The alarm as the API has it. One that fires ends ``life_seconds`` from now, in case nobody
    repeats it.
    """
    starts = not_after(alarm.fired if alarm.fired is not None else alarm.since, now)
    if alarm.state is AlarmState.RESOLVED:
        ends = max(starts, not_after(alarm.resolved, now))
    else:
        ends = now + life_seconds
    whole: dict[str, object] = {
        "labels": labels(alarm, sign.instance),
        "annotations": told(alarm, sign),
        "startsAt": moment(starts),
        "endsAt": moment(ends),
    }
    if sign.page:
        whole["generatorURL"] = sign.page
    return whole


def labels(alarm: Alarm, instance: str) -> Mapping[str, str]:
    """What identifies the alert: ours, and the alarm's own with names that are allowed. One of the
    alarm's that is called like ours becomes ``exported_…``, as Prometheus does it.
    """
    found = {
        "alertname": alarm.rule,
        "severity": alarm.severity.value,
        "job": JOB,
        "instance": instance,
    }
    for name, value in alarm.labels:
        found[_free(_label_name(name), found)] = value
    return found


def _label_name(name: str) -> str:
    allowed = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    if not allowed or allowed[0].isdigit():
        allowed = f"_{allowed}"
    return f"exported_{allowed}" if allowed in _OWN else allowed


def _free(name: str, taken: Mapping[str, str]) -> str:
    """The name, numbered if another label has already become the same: none may get lost, or two
    alarms would become one alert.
    """
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def told(alarm: Alarm, sign: Sign) -> Mapping[str, str]:
    """What people read; nothing of it identifies the alert, so it may change as it fires."""
    found = {
        "summary": plain(alarm.text) or alarm.rule,
        "evidence": evidence_lines(alarm),
        "runbook_url": sign.runbook(alarm.rule),
        "page_url": sign.page,
        "marks": "\n".join(mark_line(mark) for mark in alarm.marks),
        "unknown": "" if alarm.known else "it cannot be judged now, which resolves nothing",
    }
    return {name: value for name, value in found.items() if value}
