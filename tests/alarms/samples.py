"""Verdicts to judge, and a book that is led through time a round at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sidecar.alarms.book import Book
from sidecar.alarms.standing import Transition
from sidecar.verdicts import Alarm, AlarmState, Mark, Outcome, Verdict

FAIL, PASS, UNKNOWN = Outcome.FAIL, Outcome.PASS, Outcome.UNKNOWN
PENDING, FIRING, RESOLVED = AlarmState.PENDING, AlarmState.FIRING, AlarmState.RESOLVED
INACTIVE = AlarmState.INACTIVE
NOON = 1_750_000_000.0


def verdict(outcome: Outcome = FAIL, hold: float = 3.0, clear: float = 2.0, **rest: Any) -> Verdict:
    """A verdict on one engine's token rate, unless the rest says otherwise."""
    fields: dict[str, Any] = {"rule": "TokenRateOutOfBand", "labels": (("engine", "r0"),)}
    return Verdict(outcome=outcome, hold_seconds=hold, clear_seconds=clear, **{**fields, **rest})


class Timeline:
    """A book, a wall clock and a monotonic one; ``log`` holds every transition so far."""

    def __init__(self, book: Book | None = None, wall: float = NOON, clock: float = 100.0) -> None:
        self.book = book or Book()
        self.wall = wall
        self.clock = clock
        self.marks: tuple[Mark, ...] = ()
        self.log: list[Transition] = []

    def round(self, *verdicts: Verdict, seconds: float = 1.0) -> list[AlarmState]:
        """One round, ``seconds`` after the one before; the states that were entered."""
        self.wall += seconds
        self.clock += seconds
        entered = self.book.update(verdicts, self.wall, self.clock, self.marks)
        self.log += entered
        return [transition.alarm.state for transition in entered]

    def rounds(self, count: int, outcome: Outcome, **fields: Any) -> list[AlarmState]:
        """So many rounds of one verdict, a second apart; the states entered in all of them."""
        return [state for _ in range(count) for state in self.round(verdict(outcome, **fields))]

    @property
    def only(self) -> Alarm:
        """The one alarm there is."""
        [alarm] = self.book.alarms()
        return alarm


def states(alarms: Iterable[Alarm]) -> dict[str, AlarmState]:
    """The state of each alarm by its first label's value."""
    return {alarm.labels[0][1]: alarm.state for alarm in alarms}
