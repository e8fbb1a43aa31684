"""The analyst's memory of latencies: five-minute slots in, hours of now and of earlier days out.

All of it is in memory, and where a file of alarms is configured also there, one transaction a slot,
so that a restart loses no more than the slot that was open. Time is event time: what a slot says,
not when it came; the machine's clock only tells which slots cannot be.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

from sidecar.alarms.states import StoreState
from sidecar.analyst import reading, rows
from sidecar.analyst.adopting import adopt
from sidecar.analyst.buckets import Buckets
from sidecar.analyst.calendar import DAY, HOUR, LATELY, SECONDS, Calendar, ended, number
from sidecar.analyst.file import File, Renewed
from sidecar.analyst.memory import Memory
from sidecar.analyst.pages import Codec
from sidecar.analyst.reading import Day, Plan, Window
from sidecar.analyst.stored import Unsaved
from sidecar.evaluation import Series
from sidecar.record import Record
from sidecar.recorder import Slot
from sidecar.verdicts import Mark

SURE_SLOTS = HOUR  # steady ones in a row, after which the clock is believed
_LONGEST_SECONDS = 2.0 * SECONDS
_AHEAD_SECONDS = 5.0
_KNOWN_ALREADY = frozenset({"repeated", "late"})  # no reason to doubt the clock


@dataclass(frozen=True, slots=True)
class SlotsStatus:
    """How the memory fares. ``counted`` are slots, rows and series that could not be used or kept,
    by why, since the start; ``unsaved`` slots and hours are in memory only.
    """

    state: StoreState
    reason: str
    series: int
    hours: int
    slots: int
    unsaved: int
    counted: Mapping[str, int]


class Slots:
    """One thread at a time may call it. ``watermark`` is the end of the latest slot that was taken,
    Unix seconds, 0 before the first one.
    """

    def __init__(
        self,
        zone: tzinfo,
        days: int = 7,
        max_series: int = 300,
        codec: Codec | None = None,
        file: File | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._memory = Memory(Calendar(zone), codec or Codec(), max_series, days)
        self.buckets = Buckets(Calendar(zone), days, max_series, self._memory.counted)
        self._file = file or File(wall)
        self._wall = wall
        self._steady = 0
        self._generation: int | None = None
        self._plans: dict[tuple[int, int], tuple[Plan, ...]] = {}
        self.watermark = 0.0

    def open(self, path: Path | None) -> StoreState:
        """Opens the file, makes it where there is none, and takes over what it holds."""
        self._file.path = path
        self._attend()
        return self._file.state

    def close(self) -> None:
        """Lets go of the file. What was put is in it, unless its state says otherwise."""
        self._file.close()

    def put(self, slot: Slot, frozen: Collection[Series] = ()) -> str:
        """Takes in a closed slot, once: why it was not, empty if it was. Of series in ``frozen``,
        whose alarm fires, it counts for now and never becomes part of what is usual.
        """
        self._attend()
        refused = self._refusal(slot)
        if refused:
            self._memory.counted[refused] += 1
        else:
            self._memory.take(_place(slot), slot.records, frozen)
            self.buckets.take(_place(slot), slot.buckets, frozen)
            self.watermark = slot.end
        self._steady = 0 if refused and refused not in _KNOWN_ALREADY else self._steady + 1
        sure = self._steady >= SURE_SLOTS
        if sure or not refused:
            self._memory.close(_place(slot), self._file.marks)
            self._memory.forget(ended(self._wall()), sure)
            self.buckets.forget(ended(self._wall()), sure)
        self.buckets.marks = self._file.marks
        self._plans.clear()
        self._save()
        return refused

    def series(self) -> tuple[Series, ...]:
        """Everything that was seen within the days kept."""
        return tuple(self._memory.series)

    def lately(self, at: float) -> tuple[Series, ...]:
        """Those with a request in the 25 hours before ``at``: servers come and go, and the rest of
        what is kept waits for one that comes back.
        """
        since = ended(at) - LATELY
        seen, known = self._memory.seen, self._memory.series
        return tuple(one for one, identity in known.items() if seen.get(identity, 0) >= since)

    def current(self, series: Series, at: float) -> Window:
        """The twelve slots that had ended by ``at`` (Unix seconds)."""
        end = ended(at)
        return reading.window(self._memory, self._memory.series.get(series), end - HOUR, end)

    def trail(self, series: Series, at: float) -> Iterator[tuple[float, Record]]:
        """The slots of two hours before ``at``, oldest first: their starts and records."""
        return reading.trail(self._memory, self._memory.series.get(series), ended(at))

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What was declared lately, as the file has it."""
        return self._file.marks

    def clock_hour(self, series: Series, at: float) -> Window:
        """The last hour of the local clock that had ended by ``at``."""
        end = ended(at)
        start = self._memory.calendar.hour(self._memory.calendar.hour(end) - 1)
        return reading.window(self._memory, self._memory.series.get(series), start, end)

    def days(self, series: Series, at: float, count: int | None = None) -> tuple[Day, ...]:
        """The hour before ``at`` on each of the days before, the latest first."""
        key = (ended(at), self._memory.days if count is None else count)
        if key not in self._plans:
            self._plans[key] = reading.plan(self._memory, *key, self._file.marks)
        identity = self._memory.series.get(series)
        return tuple(reading.day(self._memory, identity, one) for one in self._plans[key])

    def hours(self, series: Series) -> int:
        """How many stored hours know something of a series."""
        return self._memory.known_hours(series)

    def status(self) -> SlotsStatus:
        """How it fares at this moment."""
        memory, unsaved = self._memory, self._memory.unsaved
        return SlotsStatus(
            state=self._file.state,
            reason=self._file.reason,
            series=len(memory.series) + len(self.buckets.seen),
            hours=len(memory.hours),
            slots=len(memory.slots),
            unsaved=len(unsaved.slots) + len(unsaved.hours) if self._file.path else 0,
            counted={why: many for why, many in memory.counted.items() if many},
        )

    def _refusal(self, slot: Slot) -> str:
        """Why a slot cannot be used; empty if it can."""
        length, now = slot.end - slot.start, self._wall()
        if not (math.isfinite(slot.start) and math.isfinite(slot.end)):
            return "no_time"
        if not slot.steady:
            return "unsteady"
        if not 0 < length <= _LONGEST_SECONDS:
            return "odd_length"
        if slot.end > now + _AHEAD_SECONDS:
            return "ahead"
        place = _place(slot)
        if place < number(now) - self._memory.days * DAY - DAY:
            return "past"
        if place in self._memory.slots:
            return "repeated"
        return "" if self._memory.reopen(place) else "late"

    def _attend(self) -> None:
        """Opens the file if it has to be, and reads it anew where somebody else changed it."""
        if self._file.usable() and self._file.look():
            return
        found = self._file.open(self._file.path)
        if found is not None:
            before, self._generation = self._generation, found.generation
            whole = before is None or found.generation <= before
            adopt(self._memory, found, whole)
            self.buckets.adopt(found.buckets, whole)
            self._plans.clear()
            self.watermark = max(self.watermark, self._latest())

    def _latest(self) -> float:
        now = ended(self._wall())
        return max((slot + 1 for slot in self._memory.slots if slot < now), default=0) * SECONDS

    def _save(self) -> None:
        unsaved = self._memory.unsaved
        if self._file.path is None:
            self._saved()
        elif unsaved and self._file.usable():
            try:
                state = self._file.write(self._change())
            except Renewed:  # since _attend; the next slot writes both
                return
            if state is StoreState.OK:
                self._saved()

    def _saved(self) -> None:
        self._memory.unsaved = Unsaved()
        self.buckets.saved()

    def _change(self) -> rows.Change:
        memory, unsaved = self._memory, self._memory.unsaved
        names = {identity: series for series, identity in memory.series.items()}
        return rows.Change(
            series=tuple((one, rows.name_of(names[one])) for one in sorted(unsaved.series)),
            slots=tuple((one, memory.slots[one]) for one in sorted(unsaved.slots)),
            hours=tuple((one, memory.hours[one]) for one in sorted(unsaved.hours)),
            gone_series=tuple(unsaved.gone_series),
            gone_slots=tuple(unsaved.gone_slots),
            gone_hours=tuple(unsaved.gone_hours),
            buckets=tuple(self.buckets.changed()),
            gone_buckets=tuple(self.buckets.gone),
        )


def _place(slot: Slot) -> int:
    return number((slot.start + slot.end) / 2)
