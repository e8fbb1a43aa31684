"""Tells one process that restarts from several that answer in turn behind one endpoint.

Counters of one process never go back, so each scrape continues one of the earlier ones or comes
from another process. A process that has just started holds little; one that was met before holds
what it held then, and a little more. By its start time, where it tells, an older process that
answers after a younger one is another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from sidecar.engines.increases import Key

Counters = Mapping[Key, float]

_LINES = 8  # processes told apart
_SCRAPES = 20  # looked back at
_SIGNS = 4  # of several processes in these scrapes; once seen, one is enough
_SURE = 2  # an older process counts twice
_RETURNS = 3  # what an old acquaintance gained meanwhile is at most a third of what it holds
_JUMPS = 6  # to continue another line explains a rise if what is left is a sixth of it
_TOO_MUCH = 0.7  # of what was there before: nobody starts with as much


@dataclass(slots=True)
class Processes:
    """Follows the counters of one endpoint. ``several`` holds while processes take turns."""

    several: bool = False
    _lines: list[Counters] = field(default_factory=list)  # by process, the latest one last
    _started: float | None = None
    _away: bool = False
    _signs: deque[int] = field(default_factory=lambda: deque(maxlen=_SCRAPES))

    def follow(self, counters: Counters, started: float | None) -> bool:
        """Takes in one scrape; whether the process restarted since the last one."""
        if self._lines and started is not None and self._started is not None:
            older = started < self._started - 1
            back = not _continues(counters, self._lines[-1])
            restarted, sign, line = back and not older, _SURE * older, self._lines[-1]
            line = {} if back else line
        else:
            restarted, sign, line = self._place(counters)
        self._started = started
        self._signs.append(0 if self._away else sign)
        self._away = False
        signs = sum(self._signs)
        self.several = signs >= _SIGNS or (self.several and signs > 0)
        self._keep(line, counters)
        return restarted

    def gap(self) -> None:
        """The endpoint was away: whoever answers next, those who died before do not."""
        del self._lines[:-1]
        self._away = True

    def _place(self, counters: Counters) -> tuple[bool, int, Counters]:
        """Whether it restarted, whether that speaks for several, and the line it continues."""
        if not self._lines:
            return False, 0, {}
        total, latest = sum(counters.values()), self._lines[-1]
        fitting = [line for line in self._lines if _continues(counters, line)]
        furthest = max(fitting, key=lambda line: _held(line, counters), default=None)
        if furthest is not None:
            gained = total - _held(furthest, counters)
            if any(line is latest for line in fitting):
                rise = total - _held(latest, counters)
                jumped = furthest is not latest and gained <= rise / _JUMPS
                return False, int(jumped), furthest if jumped else latest
            if gained <= total / _RETURNS:
                return False, 1, furthest
        return True, int(total >= _TOO_MUCH * _held(latest, counters)), {}

    def _keep(self, line: Counters, counters: Counters) -> None:
        merged = {**line, **counters}
        if len(merged) > 2 * len(counters) + 50:  # its labels come and go
            merged = dict(counters)
        others = [other for other in self._lines if other is not line]
        self._lines = [*others[1 - _LINES :], merged]


def _continues(counters: Counters, line: Counters) -> bool:
    return all(counters.get(key, value) >= value for key, value in line.items())


def _held(line: Counters, counters: Counters) -> float:
    return sum(line.get(key, 0.0) for key in counters)
