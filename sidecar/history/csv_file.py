"""Tables: rates by the minute, or requests, one a row, with a header that says which.

What a row cannot say it leaves empty, which is not a zero. Each line is read by itself, so that a
stray quote costs one row and not the rest of the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

from sidecar.detect.concurrency import half_octave
from sidecar.detect.minutes import Minute, Series
from sidecar.history import columns
from sidecar.history.columns import Cells
from sidecar.history.decoding import Answer, with_rates
from sidecar.history.lines import lines
from sidecar.history.ordering import ROOM, by_the_minute, ordered
from sidecar.history.records import (
    FEWEST_TOKENS,
    Account,
    Flaw,
    Left,
    Record,
    Served,
)
from sidecar.history.times import Clock
from sidecar.signals import Absence, Leg, NoData

_DELIMITERS = ",;\t|"
_MOST_IDS = 100_000


@dataclass(frozen=True, slots=True)
class Table:
    """How to read a file: whose rates and which leg's requests these are where no column says."""

    zone: ZoneInfo | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    replica: str = ""
    source: str = "wire"
    leg: Leg = Leg.DOWNSTREAM
    room: int = ROOM


class CsvFile:
    """One file of rows. A row with an ``id`` that was there before is left out, counted."""

    def __init__(self, path: Path, table: Table, now: float) -> None:
        self.name = str(path)
        self._path = path
        self._table = table
        self._now = now
        self._ids: dict[str, None] = {}

    def records(self, account: Account) -> Iterator[Record]:
        """Its rows in order; NoData where there is no file, or no header that could be used."""
        found = lines(self._path, account)
        head = next(found, "")
        delimiter = max(_DELIMITERS, key=head.count)
        header = _row(head, delimiter) or []
        try:
            places = columns.places(header, self._table.columns)
        except ValueError as error:
            raise NoData(Absence.NO_SIGNAL, f"{self.name}: {error}") from error
        unread = [name for at, name in enumerate(header) if at not in places.values()]
        if unread:
            account.note(f"columns not used: {', '.join(unread)[:200]}")
        clock = Clock(self._table.zone, self._now)
        cells = self._cells(found, delimiter, places, account)
        room = self._table.room
        if "rate" in places:
            minutes = (row for row in (self._minute(c, clock, account) for c in cells) if row)
            yield from by_the_minute(ordered(minutes, account, room), account)
        else:
            answers = (row for row in (self._answer(c, clock, account) for c in cells) if row)
            yield from with_rates(ordered(answers, account, room))

    def _cells(
        self, found: Iterator[str], delimiter: str, places: Mapping[str, int], account: Account
    ) -> Iterator[Cells]:
        """Each row by meaning; one that is too short lacks its last cells."""
        for line in found:
            account.read += 1
            row = _row(line, delimiter)
            if row is None:
                account.leave(Flaw.MALFORMED)
                continue
            cells = {name: row[at].strip() for name, at in places.items() if at < len(row)}
            if self._known(cells.get("id", "")):
                account.leave(Flaw.DUPLICATE)
                continue
            yield cells

    def _known(self, name: str) -> bool:
        if not name or name in self._ids:
            return bool(name)
        self._ids[name] = None
        if len(self._ids) > _MOST_IDS:
            del self._ids[next(iter(self._ids))]
        return False

    def _minute(self, cells: Cells, clock: Clock, account: Account) -> Minute | None:
        table = self._table
        try:
            rate = columns.number(cells.get("rate", ""))
            tokens = columns.number(cells.get("tokens", ""))
            at_once = columns.number(cells.get("concurrency", "")) or 1.0
            at = columns.time(cells, clock, account)
        except Left as error:
            account.leave(error.flaw)
            return None
        if tokens is not None and tokens < FEWEST_TOKENS:
            rate = None
        series = Series(
            cells.get("source") or table.source,
            cells.get("replica") or table.replica,
            cells.get("model") or table.model,
        )
        return Minute(series, at, rate, tokens or 0.0, half_octave(at_once))

    def _answer(self, cells: Cells, clock: Clock, account: Account) -> Answer | None:
        try:
            served = Served(
                at=columns.time(cells, clock, account),
                leg=self._table.leg,
                name=cells.get("model") or self._table.model,
                status=columns.status(cells.get("status", "")),
                duration=columns.seconds(cells, "duration"),
                ttft=columns.seconds(cells, "ttft"),
                bytes=columns.size(cells.get("bytes", "")),
            )
            return Answer(served, columns.number(cells.get("tokens", "")))
        except Left as error:
            account.leave(error.flaw)
            return None


def _row(line: str, delimiter: str) -> list[str] | None:
    """The cells of one line, None when its quotes do not add up."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None
