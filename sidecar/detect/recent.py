"""Counters over a sliding window: how much each grew in the last seconds."""

from __future__ import annotations

from collections import deque
from dataclasses import fields

from sidecar.ledger import Tally


class Recent:
    """Tallies of one leg by monotonic time; forgets when told that the source was away."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._points: deque[tuple[float, Tally]] = deque()

    def note(self, at: float, tally: Tally | None) -> None:
        """The cumulative tally at a moment; None: the tap is blind, what was before is void."""
        if tally is None:
            self._points.clear()
            return
        if self._points and _back(tally, self._points[-1][1]):
            self._points.clear()
        self._points.append((at, tally))
        while len(self._points) > 1 and self._points[1][0] <= at - self._seconds:
            self._points.popleft()

    def over(self) -> tuple[float, Tally] | None:
        """The seconds that are covered, and what was counted in them; None of a single point."""
        if len(self._points) < 2:
            return None
        (first, before), (last, now) = self._points[0], self._points[-1]
        return last - first, now.since(before)


def _back(now: Tally, before: Tally) -> bool:
    return any(getattr(now, f.name) < getattr(before, f.name) for f in fields(Tally))
