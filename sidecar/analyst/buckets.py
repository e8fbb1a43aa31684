"""What is remembered of engines' own buckets: the slots of eight days, each as it came.

A few dozen series of a dozen filled buckets are a kilobyte a slot, so that nothing has to be added
up by the hour: the same hour of another day is its twelve slots, unweighted, and counts above a
bound stay counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sidecar.analyst.bucket_pages import Page, Row, pack, unpack
from sidecar.analyst.calendar import DAY, HOUR, LATELY, SECONDS, Calendar, ended
from sidecar.analyst.reading import ALARMED
from sidecar.bucketed import Bucketed
from sidecar.drift.bucketed_rule import Hours
from sidecar.evaluation import ENGINE, Series
from sidecar.recorder import OTHER
from sidecar.verdicts import Mark


@dataclass(slots=True)
class Buckets:
    """Pages by the number of their slot; a slot in which no engine counted anything has none.
    ``seen`` is the last slot of each series, ``unsaved`` and ``gone`` are slots that the file does
    not know of, ``counted`` what could not be kept, by why, ``marks`` what was declared about
    time. One thread at a time may call it.
    """

    calendar: Calendar
    days: int
    max_series: int
    counted: Counter[str]
    marks: tuple[Mark, ...] = ()
    seen: dict[Series, int] = field(default_factory=dict)
    unsaved: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    _pages: dict[int, bytes] = field(default_factory=dict)
    _read: dict[int, Page] = field(default_factory=dict)

    def take(self, slot: int, held: Mapping[Series, Bucketed], frozen: Collection[Series]) -> None:
        """Keeps what a slot held; of series without room, what they have in common as ``other``."""
        self._read.clear()
        page: dict[Series, Row] = {}
        wire = {one.signal for one in frozen if one.leg != ENGINE}
        for series, one in held.items():
            known = self._known_as(series)
            before = page.get(known)
            banned = bool({series, known} & set(frozen)) or series.signal in wire
            if before is not None:
                one, banned = before.held.merge(one), before.frozen or banned
            page[known] = Row(banned, one)
            self.seen[known] = slot
        if page:
            self._pages[slot] = pack(page)
            self.unsaved.add(slot)
            self.gone.discard(slot)

    def _known_as(self, series: Series) -> Series:
        if series in self.seen or len(self.seen) < self.max_series or series.server == OTHER:
            return series
        self.counted["folded"] += 1
        return Series(series.signal, ENGINE, OTHER)

    def forget(self, now: int, sure: bool) -> None:
        """Lets go of what is older than is asked for; of what lies ahead when the clock is sure."""
        oldest = now - self.days * DAY - DAY
        for slot in [one for one in self._pages if one < oldest or (sure and one >= now)]:
            del self._pages[slot]
            self.unsaved.discard(slot)
            self.gone.add(slot)
        self.seen = {one: slot for one, slot in self.seen.items() if slot >= oldest}

    def adopt(self, found: Mapping[int, bytes], whole: bool) -> None:
        """Goes on from what a file holds. What it lacks stays: all of it (``whole``), or only what
        it was never told, where a command took the rest out of it on purpose.
        """
        mine = {n: data for n, data in self._pages.items() if whole or n in self.unsaved}
        self.unsaved = mine.keys() - found.keys()
        self._pages = mine | {n: data for n, data in found.items() if n not in self.gone}
        self._read.clear()
        self.seen.clear()
        for slot in sorted(self._pages):
            self.seen.update(dict.fromkeys(self._page(slot), slot))
            self._read.clear()

    def changed(self) -> Iterator[tuple[int, bytes]]:
        """What the file has to be told, by the number of the slot."""
        return ((slot, self._pages[slot]) for slot in sorted(self.unsaved))

    def saved(self) -> None:
        """The file knows all of it."""
        self.unsaved, self.gone = set(), set()

    def known_hours(self, series: Series) -> int:
        """How many hours have a request of a series."""
        return len({slot // HOUR for slot in list(self._pages) if series in self._page(slot)})

    def hours(self, at: float) -> dict[Series, Hours]:
        """What is known of every series with a request in the 25 hours before ``at``."""
        end = ended(at)
        whole = self.calendar.hour(self.calendar.hour(end) - 1) + HOUR
        lately = [series for series, slot in self.seen.items() if slot >= end - LATELY]
        return {series: self._hours(series, end, whole) for series in lately}

    def _hours(self, series: Series, end: int, whole: int) -> Hours:
        days, left = self.same(series, end)
        return Hours(
            hour=self._held(series, range(end - HOUR, end)),
            days=days,
            left=left,
            whole=self._held(series, range(whole - HOUR, whole)),
            whole_days=self.same(series, whole)[0],
        )

    def _held(self, series: Series, slots: Iterable[int]) -> tuple[Bucketed, ...]:
        rows = (self._page(slot).get(series) for slot in slots)
        return tuple(row.held for row in rows if row is not None)

    def same(
        self, series: Series, end: int
    ) -> tuple[dict[str, tuple[Bucketed, ...]], tuple[tuple[str, str], ...]]:
        """The same hour by date, and the days of which all that was counted is left out."""
        found, left = {}, []
        for same in self.calendar.same(end, self.days):
            kept, why = [], ""
            for slot in same.slots:
                row = self._page(slot).get(series)
                if row is None:
                    continue
                mark = self._mark(slot)
                why = mark or (ALARMED if row.frozen else why)
                if not (mark or row.frozen):
                    kept.append(row.held)
            if kept:
                found[same.date] = tuple(kept)
            elif why:
                left.append((same.date, why))
        return found, tuple(left)

    def _mark(self, slot: int) -> str:
        start, end = slot * SECONDS, (slot + 1) * SECONDS
        over = (mark for mark in self.marks if mark.start < end and mark.end > start)
        return next((f"{mark.kind.value} by {mark.author}" for mark in over), "")

    def _page(self, slot: int) -> Page:
        """What a slot held; nothing, counted once, where it is damaged."""
        if slot not in self._read:
            try:
                data = self._pages.get(slot)
                self._read[slot] = unpack(data) if data is not None else {}
            except ValueError:
                self._read[slot] = {}
                self.counted["damaged"] += 1
                del self._pages[slot]
                self.gone.add(slot)
        return self._read[slot]
