"""Takes stored hours out of the file and puts them in, beside a sidecar that may run.

Whatever changes rows tells the analyst, which reads them anew before it writes the next slot.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from sidecar.alarms import places
from sidecar.analyst import bucket_lines, bucket_rows, lines, rows
from sidecar.analyst.bucket_lines import StoredPage
from sidecar.analyst.bucket_rows import Chosen
from sidecar.analyst.calendar import DAY, ended
from sidecar.analyst.door import opened, transaction
from sidecar.analyst.lines import Invalid, Stored
from sidecar.analyst.pages import EVERY, MOST_ID, Codec
from sidecar.drift.codec import Outdated
from sidecar.evaluation import Series
from sidecar.loghist import Damaged

MOST_SERIES = 5_000
MOST_LINES = 2_000_000


@dataclass(slots=True)
class Carried:
    """What became of stored hours: of how many series and how many records. ``damaged`` ones, and
    ``outdated`` ones of an earlier version, were left out, ``old`` ones were too old or lay ahead,
    ``known`` ones were there already.
    """

    series: set[Series] = field(default_factory=set)
    records: int = 0
    damaged: int = 0
    outdated: int = 0
    old: int = 0
    known: int = 0
    keys: list[int] = field(default_factory=list)


def names(path: Path) -> tuple[Series, ...]:
    """The series that the file knows. Raises Nothing, Unusable."""
    with opened(path) as connection:
        return (*rows.series(connection), *bucket_rows.series(connection))


def export(path: Path, out: IO[str], zone: str, now: float, chosen: Chosen) -> Carried:
    """Writes the stored hours of ``chosen`` series. Raises Nothing, Unusable, OSError."""
    with opened(path) as connection:
        connection.execute("BEGIN")  # all that is read is of one moment
        return _export(connection, out, zone, now, chosen)


def _export(
    connection: sqlite3.Connection, out: IO[str], zone: str, now: float, chosen: Chosen
) -> Carried:
    codec, done, count = Codec(), Carried(), 0
    wanted = {identity: one for one, identity in rows.series(connection).items() if chosen(one)}
    moment = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    out.write(lines.first(zone, moment) + "\n")
    for key, used, frozen, data in rows.every(connection, rows.HOURS):
        number, identity = key >> rows.SHIFT, key & MOST_ID
        if identity != EVERY and identity not in wanted:
            continue
        stored = Stored(number, wanted.get(identity), used, frozen, data)
        try:
            out.write(lines.written(stored, codec) + "\n")
        except Damaged as error:
            done.outdated += isinstance(error, Outdated)
            done.damaged += not isinstance(error, Outdated)
            continue
        count += 1
        if stored.series is not None:
            done.series.add(stored.series)
            done.records += bool(data)
            done.keys.append(key)
    count += _export_pages(connection, out, chosen, done)
    out.write(lines.last(count) + "\n")
    return done


def _export_pages(
    connection: sqlite3.Connection, out: IO[str], chosen: Chosen, done: Carried
) -> int:
    count = 0
    for number, page in bucket_rows.pages(connection):
        wanted = {one: row for one, row in page.items() if chosen(one)}
        done.series |= wanted.keys()
        done.records += len(wanted)
        for line in bucket_lines.written(number, wanted):
            out.write(line + "\n")
            count += 1
    return count


def take_in(path: Path, source: IO[str], days: int, now: float) -> Carried:
    """Adds the hours of an export; what is there already stays. All of it is checked before
    anything is written. Raises Invalid (with the line), Unusable, OSError.
    """
    found = list(_Reader().read(source))
    oldest, end = ended(now) - days * DAY - DAY, ended(now)
    kept = [one for one in found if oldest <= one.number < end]
    done = Carried(old=sum(map(_records, found)) - sum(map(_records, kept)))
    fresh = [one for one in kept if isinstance(one, Stored)]
    with opened(path, made=True) as connection, transaction(connection):
        pages = [one for one in kept if isinstance(one, StoredPage)]
        done.records, done.series = bucket_rows.add(connection, pages)
        done.known = sum(len(one.page) for one in pages) - done.records
        known = rows.series(connection)
        _name(connection, known, fresh)
        for one in fresh:
            if one.series is None:
                rows.watch(connection, one.number, one.used)
                continue
            key = one.number << rows.SHIFT | known[one.series]
            if rows.add(connection, rows.HOURS, (key, one.used, one.frozen, one.data)):
                done.records += bool(one.data)
                done.series.add(one.series)
            else:
                done.known += 1
        rows.renew(connection)
    return done


def _records(one: Stored | StoredPage) -> int:
    return len(one.page) if isinstance(one, StoredPage) else one.series is not None


def _name(
    connection: sqlite3.Connection, known: dict[Series, int], found: Iterable[Stored]
) -> None:
    """Gives series that are new to the file their ids there."""
    new = {one.series for one in found if one.series is not None} - known.keys()
    if len(known) + len(new) > MOST_SERIES:
        raise Invalid(f"with these there would be more than {MOST_SERIES} series; use another file")
    following = max(known.values(), default=EVERY)
    for number, series in enumerate(sorted(new, key=rows.name_of), following + 1):
        known[series] = number
        rows.name(connection, number, series)


class _Reader:
    """Checks an export, line by line."""

    def __init__(self) -> None:
        self._codec = Codec()
        self._watched: set[int] = set()
        self._seen: set[tuple[int, Series]] = set()
        self._said: int | None = None

    def read(self, source: IO[str]) -> Iterator[Stored | StoredPage]:
        """Everything in it. Raises Invalid, which names the line."""
        count = 0
        for count, line in enumerate(iter(lambda: source.readline(lines.LONGEST + 1), ""), 1):
            try:
                found = self._line(count, line)
            except Invalid as error:
                raise Invalid(f"line {count}: {error}") from error
            if found is not None:
                yield found
        if self._said is None or self._said != count - 2:
            raise Invalid(f"line {count}: the file is cut short; export it again")

    def _line(self, count: int, line: str) -> Stored | StoredPage | None:
        if len(line) > lines.LONGEST or count > MOST_LINES:
            raise Invalid("it is too long for an export; give a file of `baseline export`")
        if self._said is not None:
            raise Invalid("it follows the last line; export it again")
        if count == 1:
            lines.check_first(line)
            return None
        self._said = lines.count_of(line)
        if self._said is not None:
            return None
        found = lines.object_of(line)
        if "page" in found:
            return bucket_lines.parsed(found)
        return self._once(lines.parsed(line, self._codec))

    def _once(self, stored: Stored) -> Stored:
        """Refuses what comes twice, and what comes before it is said that anybody watched."""
        if stored.series is None:
            self._watched.add(stored.number)
            return stored
        key = (stored.number, stored.series)
        if key in self._seen:
            raise Invalid("a second record of this hour and series; remove one of the two")
        if stored.number not in self._watched:
            raise Invalid("what was watched in this hour has to come before it; export it again")
        self._seen.add(key)
        return stored


def reset(path: Path, zone: str, now: float, chosen: Chosen) -> tuple[Carried, Path]:
    """Forgets what is usual of the series that are ``chosen``, after having written it to a new
    file beside ``path``, which is returned, too. What was recorded of the hour under way will not
    become part of an hour. Raises Nothing, Unusable, OSError.
    """
    day = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S")
    aside = places.sibling(path, f".baseline-{day}.jsonl")
    with opened(path) as connection:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(aside, flags, 0o600), "w", encoding="ascii") as out:
            connection.execute("BEGIN")
            done = _export(connection, out, zone, now, chosen)
            connection.execute("COMMIT")
            out.flush()
            os.fsync(out.fileno())
        with transaction(connection):
            identities = [one for name, one in rows.series(connection).items() if chosen(name)]
            rows.empty(connection, done.keys, identities)
            bucket_rows.reset(connection, chosen)
            rows.renew(connection)
    return done, aside
