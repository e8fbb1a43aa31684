"""Records, slots and memories for tests, with a clock that is set by hand."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime, tzinfo
from itertools import accumulate
from pathlib import Path
from typing import Any

from sidecar.analyst.file import File
from sidecar.analyst.slots import Slots
from sidecar.evaluation import Series
from sidecar.record import THRESHOLDS, Record, step_of
from sidecar.recorder import Slot

NOON = datetime(2026, 6, 15, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0
A, B = Series("ttft", "downstream", "a:8000"), Series("itl", "upstream", "b:8000")


def record(*seconds: float) -> Record:
    """Requests of one block that took so long."""
    made = Record()
    steps = [0] * THRESHOLDS
    for one in seconds:
        cell = made.hist.add(one)
        made.strata[cell % 8][step_of(cell)] += 1
        steps[step_of(cell)] += 1
    above = list(accumulate(reversed(steps)))[::-1]
    made.squares = array("d", (float(k * k) / max(1, len(seconds)) for k in above))
    made.blocks = int(bool(seconds))
    return made


def slot(start: float, steady: bool = True, **given: Any) -> Slot:
    """Five minutes (``seconds``) from ``start`` on: ``records``, or ``n`` requests of A."""
    records = given.get("records") or {A: record(*[0.1] * given.get("n", 1))}
    return Slot(start, start + given.get("seconds", 300.0), steady, records)


class Line:
    """A memory, and slots that come to it one after the other."""

    def __init__(
        self, path: Path | None = None, zone: tzinfo = UTC, at: float = NOON, **settings: Any
    ) -> None:
        self.at = at
        self.path = path
        self.slots = Slots(
            zone, wall=lambda: self.at, file=File(lambda: self.at, busy_seconds=0.05), **settings
        )
        self.slots.open(path)

    def put(self, count: int = 1, frozen: Any = (), **given: Any) -> list[str]:
        """So many slots, each at its end."""
        said = []
        for _ in range(count):
            start = self.at
            self.at += 300.0
            said.append(self.slots.put(slot(start, **given), frozen))
        return said

    def again(self) -> Line:
        """The same after a restart."""
        self.slots.close()
        return Line(self.path, at=self.at)

    def total(self) -> int:
        """Requests of series A in the last hour."""
        return self.slots.current(A, self.at).record.hist.total


def total(day: Any) -> float:
    """Requests of a day, weighted."""
    return float(sum(part.weight * part.record.hist.total for part in day.parts))
