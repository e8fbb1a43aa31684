"""Declared stretches of time, as a detector that learns heeds them: no minute of them is learned,
and when a deploy ends, what was learned is of another version.
"""

from __future__ import annotations

from sidecar.detect.minutes import MINUTE_SECONDS
from sidecar.verdicts import Mark, MarkKind


class Declared:
    """The marks that were in force lately. Times are Unix seconds."""

    def __init__(self) -> None:
        self._marks: set[Mark] = set()
        self._deploys: set[Mark] = set()

    def heed(self, marks: tuple[Mark, ...], now: float) -> bool:
        """Takes in the marks in force; whether a deploy has ended since the last time."""
        force = {mark for mark in marks if mark.start <= now < mark.end}
        # For a minute longer: that one began under them.
        self._marks = force | {mark for mark in self._marks if mark.end > now - MINUTE_SECONDS}
        ended = {mark for mark in self._deploys if mark.end <= now}
        self._deploys -= ended
        self._deploys |= {mark for mark in force if mark.kind is MarkKind.DEPLOY}
        return bool(ended)

    def covers(self, at: float) -> bool:
        """Whether the minute that ends at this time lies in one of them, even in part."""
        return any(mark.start < at and mark.end > at - MINUTE_SECONDS for mark in self._marks)
