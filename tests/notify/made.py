"""Alarms and their changes, made for tests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from sidecar.alarms.standing import Transition
from sidecar.export.notify.delivery import Reason, Undelivered
from sidecar.export.notify.wording import Sign
from sidecar.verdicts import Alarm, AlarmState, Mark, MarkKind, Severity

AT = 1_700_000_000.0
SIGN = Sign("pod-7", "https://probe.example:9838", "https://docs.example/alarms.md")
HOSTILE = (
    "\"><script>alert('x')</script>\n\\ {{ .Labels }} ${HOME} \u202e ü 🦆 '); DROP TABLE alarms;--"
)


def firing(rule: str = "TokenRateOutOfBand", *, at: float = AT, **changes: object) -> Alarm:
    """A firing alarm, with the fields given changed."""
    alarm = Alarm(
        rule=rule,
        labels=(("model", "qwen2-7b"), ("replica", "r0")),
        state=AlarmState.FIRING,
        severity=Severity.PAGE,
        since=at - 180.0,
        held_seconds=180.0,
        fired=at,
        text="qwen2-7b decodes 33.1 tokens/s per sequence, usual are 42.6 ± 3.8",
        evidence=(("rate", 33.1), ("lower_bound", 33.1), ("model", "qwen2-7b")),
        marks=(Mark(MarkKind.CHAOS, "ana", at - 60.0, at + 60.0, "slow decode"),),
    )
    return replace(alarm, **changes)  # type: ignore[arg-type]


def resolved(alarm: Alarm, after: float = 60.0) -> Alarm:
    """The same alarm, resolved so many seconds after it fired."""
    return replace(alarm, state=AlarmState.RESOLVED, resolved=(alarm.fired or AT) + after)


def pending(rule: str = "TokenRateOutOfBand") -> Alarm:
    """An alarm that does not fire yet."""
    return firing(rule, state=AlarmState.PENDING, fired=None, held_seconds=20.0)


def fresh(rule: str = "TokenRateOutOfBand", **changes: object) -> Alarm:
    """An alarm that fired just now."""
    return firing(rule, at=time.time(), **changes)


def became(*alarms: Alarm) -> tuple[Transition, ...]:
    """The changes by which these alarms got into their states."""
    before = {
        AlarmState.PENDING: AlarmState.INACTIVE,
        AlarmState.FIRING: AlarmState.PENDING,
        AlarmState.RESOLVED: AlarmState.FIRING,
    }
    return tuple(Transition(alarm.since, before[alarm.state], alarm, 1) for alarm in alarms)


class Recorder:
    """A sender that keeps what it is given, or raises what its script says, one step a message."""

    def __init__(self, *script: Exception | None, batch: int = 64) -> None:
        self.name = "recorder"
        self.batch = batch
        self.seconds = 0.05
        self.messages: list[tuple[Alarm, ...]] = []
        self.tries = 0
        self._script = list(script)

    def send(self, alarms: Sequence[Alarm]) -> None:
        """Does the next step of the script; without one, all is well."""
        self.tries += 1
        step = self._script.pop(0) if self._script else None
        if step is not None:
            raise step
        self.messages.append(tuple(alarms))

    def close(self) -> None:
        """Nothing is ever under way."""

    @property
    def alarms(self) -> list[Alarm]:
        """Everything accepted so far, in order."""
        return [alarm for message in self.messages for alarm in message]


def trouble(reason: Reason = Reason.SERVER_ERROR) -> Undelivered:
    """A failed delivery."""
    return Undelivered(reason, "the receiver answers 500")
