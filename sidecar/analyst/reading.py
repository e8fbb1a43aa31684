"""What an evaluation reads: the last hour, and the same hour of the days before.

The latter are stored by the hour of the clock, so that an hour that slides lies across two of them:
each comes with the share of it that is meant. What is left out of a day is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sidecar.analyst.calendar import HOUR, SECONDS, Same
from sidecar.analyst.memory import Memory, marked
from sidecar.analyst.pages import EVERY, total
from sidecar.record import Record
from sidecar.verdicts import Mark

LEAST_SHARE = 0.5  # of an hour that a day has to know, to be one of the baseline
NOT_RECORDED = "nothing was recorded"
NO_SUCH_HOUR = "the clocks left that hour out"
ALARMED = "its drift alarm fired, or it was reset"
NO_REQUESTS = "no requests"
DAMAGED = "its record is damaged"
OUTDATED = "an earlier version recorded it, without what is compared now"


@dataclass(frozen=True, slots=True)
class Window:
    """What happened from ``start`` to ``end`` (Unix seconds), marks or not. ``slots`` of its twelve
    are known: where they are fewer, nobody watched meanwhile.
    """

    start: float
    end: float
    slots: int
    record: Record


@dataclass(frozen=True, slots=True)
class Part:
    """A stored hour that began at ``start`` (Unix seconds), and how much of it is meant."""

    start: float
    record: Record
    weight: float


@dataclass(frozen=True, slots=True)
class Day:
    """The same hour on ``date`` (local). ``share`` of it is in ``parts``; ``left`` says why some of
    its five minutes are not, and how many. A day with too little to say is ``dropped``: why.
    """

    date: str
    parts: tuple[Part, ...]
    share: float
    left: tuple[tuple[str, int], ...] = ()
    dropped: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """Which slots of a stored hour are wanted, and which marks cover it, as bits."""

    hour: int
    wanted: int
    covered: int
    mark: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One day for all series: computed once, read a thousand times."""

    same: Same
    hours: tuple[Planned, ...]
    unknown: int  # slots that belong to no stored hour


def window(memory: Memory, identity: int | None, start: int, known: int) -> Window:
    """The hour from slot ``start`` on, as far as there are slots, all before slot ``known``."""
    records, watched = [], 0
    for slot in range(start, start + HOUR):
        page = memory.slots.get(slot)
        if page is None or slot >= known:
            continue
        watched += 1
        entry = page.get(identity) if identity is not None else None
        record = memory.unpack(entry.data) if entry else None
        if record is not None:
            records.append(record)
    end = (start + HOUR) * SECONDS
    return Window(start * SECONDS, end, watched, total(records))


def trail(memory: Memory, identity: int | None, end: int) -> Iterator[tuple[float, Record]]:
    """The slots that are kept, all before slot ``end``, oldest first: when each began, and its
    record.
    """
    for slot in sorted(one for one in memory.slots if one < end):
        entry = memory.slots[slot].get(identity) if identity is not None else None
        record = memory.unpack(entry.data) if entry else None
        if record is not None:
            yield slot * SECONDS, record


def plan(memory: Memory, end: int, count: int, marks: Iterable[Mark]) -> tuple[Plan, ...]:
    """What to read for the hour before slot ``end``, of each of the days before it."""
    where = _where(memory.hours)
    listed = tuple(marks)
    return tuple(_planned(same, where, listed) for same in memory.calendar.same(end, count))


def _where(hours: Mapping[int, object]) -> dict[int, int]:
    """The stored hour of every slot. Two can claim one where the zone was changed: the later."""
    return {hour + index: hour for hour in sorted(hours) for index in range(HOUR)}


def _planned(same: Same, where: Mapping[int, int], marks: tuple[Mark, ...]) -> Plan:
    wanted: Counter[int] = Counter()
    for slot in same.slots:
        hour = where.get(slot)
        if hour is not None:
            wanted[hour] |= 1 << (slot - hour)
    hours = []
    for hour, bits in sorted(wanted.items()):
        start, end = hour * SECONDS, (hour + HOUR) * SECONDS
        over = [mark for mark in marks if mark.start < end and mark.end > start]
        name = f"{over[0].kind.value} by {over[0].author}" if over else ""
        hours.append(Planned(hour, bits, marked(hour, over), name))
    known = sum(bits.bit_count() for bits in wanted.values())
    return Plan(same, tuple(hours), len(same.slots) - known)


@dataclass(slots=True)
class _Reading:
    parts: list[Part] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    used: int = 0


def day(memory: Memory, identity: int | None, planned: Plan) -> Day:
    """What is known of a series on that day."""
    reading = _Reading()
    reading.left[NO_SUCH_HOUR] += planned.same.missing
    reading.left[NOT_RECORDED] += planned.unknown
    for one in planned.hours:
        _read(memory, identity, one, reading)
    left = tuple((why, slots) for why, slots in reading.left.most_common() if slots > 0)
    share = reading.used / HOUR
    dropped = ""
    if share < LEAST_SHARE:
        dropped = left[0][0] if left else NOT_RECORDED
    elif not any(part.record.hist.total for part in reading.parts):
        dropped = NO_REQUESTS
    return Day(planned.same.date, tuple(reading.parts), share, left, dropped)


def _read(memory: Memory, identity: int | None, one: Planned, reading: _Reading) -> None:
    """Takes in one stored hour. A mark that was set after the hour had been stored, and covers what
    is in its record, makes all of it useless.
    """
    page = memory.hours[one.hour]
    about = page.get(EVERY)
    watched = about.used if about is not None else 0
    entry = page.get(identity) if identity is not None else None
    used = watched & ~one.covered if entry is None else entry.used
    frozen = 0 if entry is None else entry.frozen
    reading.left.update(dict(_reasons(one, watched, frozen)))
    good = 0 if used & one.covered else used & one.wanted
    lost = one.wanted & used & ~one.covered & ~good
    if lost:
        reading.left[one.mark] += lost.bit_count()
    damaged = one.wanted & watched & ~(used | frozen | one.covered)
    reading.left[DAMAGED] += damaged.bit_count()
    if not good:
        return
    record = Record() if entry is None else memory.unpack(entry.data)
    if record is None:
        outdated = entry is not None and memory.codec.outdated(entry.data)
        reading.left[OUTDATED if outdated else DAMAGED] += good.bit_count()
        return
    reading.used += good.bit_count()
    weight = good.bit_count() / used.bit_count()
    reading.parts.append(Part(one.hour * SECONDS, record, weight))


def _reasons(one: Planned, watched: int, frozen: int) -> Iterator[tuple[str, int]]:
    """Why wanted slots are in no record; each slot has one reason, the first of these."""
    yield one.mark, (one.wanted & one.covered).bit_count()
    frozen &= one.wanted & ~one.covered
    yield ALARMED, frozen.bit_count()
    yield NOT_RECORDED, (one.wanted & ~(watched | one.covered | frozen)).bit_count()
