"""What is remembered of every series: two hours in slots of five minutes, and hours of days.

Slots hold everything. An hour is made of its slots once it is over, for comparisons to come: what a
mark covers, or was recorded while the series' alarm fired, is left out of it, five minutes at a
time, as a deploy of ten minutes is no reason to know nothing of the other fifty.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sidecar.analyst.calendar import DAY, HOUR, SECONDS, Calendar
from sidecar.analyst.pages import EVERY, MOST_ID, Codec, Page, Row, total
from sidecar.analyst.stored import Unsaved
from sidecar.drift.codec import Outdated
from sidecar.evaluation import Series
from sidecar.loghist import Damaged
from sidecar.record import Record
from sidecar.recorder import OTHER
from sidecar.verdicts import Mark

KEPT_SLOTS = 2 * HOUR  # the last whole hour of the clock may have begun so long ago


@dataclass(slots=True)
class Memory:
    """Pages by the number of their (first) slot. ``seen`` is the last slot of each series, by id;
    ``counted`` what could not be used or kept, by why.
    """

    calendar: Calendar
    codec: Codec
    max_series: int
    days: int
    series: dict[Series, int] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    slots: dict[int, Page] = field(default_factory=dict)
    hours: dict[int, Page] = field(default_factory=dict)
    unsaved: Unsaved = field(default_factory=Unsaved)
    counted: Counter[str] = field(default_factory=Counter)
    _lost: set[int] = field(default_factory=set)  # hashes of what could not be read

    def take(
        self, slot: int, records: Mapping[Series, Record], frozen: Container[Series] = ()
    ) -> None:
        """Keeps a slot; what has no room goes into ``other``."""
        kept: defaultdict[int, list[Record]] = defaultdict(list)
        banned = set()
        for series, record in records.items():
            identity, known_as = self._identity(series)
            kept[identity].append(record)
            self.seen[identity] = slot
            if series in frozen or known_as in frozen:
                banned.add(identity)
        rows = [(EVERY, 1, 0, b"")]
        for identity, found in kept.items():
            whole = found[0] if len(found) == 1 else total(found)
            out = identity in banned
            rows.append((identity, int(not out), int(out), self.codec.pack(whole)))
        self.slots[slot] = Page(rows)
        self.unsaved.slots.add(slot)

    def close(self, slot: int, marks: Iterable[Mark]) -> None:
        """Makes the hours that ended before the one of this slot, out of the slots there are."""
        last = self.calendar.hour(slot)
        found: defaultdict[int, list[int]] = defaultdict(list)
        for one in self.slots:
            found[self.calendar.hour(one)].append(one)
        for hour, slots in found.items():
            if hour < last and hour not in self.hours:
                out = marked(hour, marks)
                self.hours[hour] = Page(self._hour(hour, sorted(slots), out))
                self.unsaved.hours.add(hour)

    def _hour(self, hour: int, slots: list[int], out: int) -> Iterator[Row]:
        """Its rows. Whoever was not frozen in a slot without a record made no request in it."""
        watched = sum(1 << (slot - hour) for slot in slots)
        records: defaultdict[int, list[Record]] = defaultdict(list)
        frozen: Counter[int] = Counter()
        lost: Counter[int] = Counter()
        for slot in slots:
            bit = 1 << (slot - hour)
            for identity, used, banned, data in self.slots[slot].rows():
                frozen[identity] |= bit * banned
                if not used or bit & out:
                    continue
                record = self.unpack(data)
                if record is None:
                    lost[identity] |= bit
                elif data:
                    records[identity].append(record)
        for identity, mask in frozen.items():
            if identity == EVERY:
                yield EVERY, watched, 0, b""
            else:
                data = self.codec.pack(total(records[identity]))
                yield identity, watched & ~(mask | out | lost[identity]), mask, data

    def unpack(self, data: bytes) -> Record | None:
        """The record of an entry; None, counted once, when it is damaged or outdated."""
        try:
            return self.codec.unpack(data)
        except Damaged as error:
            if hash(data) not in self._lost:
                self._lost.add(hash(data))
                self.counted["outdated" if isinstance(error, Outdated) else "damaged"] += 1
            return None

    def reopen(self, slot: int) -> bool:
        """Whether a slot may still enter its hour: the hour has not been made, or can be made again
        as all that is in it is there.
        """
        hour = self.calendar.hour(slot)
        about = self.hours[hour].get(EVERY) if hour in self.hours else None
        if about is None:
            return hour not in self.hours
        watched = (hour + index for index in range(HOUR) if about.used >> index & 1)
        if not all(one in self.slots for one in watched):
            return False
        del self.hours[hour]  # in the file it is written over
        self.unsaved.hours.discard(hour)
        return True

    def _made(self, slot: int) -> bool:
        return self.calendar.hour(slot) in self.hours

    def forget(self, now: int, sure: bool) -> None:
        """Lets go of what is too old. What lies ahead, or so far back that nobody may ever ask for
        it, goes only when the clock is ``sure``: it may have been set to a wrong day for a moment.
        """
        old = sorted(one for one in self.slots if one < now - KEPT_SLOTS and self._made(one))
        for slot in old if sure else old[:-KEPT_SLOTS]:
            self._drop_slot(slot)
        for slot in [one for one in self.slots if sure and one >= now]:
            self.counted["ahead"] += 1
            self._drop_slot(slot)
        if not sure:
            return
        oldest = now - self.days * DAY - DAY
        for hour in [one for one in self.hours if one < oldest or one >= now]:
            self.counted["ahead"] += hour >= now
            del self.hours[hour]
            self.unsaved.hours.discard(hour)
            self.unsaved.gone_hours.add(hour)
        for series, identity in list(self.series.items()):
            seen = self.seen[identity] = min(self.seen.get(identity, 0), now)
            if seen < oldest:
                del self.series[series], self.seen[identity]
                self.unsaved.series.discard(identity)
                self.unsaved.gone_series.add(identity)

    def known_hours(self, series: Series) -> int:
        """How many stored hours have a request of a series."""
        identity = self.series.get(series, EVERY)
        entries = (page.get(identity) for page in self.hours.values())
        return sum(1 for entry in entries if entry and entry.data)

    def _drop_slot(self, slot: int) -> None:
        del self.slots[slot]
        self.unsaved.slots.discard(slot)
        self.unsaved.gone_slots.add(slot)

    def _identity(self, series: Series) -> tuple[int, Series]:
        """The id under which a series is kept, and whose that is."""
        if (
            series not in self.series
            and len(self.series) >= self.max_series
            and series.server != OTHER
        ):
            self.counted["folded"] += 1
            series = Series(series.signal, series.leg, OTHER)
        return self.number_of(series), series

    def number_of(self, series: Series) -> int:
        """The id of a series, a new one if it is not known."""
        found = self.series.get(series)
        if found is None:
            taken = {*self.series.values(), *self.unsaved.gone_series}
            found = next(one for one in range(1, MOST_ID) if one not in taken)
            self.series[series] = found
            self.unsaved.series.add(found)
        return found


def marked(hour: int, marks: Iterable[Mark]) -> int:
    """Which of an hour's slots a mark overlaps, bit by bit."""
    found = 0
    for mark in marks:
        for index in range(HOUR):
            start = (hour + index) * SECONDS
            if mark.start < start + SECONDS and mark.end > start:
                found |= 1 << index
    return found
