"""The outbox of receivers that want each change once: the latest one of each alarm.

While the receiver is down only the latest change of an alarm waits, and a firing that is over
without having been told gives way to its resolution: what is delivered in the end is what holds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sidecar.alarms.standing import Key, Transition
from sidecar.export.notify.delivery import Loss
from sidecar.verdicts import Alarm, AlarmState, Severity

# Twice what the book of alarms holds: when all that stand replace all that have been told of, the
# resolutions of these and the firings of those still fit.
MAX_ALARMS = 1_000
_STANDING = (AlarmState.PENDING, AlarmState.FIRING)
_LASTING = (AlarmState.FIRING, AlarmState.RESOLVED)


def changed_at(alarm: Alarm) -> float:
    """When the alarm got into its state, Unix seconds."""
    if alarm.state is AlarmState.FIRING and alarm.fired is not None:
        return alarm.fired
    if alarm.state is AlarmState.RESOLVED and alarm.resolved is not None:
        return alarm.resolved
    return alarm.since


@dataclass(slots=True)
class _News:
    alarm: Alarm
    tries: int = 0


class Changes:
    """The latest change of each alarm into one of ``states``.

    ``repeats``: an alarm that was seen to fire or to have resolved and was never announced (an
    earlier process did, or died before) is announced too. At least once instead of at most once,
    for receivers that know a message they already have.
    """

    def __init__(self, states: frozenset[AlarmState], repeats: bool, limit: int = MAX_ALARMS):
        self.dropped: Counter[Loss] = Counter()
        self._states = states
        self._repeats = repeats
        self._limit = limit
        self._waiting: dict[Key, _News] = {}
        self._seen: dict[Key, tuple[AlarmState, float]] = {}  # what this outbox has been told of
        self._yielding: list[Key] | None = None  # gives way in this round, the first to go last
        self._known: set[Key] = set()  # of these the receiver knows, or may know, that they fire

    def take(
        self, alarms: Sequence[Alarm], transitions: Iterable[Transition], clock: float
    ) -> None:
        """Takes in a round: all alarms there are, and what changed."""
        self._yielding = None
        for transition in transitions:
            self._change(transition.alarm)
        for alarm in alarms:
            if alarm.state in _LASTING and self._seen.get(alarm.key) != _stamp(alarm):
                self._recall(alarm)
        present = {alarm.key: alarm.state for alarm in alarms}
        self._seen = {key: stamp for key, stamp in self._seen.items() if key in present}
        self._leave_out(present)
        self._known &= present.keys() | self._waiting.keys()

    def _recall(self, alarm: Alarm) -> None:
        """One whose change nobody announced here: an earlier process may have told it."""
        self._known.add(alarm.key)
        self._seen[alarm.key] = _stamp(alarm)
        if self._repeats:
            self._change(alarm)

    def _change(self, alarm: Alarm) -> None:
        if alarm.state in _LASTING:
            self._seen[alarm.key] = _stamp(alarm)
        if alarm.state not in self._states:
            return
        if alarm.key in self._waiting:
            self.dropped[Loss.SUPERSEDED] += 1
            if alarm.state is AlarmState.PENDING:
                return  # that it resolved says more than that it may fire
        elif len(self._waiting) >= self._limit and not self._make_room(alarm):
            return
        self._waiting[alarm.key] = _News(alarm)

    def _make_room(self, alarm: Alarm) -> bool:
        """Whether something of less weight gave way; what is dropped, old or new, is counted."""
        self.dropped[Loss.FULL] += 1
        if self._yielding is None:
            found = sorted(
                self._waiting.values(), key=lambda news: self._weight(news.alarm), reverse=True
            )
            self._yielding = [news.alarm.key for news in found]
        while self._yielding:
            least = self._waiting.get(self._yielding[-1])
            if least is not None and self._weight(least.alarm) >= self._weight(alarm):
                return False
            key = self._yielding.pop()
            if least is not None:
                del self._waiting[key]
                return True
        return False

    def _weight(self, alarm: Alarm) -> int:
        """How bad its loss is: a receiver that never hears of a resolution believes for ever that
        the alarm fires; one that does not know of the alarm misses little.
        """
        if alarm.state is AlarmState.PENDING:
            return 0
        if alarm.state is AlarmState.RESOLVED and alarm.key not in self._known:
            return 1
        return 3 if alarm.severity is Severity.PAGE else 2

    def _leave_out(self, present: Mapping[Key, AlarmState]) -> None:
        for key, news in list(self._waiting.items()):
            state = news.alarm.state
            if state in _STANDING and present.get(key) is not state:
                del self._waiting[key]
                self.dropped[Loss.OUTDATED] += 1

    def due(self, clock: float, limit: int) -> tuple[Alarm, ...]:
        """What is to be told now: pages before tickets, the oldest change first. What failed goes
        behind: a message over which the receiver stumbles each time must not hold up the others.
        """
        ordered = sorted(
            self._waiting.values(),
            key=lambda news: (
                news.tries,
                news.alarm.severity is not Severity.PAGE,
                changed_at(news.alarm),
            ),
        )
        return tuple(news.alarm for news in ordered[:limit])

    def next_due(self) -> float:
        """At once if anything waits, else never."""
        return -math.inf if self._waiting else math.inf

    def failed(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These did not arrive, or nobody knows whether they did; they go on waiting."""
        for alarm in alarms:
            if alarm.state is AlarmState.FIRING:
                self._known.add(alarm.key)
            if self._waits(alarm):
                self._waiting[alarm.key].tries += 1

    def delivered(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These have been told; a change that came since still waits."""
        for alarm in alarms:
            if alarm.state is AlarmState.FIRING:
                self._known.add(alarm.key)
            elif alarm.state is AlarmState.RESOLVED:
                self._known.discard(alarm.key)
            if self._waits(alarm):
                del self._waiting[alarm.key]

    def rejected(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These will not be taken: forgotten, and counted."""
        for alarm in alarms:
            if self._waits(alarm):
                del self._waiting[alarm.key]
                self.dropped[Loss.REJECTED] += 1

    def _waits(self, alarm: Alarm) -> bool:
        news = self._waiting.get(alarm.key)
        return news is not None and news.alarm is alarm

    def waiting(self) -> int:
        """How many alarms have news that the receiver does not know."""
        return len(self._waiting)


def _stamp(alarm: Alarm) -> tuple[AlarmState, float]:
    return alarm.state, changed_at(alarm)
