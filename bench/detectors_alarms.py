"""The book of alarms behind detectors, as the sidecar has it: how long a condition has to hold, and
to be good again, is counted here as there. A part of ``./run bench detectors``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sidecar.alarms.book import Book
from sidecar.verdicts import Alarm, AlarmState, Verdict

_STANDS = (AlarmState.PENDING, AlarmState.FIRING)


@dataclass(slots=True)
class Alarms:
    """Takes verdicts, round by round."""

    book: Book = field(default_factory=Book)

    def take(self, verdicts: Iterable[Verdict], at: float) -> tuple[Alarm, ...]:
        """The alarms that began to fire in this round."""
        moved = self.book.update(verdicts, at, at)
        return tuple(t.alarm for t in moved if t.alarm.state is AlarmState.FIRING)

    @property
    def stand(self) -> bool:
        """Whether any is pending or firing. While none is and all is well, rounds change nothing,
        and a bench may pass over them.
        """
        return any(alarm.state in _STANDS for alarm in self.book.alarms())
