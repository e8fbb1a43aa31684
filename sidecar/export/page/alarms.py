"""The strip of alarms: what fires, what is about to, and what was resolved in the last hour."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sidecar.export.alarms import ordered, subject
from sidecar.export.intake import safe_label
from sidecar.export.page.sentences import capital
from sidecar.snapshot import Snapshot
from sidecar.units import ago, count, duration, number
from sidecar.verdicts import Alarm, AlarmState, Mark

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One alarm for people. ``state`` and ``severity`` are words with a style each."""

    rule: str
    subject: str
    state: str
    severity: str
    when: str
    text: str
    evidence: str
    notes: str


@dataclass(frozen=True, slots=True)
class Strip:
    """All alarms: a tally, and the most urgent ones."""

    tally: str
    lines: tuple[Line, ...]
    more: str


def strip(snapshot: Snapshot) -> Strip:
    """What the page shows; no lines where there is no alarm."""
    alarms = ordered(snapshot.alarms)
    counts = Counter(alarm.state for alarm in alarms)  # in the order of the alarms
    tally = ", ".join(f"{n} {state.value}" for state, n in counts.items())
    rest = len(alarms) - _SHOWN
    more = f"and {count(rest, 'more alarm')}, in /api/v1/state" if rest > 0 else ""
    return Strip(tally, tuple(_line(a, snapshot.at) for a in alarms[:_SHOWN]), more)


def _line(alarm: Alarm, now: float) -> Line:
    return Line(
        rule=safe_label(alarm.rule),
        subject=safe_label(subject(alarm.labels)),
        state=alarm.state.value,
        severity=alarm.severity.value,
        when=_when(alarm, now),
        text=capital(safe_label(alarm.text)),
        evidence=" · ".join(_evidence(name, value) for name, value in alarm.evidence),
        notes="; ".join(_notes(alarm)),
    )


def _when(alarm: Alarm, now: float) -> str:
    if alarm.state is AlarmState.PENDING:
        return f"pending for {ago(alarm.held_seconds)}"
    if alarm.state is AlarmState.RESOLVED and alarm.resolved is not None:
        return f"resolved {ago(max(0.0, now - alarm.resolved))} ago"
    return f"firing for {ago(max(0.0, now - (alarm.fired or alarm.since)))}"


def _evidence(name: str, value: float | str) -> str:
    """A name and its figure, with the unit where people look for it: behind the figure."""
    words = safe_label(name.replace("_", " "))
    if isinstance(value, str):
        return f"{words} {safe_label(value)}"
    if words.endswith(" seconds"):
        return f"{words.removesuffix(' seconds')} {duration(value)}"
    return f"{words} {number(value)}"


def _notes(alarm: Alarm) -> list[str]:
    over = alarm.known or alarm.state is AlarmState.RESOLVED
    notes = [] if over else ["cannot be judged now; no data resolves nothing"]
    return notes + [_mark(mark) for mark in alarm.marks]


def _mark(mark: Mark) -> str:
    text = f": {safe_label(mark.text)}" if mark.text else ""
    return f"during {mark.kind.value} declared by {safe_label(mark.author)}{text}"
