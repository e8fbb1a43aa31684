"""What detectors conclude and what becomes of it: verdicts, alarms, marks.

Imports nothing of ours but the vocabulary of signals. Times are Unix seconds unless a name ends in
``_seconds`` (a duration) or ``_monotonic``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sidecar.signals import Labels

Evidence = tuple[tuple[str, float | str], ...]


class Outcome(StrEnum):
    """A verdict is three-valued: what could not be judged is neither good nor bad."""

    PASS = "pass"  # noqa: S105  # no password
    FAIL = "fail"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """Whom it concerns: somebody now, or somebody this week."""

    PAGE = "page"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule's judgement of one thing at one moment.

    ``rule`` names the alarm (``TokenRateOutOfBand``), ``labels`` the thing; the two are its
    identity. ``hold_seconds`` is how long FAIL has to last before the alarm fires,
    ``clear_seconds`` how long PASS before it resolves. ``text`` is one sentence without its full
    stop, ``evidence`` the figures behind it in the order in which people want them. One that
    ``amends`` tells something new about an alarm that fires, though it is no FAIL: its text takes
    the place of the alarm's, whose figures stay.
    """

    rule: str
    labels: Labels
    outcome: Outcome
    severity: Severity = Severity.TICKET
    hold_seconds: float = 0.0
    clear_seconds: float = 0.0
    text: str = ""
    evidence: Evidence = ()
    amends: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """The declaration of one alarm: what it means and what to do; ``docs/alarms.md`` is generated
    from these. ``hard`` rules need no baseline and judge within seconds.
    """

    name: str
    severity: Severity
    meaning: str
    action: str
    hold_seconds: float = 0.0
    clear_seconds: float = 10.0
    hard: bool = False

    def judge(
        self, labels: Labels, failed: bool | None, text: str = "", evidence: Evidence = ()
    ) -> Verdict:
        """A verdict of this rule; ``failed`` None: it cannot be judged."""
        outcome = Outcome.UNKNOWN if failed is None else Outcome.FAIL if failed else Outcome.PASS
        return Verdict(
            self.name,
            labels,
            outcome,
            self.severity,
            self.hold_seconds,
            self.clear_seconds,
            text,
            evidence,
        )


class AlarmState(StrEnum):
    """Where an alarm is. ``resolved`` is kept for a while, ``inactive`` ones are not kept."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class MarkKind(StrEnum):
    """What somebody declared about a stretch of time."""

    CHAOS = "chaos"
    DEPLOY = "deploy"
    INCIDENT = "incident"


@dataclass(frozen=True, slots=True)
class Mark:
    """A declared stretch of time. It annotates alarms and keeps baselines clean; nothing is muted
    by it.
    """

    kind: MarkKind
    author: str
    start: float
    end: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm now. ``held_seconds`` is how long its condition has been seen to hold while
    pending, time in which the sidecar did not run left out. ``since`` is when it became pending,
    ``fired`` and ``resolved`` when it did so, None if it did not. ``marks`` were in force when it
    became pending or fired. ``known`` is False while its latest verdict is UNKNOWN.
    """

    rule: str
    labels: Labels
    state: AlarmState
    severity: Severity
    since: float
    held_seconds: float = 0.0
    fired: float | None = None
    resolved: float | None = None
    text: str = ""
    evidence: Evidence = ()
    marks: tuple[Mark, ...] = ()
    known: bool = True

    @property
    def key(self) -> tuple[str, Labels]:
        """What it is deduplicated by."""
        return self.rule, self.labels
