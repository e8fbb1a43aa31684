"""What the file of alarms holds of a period: slots of the last two hours, hours of eight days.

An hour is stored as one record, so of a period that begins within one it cannot be told apart: it
is left out, and that is said.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sidecar.alarms import tables
from sidecar.analyst import door, rows
from sidecar.analyst.calendar import HOUR, SECONDS
from sidecar.analyst.pages import EVERY, MOST_ID, Codec
from sidecar.diff.asked import Period, Where
from sidecar.diff.sides import Kept, Piece
from sidecar.evaluation import Series
from sidecar.history.times import written
from sidecar.loghist import Damaged
from sidecar.record import Record
from sidecar.units import count
from sidecar.verdicts import Mark, MarkKind

_MARKS = 1_000
_TOLD = 3  # marks, hours
_LARGEST = 2**17  # bytes of a record
Row = tuple[int, int, int, bytes]  # id of a series, used, frozen, packed record


class Connection(Protocol):
    """What is needed of one to SQLite."""

    def execute(
        self, sql: str, parameters: tuple[int, ...] = ..., /
    ) -> Iterable[tuple[object, ...]]:
        """Rows."""


@dataclass(frozen=True, slots=True)
class _Page:
    """``watched``: which of its slots somebody watched, as bits from ``start`` on."""

    start: int
    watched: int
    rows: tuple[Row, ...]


def deploy(path: Path, now: float) -> Mark | None:
    """The deploy that ended last. Raises Nothing and Unusable."""
    with door.opened(path) as connection:
        found = tables.marks(connection, tables.MARKS)
    ended = (mark for mark in found if mark.kind is MarkKind.DEPLOY and mark.end <= now)
    return max(ended, key=lambda mark: mark.end, default=None)


def read(path: Path, period: Period, where: Where | None = None) -> Kept:
    """What is known of a period's whole five minutes, of all or of those that are meant. Raises
    Nothing and Unusable.
    """
    first, end = math.ceil(period.start / SECONDS), math.floor(period.end / SECONDS)
    with door.opened(path) as connection:
        connection.execute("BEGIN")  # one state of the file for all that is read
        try:
            names = {identity: one for one, identity in rows.series(connection).items()}
            slots = _pages(connection, rows.SLOTS, first, end, names)
            hours = _pages(connection, rows.HOURS, first - HOUR + 1, end, names)
            marks = tables.marks(connection, _MARKS)
        finally:
            connection.execute("ROLLBACK")
    reading = _Reading(names, where or Where(), Counter())
    pages, partly = _chosen(slots, hours, first, end)
    pieces = tuple(reading.piece(page, whole) for page, whole in pages)
    notes = [*_coverage(pieces, partly, first, end), *_about(marks, period)]
    if reading.damaged["records"]:
        many = count(reading.damaged["records"], "record")
        notes.append(f"{many} of it in {path} cannot be read and are left out")
    there = {names[row[0]].server for page, _ in pages for row in page.rows}
    return Kept(period.start, period.end, pieces, tuple(notes), tuple(sorted(there)))


def _pages(
    connection: Connection, table: str, first: int, end: int, names: Mapping[int, Series]
) -> dict[int, _Page]:
    """Those that begin from slot ``first`` on and before ``end``."""
    query = f"SELECT key, used, frozen, record FROM {table} WHERE key >= ? AND key < ?"  # noqa: S608  # a constant
    found: defaultdict[int, list[Row]] = defaultdict(list)
    watched: dict[int, int] = {}
    for key, used, frozen, data in connection.execute(
        query, (first << rows.SHIFT, end << rows.SHIFT)
    ):
        if not (isinstance(key, int) and isinstance(used, int) and isinstance(frozen, int)):
            continue
        start, identity = key >> rows.SHIFT, key & MOST_ID
        if identity == EVERY:
            watched[start] = used & rows.MASK
        elif identity in names and isinstance(data, bytes) and len(data) <= _LARGEST:
            found[start].append((identity, used & rows.MASK, frozen & rows.MASK, data))
    return {start: _Page(start, bits, tuple(found[start])) for start, bits in watched.items()}


def _chosen(
    slots: Mapping[int, _Page], hours: Mapping[int, _Page], first: int, end: int
) -> tuple[list[tuple[_Page, bool]], list[int]]:
    """Pages, and whether each is an hour; and the hours that lie in the period only in part.

    Slots know more than the hour made of them. An hour counts for those of its slots that it was
    watched in, all of which have to be wanted.
    """
    left, chosen, partly = dict(slots), [], []
    for start, page in sorted(hours.items()):
        watched = {start + i for i in range(HOUR) if page.watched >> i & 1}
        inside = {slot for slot in watched if first <= slot < end}
        if not inside or inside <= slots.keys():
            continue
        if inside != watched:
            partly.append(start)
            continue
        chosen.append((page, True))
        for slot in inside:
            left.pop(slot, None)
    chosen += [(page, False) for page in left.values()]
    return sorted(chosen, key=lambda one: one[0].start), partly


@dataclass(frozen=True, slots=True)
class _Reading:
    names: Mapping[int, Series]
    where: Where
    damaged: Counter[str]

    def piece(self, page: _Page, hour: bool) -> Piece:
        """The records of a page."""
        records: dict[Series, Record] = {}
        alarmed: dict[Series, int] = {}
        marked = 0
        for identity, used, frozen, data in page.rows:
            series = self.names[identity]
            if not self.where.has(series):
                continue
            try:
                records[series] = Codec().unpack(data)
            except Damaged:
                self.damaged["records"] += 1
                continue
            if hour and frozen:
                alarmed[series] = frozen.bit_count()
            if hour:
                marked = max(marked, (page.watched & ~(used | frozen)).bit_count())
        return Piece(page.start, page.watched.bit_count() if hour else 1, records, alarmed, marked)


def _coverage(pieces: tuple[Piece, ...], partly: list[int], first: int, end: int) -> Iterator[str]:
    """Which part of the period was used, where it is not all of it."""
    wanted, known = max(0, end - first), sum(piece.slots for piece in pieces)
    hours = sum(1 for piece in pieces if piece.slots > 1)
    if hours:
        yield f"{count(hours, 'whole hour')} and {count(len(pieces) - hours, 'slot')} of 5 min"
    if known < wanted:
        yield f"{5 * known} of its {5 * wanted} min are known"
    if partly:
        told = ", ".join(f"{written(start * SECONDS)} UTC" for start in partly[:_TOLD])
        more = f" and {len(partly) - _TOLD} more" if len(partly) > _TOLD else ""
        yield (
            f"known as a whole hour only and not wholly within the period, so left out: from {told}"
            f"{more}"
        )
    marked = sum(piece.marked for piece in pieces)
    if marked:
        yield f"{5 * marked} min of its stored hours are left out: marked, or damaged"


def _about(marks: tuple[Mark, ...], period: Period) -> Iterator[str]:
    over = [mark for mark in marks if mark.start < period.end and mark.end > period.start]
    for mark in over[:_TOLD]:
        yield f"a mark lies in it: {mark.kind.value} by {mark.author}"
    if over[_TOLD:]:
        yield f"and {count(len(over) - _TOLD, 'more mark')}"
