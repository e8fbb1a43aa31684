"""What is known of one alarm, and how one verdict moves it: pure functions of both.

Only FAIL begins or advances an alarm and only PASS ends one; UNKNOWN, or no verdict at all, stops
its clocks where they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sidecar.signals import Labels
from sidecar.verdicts import Alarm, AlarmState, Evidence, Mark, Outcome, Severity, Verdict

Key = tuple[str, Labels]

_TEXT = 2_000  # characters of a verdict's text or of a word of its evidence
_EVIDENCE = 50
_MARKS = 20  # attached to one alarm; more say nothing more
_WEIGHT = {Outcome.PASS: 0, Outcome.UNKNOWN: 1, Outcome.FAIL: 2}


@dataclass(frozen=True, slots=True)
class Standing:
    """An alarm with the clocks that have to outlive the process.

    ``passed_seconds`` is how long PASS has been seen while firing, ``firings`` how often it has
    fired since it was last forgotten (above 1 it flaps), ``earlier`` the resolved alarm that a
    pending one falls back to if it does not fire.
    """

    alarm: Alarm
    passed_seconds: float = 0.0
    firings: int = 0
    earlier: Alarm | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """An alarm became pending, began to fire or resolved, at ``at`` (Unix seconds). ``alarm`` is
    the alarm afterwards, ``before`` its state until then, ``firings`` as in :class:`Standing`.
    """

    at: float
    before: AlarmState
    alarm: Alarm
    firings: int


@dataclass(frozen=True, slots=True)
class Moment:
    """When verdicts are judged: wall time, the seconds since the last round that count (0 when
    the process may not have run all along), and the marks in force.
    """

    now: float
    step_seconds: float
    marks: tuple[Mark, ...]


def worst(verdicts: Iterable[Verdict]) -> dict[Key, Verdict]:
    """One verdict for each alarm, whatever their order: FAIL before UNKNOWN before PASS, then the
    more severe. The order of labels makes no difference.
    """
    judged: dict[Key, Verdict] = {}
    for verdict in verdicts:
        key = (verdict.rule, tuple(sorted(verdict.labels)))
        rival = judged.get(key)
        if rival is None or _badness(verdict) > _badness(rival):
            judged[key] = verdict if verdict.labels == key[1] else replace(verdict, labels=key[1])
    return judged


def _badness(verdict: Verdict) -> tuple[int, bool, str]:
    # The last figure only makes the choice between two equally bad ones the same every time.
    return _WEIGHT[verdict.outcome], verdict.severity is Severity.PAGE, repr(verdict)


def begin(
    verdict: Verdict, moment: Moment, firings: int = 0, earlier: Alarm | None = None
) -> Standing:
    """The alarm that a first FAIL makes: pending, or firing where nothing has to hold."""
    alarm = Alarm(
        rule=verdict.rule,
        labels=verdict.labels,
        state=AlarmState.PENDING,
        severity=verdict.severity,
        since=moment.now,
        text=verdict.text[:_TEXT],
        evidence=cleaned(verdict.evidence),
        marks=moment.marks[:_MARKS],
    )
    return _fire_if_due(Standing(alarm, 0.0, firings, earlier), verdict, moment)


def advance(
    standing: Standing, verdict: Verdict | None, moment: Moment, same: bool
) -> Standing | None:
    """The standing after one more verdict; None when nothing is left to keep.

    ``same`` says that the round before judged alike; only then does the time between the two
    count, as nobody knows when within it the outcome changed.
    """
    if verdict is not None and verdict.amends and standing.alarm.state is AlarmState.FIRING:
        standing = replace(standing, alarm=replace(standing.alarm, text=verdict.text[:_TEXT]))
    if verdict is None or verdict.outcome is Outcome.UNKNOWN:
        return replace(standing, alarm=replace(standing.alarm, known=False))
    if verdict.outcome is Outcome.FAIL:
        return _failed(standing, verdict, moment, same)
    return _passed(standing, verdict, moment, same)


def _failed(standing: Standing, verdict: Verdict, moment: Moment, same: bool) -> Standing:
    alarm = standing.alarm
    if alarm.state is AlarmState.RESOLVED:
        return begin(verdict, moment, standing.firings, earlier=alarm)
    alarm = replace(
        alarm,
        severity=verdict.severity,
        text=verdict.text[:_TEXT],
        evidence=cleaned(verdict.evidence),
        known=True,
    )
    if alarm.state is AlarmState.FIRING:
        return replace(standing, alarm=alarm, passed_seconds=0.0)
    if same:
        alarm = replace(alarm, held_seconds=alarm.held_seconds + moment.step_seconds)
    return _fire_if_due(replace(standing, alarm=alarm), verdict, moment)


def _passed(standing: Standing, verdict: Verdict, moment: Moment, same: bool) -> Standing | None:
    alarm = replace(standing.alarm, known=True)
    if alarm.state is AlarmState.RESOLVED:
        return replace(standing, alarm=alarm)
    if alarm.state is AlarmState.PENDING:
        if standing.earlier is None:
            return None
        return Standing(replace(standing.earlier, known=True), firings=standing.firings)
    passed = standing.passed_seconds + (moment.step_seconds if same else 0.0)
    if passed >= verdict.clear_seconds:  # never, should that be NaN: an alarm in doubt stays
        alarm = replace(alarm, state=AlarmState.RESOLVED, resolved=moment.now)
        return Standing(alarm, firings=standing.firings)
    return replace(standing, alarm=alarm, passed_seconds=passed)


def _fire_if_due(standing: Standing, verdict: Verdict, moment: Moment) -> Standing:
    alarm = standing.alarm
    if alarm.held_seconds < verdict.hold_seconds:  # never, should that be NaN: in doubt it fires
        return standing
    marks = tuple(dict.fromkeys(alarm.marks + moment.marks))[:_MARKS]
    alarm = replace(alarm, state=AlarmState.FIRING, fired=moment.now, marks=marks)
    return Standing(alarm, firings=standing.firings + 1)


def cleaned(evidence: Evidence) -> Evidence:
    """Evidence as JSON can carry it: what is not a finite number becomes a word."""
    return tuple((name[:_TEXT], _clean(value)) for name, value in evidence[:_EVIDENCE])


def _clean(value: float | str) -> float | str:
    if isinstance(value, str):
        return value[:_TEXT]
    try:
        number = float(value)  # also what only behaves like one, such as NumPy's
    except (TypeError, ValueError, OverflowError):  # one detector's slip must not stop the others
        return str(value)[:_TEXT]
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return number
