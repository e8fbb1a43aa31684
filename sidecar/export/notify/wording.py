"""How alarms are put into words abroad: times, figures, plain text, links, identity."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from sidecar.export.notify.changes import changed_at
from sidecar.verdicts import Alarm, Mark

_LATEST = 253_402_300_799.0  # the last second of the year 9999
_TEXT = 1_000
# Controls, what breaks a line, what turns the direction of writing, and halves of surrogate pairs.
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+"
)


@dataclass(frozen=True, slots=True)
class Sign:
    """Who sends, and where people read on: ``page`` (empty: nowhere) and the page of runbooks."""

    instance: str
    page: str
    runbook_base: str

    def runbook(self, rule: str) -> str:
        """The link to a rule's meaning; its anchor as GitHub and MkDocs make it of a heading."""
        return (
            f"{self.runbook_base}#{quote(rule.lower(), safe='', errors='replace')}"
            if self.runbook_base
            else ""
        )


def plain(text: str, limit: int = _TEXT) -> str:
    """One line of at most ``limit`` characters that any encoding can carry."""
    line = _UNPRINTABLE.sub(" ", text).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def encodable(text: str) -> str:
    """The text as UTF-8 can carry it: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def figure(value: float | str) -> str:
    """A figure of evidence for people."""
    if isinstance(value, str):
        return plain(value, 200)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.6g}"


def moment(at: float) -> str:
    """Unix seconds as RFC 3339 with milliseconds, in UTC; what no calendar holds is cut."""
    inside = min(max(at, 0.0), _LATEST) if math.isfinite(at) else 0.0
    return datetime.fromtimestamp(inside, UTC).isoformat(timespec="milliseconds")


def not_after(at: float | None, now: float) -> float:
    """The time, or now if there is none, it is no number, or the clock was ahead when it was
    taken.
    """
    return at if at is not None and at <= now else now


def evidence_lines(alarm: Alarm) -> str:
    """Its evidence, a ``name=value`` a line."""
    return "\n".join(f"{plain(name, 100)}={figure(value)}" for name, value in alarm.evidence)


def mark_line(mark: Mark) -> str:
    """A mark as one line."""
    until = f"{moment(mark.start)} to {moment(mark.end)}"
    text = plain(mark.text, 200)
    return f"{mark.kind} by {plain(mark.author, 100)}, {until}" + (f": {text}" if text else "")


def change_id(alarm: Alarm, instance: str) -> str:
    """32 hex digits, the same for one change of one alarm whoever computes them, and when."""
    told = (instance, alarm.rule, alarm.labels, alarm.state.value, changed_at(alarm))
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]
