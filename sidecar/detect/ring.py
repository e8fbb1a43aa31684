"""Counts of bad and of all requests by slots of time, in a ring of fixed size."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_WATCHED_SECONDS = 150.0  # records further apart leave a hole between them


@dataclass(frozen=True, slots=True)
class Share:
    """``bad`` of ``total`` requests in a window of which the share ``covered`` was watched."""

    bad: float
    total: float
    covered: float


@dataclass(slots=True)
class Ring:
    """``slots`` of ``seconds`` each, aligned to Unix time. No traffic is a slot that was watched
    and holds nothing; a slot that was not watched is neither.
    """

    seconds: float
    slots: int
    bad: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    newest: int | None = None

    def __post_init__(self) -> None:
        if not self.total:
            self.bad, self.total = [0.0] * self.slots, [0.0] * self.slots
            self.watched = [0] * self.slots
        if not self.slots == len(self.bad) == len(self.total) == len(self.watched):
            raise ValueError("a ring with a missing slot")
        if min(self.bad) < 0 or min(self.total) < 0 or not set(self.watched) <= {0, 1}:
            raise ValueError("a ring with a slot that cannot be")

    def record(self, at: float, bad: float, total: float, last: float | None) -> None:
        """Adds to the slot of ``at``. ``last`` is when the record before was, None if none counts:
        the ring then starts anew.
        """
        index = math.floor(at / self.seconds)
        if last is None or self.newest is None:
            self.watched = [0] * self.slots
            self.newest = index - self.slots
        between = int(last is not None and at - last <= _WATCHED_SECONDS)
        for slot in range(max(self.newest, index - self.slots) + 1, index + 1):
            where = slot % self.slots
            self.bad[where] = self.total[where] = 0.0
            self.watched[where] = between
        self.newest = index
        where = index % self.slots
        self.watched[where] = 1
        self.bad[where] += bad
        self.total[where] += total

    def over(self, seconds: float, at: float) -> Share:
        """The window that ends with the slot of ``at``."""
        count = max(1, round(seconds / self.seconds))
        last = math.floor(at / self.seconds)
        if self.newest is None:
            return Share(0.0, 0.0, 0.0)
        first = max(last - count, self.newest - self.slots) + 1
        stop = min(last, self.newest) + 1
        if first >= stop:
            return Share(0.0, 0.0, 0.0)
        low, high = first % self.slots, (stop - 1) % self.slots + 1
        parts = [slice(low, high)] if low < high else [slice(low, self.slots), slice(0, high)]
        bad = sum(sum(self.bad[part]) for part in parts)
        total = sum(sum(self.total[part]) for part in parts)
        watched = sum(sum(self.watched[part]) for part in parts)
        return Share(bad, total, watched / count)
