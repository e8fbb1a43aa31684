"""Alarms as metrics, as plain data, and in the order in which people want them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from sidecar.export.intake import MAX_LABEL_CHARACTERS
from sidecar.signals import Kind, Labels, Metric, Sample
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, AlarmState, Severity

STATE = Metric(
    "modelprobe_alarm_state",
    Kind.GAUGE,
    "1 for the state an alarm is in: pending, firing, or resolved in the last hour. `known` is "
    "`false` while it cannot be judged, which resolves nothing. An inactive one has no sample.",
    ("rule", "severity", "subject", "state", "known"),
)
METRICS = (STATE,)
_ORDER = (AlarmState.FIRING, AlarmState.PENDING, AlarmState.RESOLVED)


def subject(labels: Labels) -> str:
    """What an alarm is about, in one word: ``replica=r0,leg=upstream``."""
    return ",".join(f"{name}={value}" for name, value in labels)


def ordered(alarms: tuple[Alarm, ...]) -> list[Alarm]:
    """Firing before pending before resolved, pages before tickets, the newest first."""
    return sorted(
        alarms, key=lambda a: (_ORDER.index(a.state), a.severity is not Severity.PAGE, -a.since)
    )


def samples(snapshot: Snapshot) -> Iterator[Sample]:
    """One sample an alarm."""
    for alarm in snapshot.alarms:
        labels = (
            ("rule", alarm.rule),
            ("severity", alarm.severity.value),
            ("subject", _short(subject(alarm.labels))),
            ("state", alarm.state.value),
            ("known", str(alarm.known).lower()),
        )
        yield Sample(STATE.name, 1.0, labels)


def _short(text: str) -> str:
    """A long subject cut, with a digest of all of it: two that only begin alike stay two series."""
    if len(text) <= MAX_LABEL_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    return f"{text[: MAX_LABEL_CHARACTERS - len(digest) - 2]}… {digest}"
