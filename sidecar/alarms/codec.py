"""Alarms as rows and back. A row that makes no sense is left out, never guessed at."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sidecar.alarms.standing import Key, Standing, Transition, cleaned
from sidecar.verdicts import Alarm, AlarmState, Mark, MarkKind, Severity

Row = tuple[str, str, str, float, float, float, float | None, float | None, int, str]


def key_text(key: Key) -> str:
    """An alarm's identity as one text: JSON in ASCII, whatever its labels hold."""
    return json.dumps([key[0], key[1]])


def to_row(standing: Standing) -> Row:
    """The row of table ``alarms``, in its order."""
    alarm = standing.alarm
    details = _details(alarm)
    if standing.earlier is not None:
        details["earlier"] = _whole(standing.earlier)
    return (
        key_text(alarm.key),
        alarm.state.value,
        alarm.severity.value,
        alarm.since,
        alarm.held_seconds,
        standing.passed_seconds,
        alarm.fired,
        alarm.resolved,
        standing.firings,
        json.dumps(details, allow_nan=False),
    )


def from_row(row: Row) -> Standing | None:
    """The standing of such a row; None when the row makes no sense."""
    key, state, severity, since, held, passed, fired, resolved, firings, text = row
    try:
        details = json.loads(text)
        whole = {
            **details,
            "key": json.loads(key),
            "state": state,
            "severity": severity,
            "since": since,
            "held_seconds": held,
            "fired": fired,
            "resolved": resolved,
        }
        earlier = details.get("earlier")
        return Standing(
            _alarm(whole),
            passed_seconds=_duration(passed),
            firings=int(firings),
            earlier=_alarm(earlier) if earlier else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def transition_text(transition: Transition) -> str:
    """A transition's alarm as JSON."""
    return json.dumps(_whole(transition.alarm), allow_nan=False)


def to_transition(at: float, before: str, firings: int, text: str) -> Transition | None:
    """A transition out of the history; None when the row makes no sense."""
    try:
        return Transition(at, AlarmState(before), _alarm(json.loads(text)), firings)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def marks(rows: Iterable[tuple[Any, ...]]) -> tuple[Mark, ...]:
    """Marks from rows of kind, author, start, end and text; a row without sense is left out."""
    found = []
    for row in rows:
        with suppress(ValueError, TypeError):
            found.append(_mark(row))
    return tuple(found)


def _mark(row: Iterable[Any]) -> Mark:
    kind, author, start, end, text = row
    return Mark(MarkKind(kind), str(author), _time(start), _time(end), str(text))


def _details(alarm: Alarm) -> dict[str, Any]:
    return {
        "text": alarm.text,
        "evidence": cleaned(alarm.evidence),
        "marks": [[m.kind, m.author, m.start, m.end, m.text] for m in alarm.marks],
        "known": alarm.known,
    }


def _whole(alarm: Alarm) -> dict[str, Any]:
    return {
        **_details(alarm),
        "key": [alarm.rule, alarm.labels],
        "state": alarm.state,
        "severity": alarm.severity,
        "since": alarm.since,
        "held_seconds": alarm.held_seconds,
        "fired": alarm.fired,
        "resolved": alarm.resolved,
    }


def _alarm(whole: dict[str, Any]) -> Alarm:
    rule, labels = whole["key"]
    state = AlarmState(whole["state"])
    alarm = Alarm(
        rule=str(rule),
        labels=tuple((str(name), str(value)) for name, value in labels),
        state=state,
        severity=Severity(whole["severity"]),
        since=_time(whole["since"]),
        held_seconds=_duration(whole["held_seconds"]),
        fired=None if whole["fired"] is None else _time(whole["fired"]),
        resolved=None if whole["resolved"] is None else _time(whole["resolved"]),
        text=str(whole["text"]),
        evidence=tuple(
            (str(name), value if isinstance(value, str) else float(value))
            for name, value in whole["evidence"]
        ),
        marks=tuple(map(_mark, whole["marks"])),
        known=bool(whole["known"]),
    )
    if state is AlarmState.INACTIVE or (state is AlarmState.RESOLVED) != (
        alarm.resolved is not None
    ):
        raise ValueError(state)
    return alarm


def _time(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _duration(value: Any) -> float:
    number = _time(value)
    if number < 0.0:
        raise ValueError(value)
    return number
