"""The book of alarms: inactive → pending → firing → resolved → forgotten.

Every duration comes from the monotonic clock, in steps between two rounds of verdicts. A step too
long to have been watched (the process was stopped, the machine slept) counts for nothing, so that
an alarm never fires for time nobody looked at. Wall time is only noted, never subtracted, but for
one use: how long ago an alarm resolved that was read back from the file.
"""

from __future__ import annotations

from collections.abc import Iterable

from sidecar.alarms.standing import Key, Moment, Standing, Transition, advance, begin, worst
from sidecar.verdicts import Alarm, AlarmState, Mark, Outcome, Severity, Verdict

KEEP_RESOLVED_SECONDS = 3_600.0
MAX_ALARMS = 500
MAX_STEP_SECONDS = 5.0


class Book:
    """All alarms that are not inactive, at most ``max_alarms`` of them.

    One thread updates and adopts; ``alarms`` and ``standings`` may be read from any. ``refused``
    counts the FAIL verdicts that found no room, once in each round, ``evicted`` the alarms that
    gave theirs to one that mattered more, ``unwatched_seconds`` the steps that did not count.
    """

    def __init__(
        self,
        restored: Iterable[Standing] = (),
        keep_resolved_seconds: float = KEEP_RESOLVED_SECONDS,
        max_alarms: int = MAX_ALARMS,
        max_step_seconds: float = MAX_STEP_SECONDS,
    ) -> None:
        self.refused = 0
        self.evicted = 0
        self.unwatched_seconds = 0.0
        self._keep_resolved_seconds = keep_resolved_seconds
        self._max_alarms = max_alarms
        self._max_step_seconds = max_step_seconds
        self._standings: dict[Key, Standing] = {}
        self._outcomes: dict[Key, Outcome] = {}  # of the round before, for alarms in the book
        self._ended: dict[Key, float] = {}  # monotonic time at which resolved ones resolved
        self._clock: float | None = None
        self._published: tuple[Standing, ...] = ()
        self.adopt(restored)

    def alarms(self) -> tuple[Alarm, ...]:
        """Every alarm that is pending, firing or lately resolved."""
        return tuple(standing.alarm for standing in self._published)

    def standings(self) -> tuple[Standing, ...]:
        """The same with the clocks behind them: what the file keeps."""
        return self._published

    def adopt(self, found: Iterable[Standing]) -> None:
        """Takes in what an earlier process knew. Where both know an alarm, firing counts for more
        than pending, pending for more than resolved, and of two pending the longer held.
        """
        for standing in sorted(found, key=_claim, reverse=True):
            own = self._standings.get(standing.alarm.key)
            if own is None and not self._make_room(standing, self._evictable(1)):
                continue
            if own is None or _weight(own) < _weight(standing):
                self._standings[standing.alarm.key] = standing
        self._published = tuple(self._standings.values())

    def update(
        self,
        verdicts: Iterable[Verdict],
        now_unix: float,
        clock_monotonic: float,
        marks: Iterable[Mark] = (),
    ) -> list[Transition]:
        """Judges one round, all verdicts of it, and returns what became pending, fired or
        resolved. Falling back to inactive is silent. The order of the verdicts does not matter;
        of several about one alarm the worst counts.
        """
        judged = worst(verdicts)
        in_force = tuple(mark for mark in marks if mark.start <= now_unix < mark.end)
        moment = Moment(now_unix, self._step(clock_monotonic), in_force)
        known = set(self._standings)
        transitions = self._advance(judged, moment)
        transitions += self._admit(
            (v for key, v in judged.items() if v.outcome is Outcome.FAIL and key not in known),
            moment,
        )
        self._outcomes = {key: judged[key].outcome for key in self._standings if key in judged}
        self._forget(now_unix, clock_monotonic)
        self._published = tuple(self._standings.values())
        return transitions

    def _step(self, clock: float) -> float:
        before, self._clock = self._clock, clock
        step = 0.0 if before is None else clock - before
        if 0.0 < step <= self._max_step_seconds:
            return step
        self.unwatched_seconds += max(0.0, step)
        return 0.0

    def _advance(self, judged: dict[Key, Verdict], moment: Moment) -> list[Transition]:
        transitions = []
        for key, standing in list(self._standings.items()):
            verdict = judged.get(key)
            same = verdict is not None and self._outcomes.get(key) is verdict.outcome
            after = advance(standing, verdict, moment, same)
            if after is None:
                self._remove(key)
                continue
            self._standings[key] = after
            before = standing.alarm.state
            fell_back = before is AlarmState.PENDING and after.alarm.state is AlarmState.RESOLVED
            if after.alarm.state is not before and not fell_back:
                transitions.append(Transition(moment.now, before, after.alarm, after.firings))
        return transitions

    def _admit(self, failed: Iterable[Verdict], moment: Moment) -> list[Transition]:
        fresh = [begin(verdict, moment) for verdict in failed]
        fresh.sort(key=lambda standing: standing.alarm.key)  # so that the order given is no matter
        fresh.sort(key=_claim, reverse=True)
        evictable = self._evictable(len(fresh))
        transitions = []
        for standing in fresh:
            if self._make_room(standing, evictable):
                self._standings[standing.alarm.key] = standing
                transitions.append(
                    Transition(moment.now, AlarmState.INACTIVE, standing.alarm, standing.firings)
                )
        return transitions

    def _evictable(self, coming: int) -> list[Standing]:
        """What may have to give way to ``coming`` new ones, the first to go last."""
        if len(self._standings) + coming <= self._max_alarms:
            return []
        return sorted(self._standings.values(), key=_claim, reverse=True)

    def _make_room(self, standing: Standing, evictable: list[Standing]) -> bool:
        if len(self._standings) < self._max_alarms:
            return True
        if not evictable or _claim(evictable[-1])[0] >= _claim(standing)[0]:
            self.refused += 1
            return False
        self._remove(evictable.pop().alarm.key)
        self.evicted += 1
        return True

    def _remove(self, key: Key) -> None:
        del self._standings[key]
        self._ended.pop(key, None)

    def _forget(self, now: float, clock: float) -> None:
        for key, standing in list(self._standings.items()):
            if standing.alarm.state is AlarmState.FIRING:
                self._ended.pop(key, None)
            if standing.alarm.resolved is None:
                continue
            # The wall clock has a say only about an alarm that an earlier process saw resolve.
            age = max(0.0, now - standing.alarm.resolved)
            if clock - self._ended.setdefault(key, clock - age) >= self._keep_resolved_seconds:
                self._remove(key)


def _weight(standing: Standing) -> tuple[int, float]:
    """Which of two standings of one alarm counts."""
    order = (AlarmState.RESOLVED, AlarmState.PENDING, AlarmState.FIRING)
    return order.index(standing.alarm.state), standing.alarm.held_seconds


def _claim(standing: Standing) -> tuple[int, bool, float, float]:
    """What a standing's claim to a place is, the first figure being what makes others give way:
    firing before pending, pending before one not judged now, and that before resolved.
    """
    alarm = standing.alarm
    if alarm.state is AlarmState.PENDING:
        rank = 2 if alarm.known else 1
    else:
        rank = 3 if alarm.state is AlarmState.FIRING else 0
    return rank, alarm.severity is Severity.PAGE, alarm.held_seconds, alarm.resolved or 0.0
