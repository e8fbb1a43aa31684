"""When processes are looked for again: rarely where nothing changes, soon where something did, and
never for more than a small share of a CPU.
"""

from __future__ import annotations


class Rescan:
    """When to scan again: one scan takes at most a fiftieth of a CPU, the time between two doubles
    while nothing changes, and a process that began or ended is looked at soon.
    """

    SHARE, SOON, LATEST = 50, 1.0, 30.0  # seconds

    def __init__(self) -> None:
        self._next = self._earliest = 0.0
        self._wait = self.SOON

    def due(self, now: float) -> bool:
        """Whether it is time."""
        return now >= self._next

    def prompt(self, now: float) -> None:
        """Something changed: scan soon, though not for each of a thousand short processes."""
        self._wait = self.SOON
        self._next = min(self._next, max(now + self.SOON, self._earliest))

    def done(self, now: float, cost: float, changed: bool) -> None:
        """After a scan that took ``cost`` seconds."""
        self._wait = self.SOON if changed else min(self._wait * 2, self.LATEST)
        self._earliest = now + self.SHARE * cost
        self._next = max(now + self._wait, self._earliest)
