"""Series over any length of time in bounded memory: least, mean and most of slots that widen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_SLOTS = 1_024  # at most; when they are full, pairs become one


@dataclass(frozen=True, slots=True)
class Cell:
    """What a slot held; ``at`` is its middle."""

    at: float
    least: float
    mean: float
    most: float


@dataclass(slots=True)
class _Slot:
    least: float
    most: float
    sum: float
    count: int

    def add(self, other: _Slot) -> None:
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.sum += other.sum
        self.count += other.count


@dataclass(slots=True)
class Track:
    """One line. ``seconds`` is the width of a slot, 60 at first; a slot that is not there was not
    measured.
    """

    seconds: float = 60.0
    slots: dict[int, _Slot] = field(default_factory=dict)

    def add(self, at: float, value: float) -> None:
        """One more value; those that are no finite number leave no trace."""
        if not math.isfinite(value):
            return
        self._put(int(at // self.seconds), _Slot(value, value, value, 1))
        if len(self.slots) > _SLOTS:
            self._widen()

    def cells(self) -> list[Cell]:
        """Each slot that holds something, oldest first."""
        return [
            Cell((index + 0.5) * self.seconds, slot.least, slot.sum / slot.count, slot.most)
            for index, slot in sorted(self.slots.items())
        ]

    def _widen(self) -> None:
        before, self.slots, self.seconds = self.slots, {}, 2 * self.seconds
        for index, slot in before.items():
            self._put(index // 2, slot)

    def _put(self, index: int, slot: _Slot) -> None:
        known = self.slots.get(index)
        if known is None:
            self.slots[index] = slot
        else:
            known.add(slot)


@dataclass(slots=True)
class Drawn:
    """What was seen of one series of rates, and of its baseline with the band's lower bound."""

    rate: Track = field(default_factory=Track)
    mean: Track = field(default_factory=Track)
    lower: Track = field(default_factory=Track)
    minutes: int = 0
    idle: int = 0
    judged: int = 0
    apart: int = 0  # minutes that did not follow on the one before
    last: float | None = None


@dataclass(slots=True)
class Answers:
    """What was seen of one leg, by the minute: requests, failed share, latencies' P95."""

    requests: Track = field(default_factory=Track)
    failed: Track = field(default_factory=Track)
    ttft: Track = field(default_factory=Track)
    duration: Track = field(default_factory=Track)
    count: float = 0.0
    bad: float = 0.0
