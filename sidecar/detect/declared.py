"""Declared stretches of time, as a detector that learns heeds them: no minute of them is learned,
and when a deploy ends, what was learned is of another version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sidecar.detect import inputs
from sidecar.detect.minutes import MINUTE_SECONDS
from sidecar.verdicts import Mark, MarkKind

KEY = "marks/deploy"
_HEEDED = "heeded"


class Declared:
    """The marks that were in force lately, and when the latest deploy that was heeded ended, which
    outlives the process: one that ended while nobody ran is heeded at the next start, and once.
    Times are Unix seconds.
    """

    def __init__(self) -> None:
        self._marks: set[Mark] = set()
        self._deploys: set[Mark] = set()
        self._heeded = 0.0

    def heed(self, marks: tuple[Mark, ...], now: float) -> bool:
        """Takes in the marks in force and the latest that ended; whether a deploy has ended since
        the last one that was heeded.
        """
        if inputs.believed(self._heeded, now) is None:
            self._heeded = now  # a memory of a clock that was wrong
        force = {mark for mark in marks if mark.start <= now < mark.end}
        # For a minute longer: that one began under them.
        self._marks = force | {mark for mark in self._marks if mark.end > now - MINUTE_SECONDS}
        self._deploys |= {mark for mark in marks if mark.kind is MarkKind.DEPLOY}
        ended = {mark for mark in self._deploys if mark.end <= now}
        self._deploys -= ended
        latest = max((mark.end for mark in ended), default=0.0)
        is_new = latest > self._heeded
        self._heeded = max(self._heeded, latest)
        return is_new

    def covers(self, at: float) -> bool:
        """Whether the minute that ends at this time lies in one of them, even in part."""
        return any(mark.start < at and mark.end > at - MINUTE_SECONDS for mark in self._marks)

    def remember(self) -> dict[str, Mapping[str, object]]:
        """What was heeded, to be kept with what was learned: both or neither."""
        return {KEY: {_HEEDED: self._heeded}} if self._heeded else {}

    def recall(self, kept: Mapping[str, Mapping[str, object]]) -> None:
        """What was heeded before. A baseline with minutes of after a deploy is not of before it,
        whoever made it: an earlier version, or a history that was played in.
        """
        times = [what.get("last") for what in kept.values() if "entered" in what]
        times.append(kept.get(KEY, {}).get(_HEEDED))
        known = [float(at) for at in times if isinstance(at, int | float) and math.isfinite(at)]
        # Also where this process has heeded more: what is recalled may be of before that.
        self._heeded = max(known, default=0.0)
