"""The outbox of Alertmanagers, which want every firing alarm again and again.

An Alertmanager keeps alarms in memory and lets each end when it is not repeated: so what is sent
is always what holds now, and an Alertmanager that lost everything knows all after one round.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sidecar.alarms.standing import Key, Transition
from sidecar.export.notify.delivery import Loss
from sidecar.verdicts import Alarm, AlarmState, Severity

MAX_FIRING = 1_000
MAX_RESOLVED = 1_000
RESOLVED_SECONDS = 900.0  # as long as Prometheus repeats a resolution, for one that was restarted
REJECTIONS = 5  # with waits of 1, 2, 4 and 8 times the resend interval between them
# Severity is part of it: it is a label, and an Alertmanager takes other labels for another alert.
Identity = tuple[Key, Severity]


@dataclass(slots=True)
class _Entry:
    alarm: Alarm
    due: float
    told: bool = False
    until: float = math.inf  # a resolution that was told is repeated until then
    rejections: int = 0  # since it was last accepted

    @property
    def waits(self) -> bool:
        return not self.told and self.due < math.inf


def identity(alarm: Alarm) -> Identity:
    """What an Alertmanager takes for one alert."""
    return alarm.key, alarm.severity


class Repeats:
    """Every firing alarm each ``resend_seconds``, every resolution until it was told and for
    ``resolved_seconds`` more. Pending alarms are nobody's business yet.
    """

    def __init__(
        self,
        resend_seconds: float,
        resolved_seconds: float = RESOLVED_SECONDS,
        wall: Callable[[], float] = time.time,
        max_firing: int = MAX_FIRING,
        max_resolved: int = MAX_RESOLVED,
    ) -> None:
        self.dropped: Counter[Loss] = Counter()
        self._resend_seconds = resend_seconds
        self._resolved_seconds = resolved_seconds
        self._wall = wall
        self._limits = (max_firing, max_resolved)
        self._entries: dict[Identity, _Entry] = {}
        self._left_out: set[Identity] = set()

    def take(
        self, alarms: Sequence[Alarm], transitions: Iterable[Transition], clock: float
    ) -> None:
        """Takes in a round: all alarms there are, and what changed."""
        firing = self._firing(alarms)
        changed = [transition.alarm for transition in transitions]
        for alarm in (*changed, *alarms):
            if alarm.state is AlarmState.RESOLVED and identity(alarm) not in firing:
                self._put(alarm, clock)
        for alarm in firing.values():
            self._put(alarm, clock)
        self._leave(firing, clock)
        self._forget_resolved()

    def _firing(self, alarms: Sequence[Alarm]) -> Mapping[Identity, Alarm]:
        found = {identity(a): a for a in alarms if a.state is AlarmState.FIRING}
        limit = self._limits[0]
        if len(found) <= limit:
            self._left_out.clear()
            return found
        ordered = sorted(found.items(), key=lambda item: _urgency(item[1]))
        left_out = {key for key, _ in ordered[limit:]}
        self.dropped[Loss.FULL] += len(left_out - self._left_out)
        self._left_out = left_out
        return dict(ordered[:limit])

    def _put(self, alarm: Alarm, clock: float) -> None:
        entry = self._entries.get(identity(alarm))
        if entry is not None and _same(entry.alarm, alarm):
            entry.alarm = alarm  # with the latest evidence
        else:
            self._entries.pop(identity(alarm), None)  # to the end: the oldest stand first
            self._entries[identity(alarm)] = _Entry(alarm, clock)

    def _leave(self, firing: Mapping[Identity, Alarm], clock: float) -> None:
        """What fires no more without having resolved is no longer repeated, so that it ends by
        itself; nobody may call it resolved. One whose severity changed goes on under another name.
        """
        keys = {key for key, _ in firing}
        for name, entry in list(self._entries.items()):
            if entry.alarm.state is not AlarmState.FIRING or name in firing:
                continue
            del self._entries[name]
            if name[0] in keys:
                over = replace(entry.alarm, state=AlarmState.RESOLVED, resolved=self._wall())
                self._entries[name] = _Entry(over, clock)
            elif not entry.told:
                self.dropped[Loss.OUTDATED] += 1

    def _forget_resolved(self) -> None:
        resolved = [n for n, e in self._entries.items() if e.alarm.state is AlarmState.RESOLVED]
        surplus = len(resolved) - self._limits[1]
        if surplus <= 0:
            return
        for name in sorted(resolved, key=lambda name: self._entries[name].waits)[:surplus]:
            if self._entries.pop(name).waits:
                self.dropped[Loss.FULL] += 1

    def due(self, clock: float, limit: int) -> tuple[Alarm, ...]:
        """What is to be told now: news before repetitions, pages before tickets."""
        ready = [entry for entry in self._entries.values() if entry.due <= clock]
        ready.sort(key=lambda entry: (entry.told, *_urgency(entry.alarm)))
        return tuple(entry.alarm for entry in ready[:limit])

    def next_due(self) -> float:
        """When something is to be told next; infinity for never."""
        return min((entry.due for entry in self._entries.values()), default=math.inf)

    def failed(self, alarms: Iterable[Alarm], clock: float) -> None:
        """Nothing changes: they stay due, as all that is due goes together."""

    def delivered(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These have been told, and are to be told again later."""
        for entry in self._of(alarms):
            if not entry.told and entry.alarm.state is AlarmState.RESOLVED:
                entry.until = clock + self._resolved_seconds
            entry.told, entry.rejections = True, 0
            entry.due = clock + self._resend_seconds
            if entry.due > entry.until:
                entry.due = math.inf  # kept, so that it is not news when it is seen again

    def rejected(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These were not taken: tried a few times more, ever later, as what answers 400 to all may
        be a proxy that is being mended; then counted, and left alone until their state changes.
        """
        for entry in self._of(alarms):
            entry.told = False
            entry.rejections += 1
            entry.due = clock + self._resend_seconds * 2.0 ** (entry.rejections - 1)
            if entry.rejections >= REJECTIONS:
                entry.due = math.inf
                self.dropped[Loss.REJECTED] += 1

    def _of(self, alarms: Iterable[Alarm]) -> list[_Entry]:
        """The entries of what was sent, but for those that have changed since."""
        found = ((self._entries.get(identity(alarm)), alarm) for alarm in alarms)
        return [entry for entry, alarm in found if entry is not None and _same(entry.alarm, alarm)]

    def waiting(self) -> int:
        """How many alarms have news that the receiver does not know."""
        return sum(entry.waits for entry in self._entries.values())


def _same(one: Alarm, other: Alarm) -> bool:
    return (one.state, one.fired, one.resolved) == (other.state, other.fired, other.resolved)


def _urgency(alarm: Alarm) -> tuple[bool, float]:
    return alarm.severity is not Severity.PAGE, alarm.fired or alarm.since
