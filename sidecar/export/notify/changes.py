"""The outbox of receivers that want each change once: the latest one of each alarm.

While the receiver is down only the latest change of an alarm waits, and a firing that is over
without having been told gives way to its resolution: what is delivered in the end is what holds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from sidecar.alarms.standing import Key, Transition
from sidecar.export.notify.delivery import Loss
from sidecar.verdicts import Alarm, AlarmState, Severity

MAX_ALARMS = 1_000
_STANDING = (AlarmState.PENDING, AlarmState.FIRING)


def changed_at(alarm: Alarm) -> float:
    """When the alarm got into its state, Unix seconds."""
    if alarm.state is AlarmState.FIRING and alarm.fired is not None:
        return alarm.fired
    if alarm.state is AlarmState.RESOLVED and alarm.resolved is not None:
        return alarm.resolved
    return alarm.since


class Changes:
    """The latest change of each alarm into one of ``states``.

    ``repeats``: a firing alarm that was never announced (an earlier process did, or died before)
    is announced too. At least once instead of at most once, for receivers that know a message they
    already have.
    """

    def __init__(self, states: frozenset[AlarmState], repeats: bool, limit: int = MAX_ALARMS):
        self.dropped: Counter[Loss] = Counter()
        self._states = states
        self._repeats = repeats
        self._limit = limit
        self._waiting: dict[Key, Alarm] = {}
        self._fired: dict[Key, float | None] = {}  # what this outbox has been told of

    def take(
        self, alarms: Sequence[Alarm], transitions: Iterable[Transition], clock: float
    ) -> None:
        """Takes in a round: all alarms there are, and what changed."""
        for transition in transitions:
            self._change(transition.alarm)
        standing = {alarm.key: alarm for alarm in alarms if alarm.state in _STANDING}
        for key, alarm in standing.items():
            if alarm.state is not AlarmState.FIRING or self._fired.get(key) == alarm.fired:
                continue
            if self._repeats:
                self._change(alarm)
            self._fired[key] = alarm.fired
        self._fired = {key: fired for key, fired in self._fired.items() if key in standing}
        for key, alarm in list(self._waiting.items()):
            now = standing.get(key)
            if alarm.state in _STANDING and (now is None or now.state is not alarm.state):
                del self._waiting[key]
                self.dropped[Loss.OUTDATED] += 1

    def _change(self, alarm: Alarm) -> None:
        if alarm.state is AlarmState.FIRING:
            self._fired[alarm.key] = alarm.fired
        if alarm.state not in self._states:
            return
        before = self._waiting.get(alarm.key)
        if before is not None and alarm.state is AlarmState.PENDING:
            self.dropped[Loss.SUPERSEDED] += 1  # that it resolved says more than that it may fire
            return
        if before is not None:
            self.dropped[Loss.SUPERSEDED] += 1
        elif len(self._waiting) >= self._limit:
            self.dropped[Loss.FULL] += 1
            return
        self._waiting[alarm.key] = alarm

    def due(self, clock: float, limit: int) -> tuple[Alarm, ...]:
        """What is to be told now: pages before tickets, the oldest change first."""
        ordered = sorted(
            self._waiting.values(),
            key=lambda alarm: (alarm.severity is not Severity.PAGE, changed_at(alarm)),
        )
        return tuple(ordered[:limit])

    def next_due(self) -> float:
        """At once if anything waits, else never."""
        return -math.inf if self._waiting else math.inf

    def delivered(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These have been told; a change that came since still waits."""
        for alarm in alarms:
            if self._waiting.get(alarm.key) is alarm:
                del self._waiting[alarm.key]

    def rejected(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These will not be taken: forgotten, and counted."""
        for alarm in alarms:
            if self._waiting.get(alarm.key) is alarm:
                del self._waiting[alarm.key]
                self.dropped[Loss.REJECTED] += 1

    def waiting(self) -> int:
        """How many alarms have news that the receiver does not know."""
        return len(self._waiting)
