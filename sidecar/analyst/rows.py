"""The rows of latencies in the file of alarms: what is read, and what one transaction writes.

A key is ``number << 20 | id``: the (first) slot of the stretch, and the series, 0 for all of them.
In this order, hour after hour is appended, which packs pages of SQLite nearly full; by series first
they would be half empty, and rows of a kilobyte would get a page each.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from sidecar.alarms import codec
from sidecar.analyst.pages import EVERY, MOST_ID, Page, Row
from sidecar.analyst.stored import Loaded
from sidecar.evaluation import Series
from sidecar.verdicts import Mark

SHIFT = 20
MASK = 0xFFF  # twelve slots
_LARGEST = 2**17  # bytes of a record
_NUMBERS = 2**31  # of slots; far beyond any time that a clock can tell
_GENERATION = "drift_generation"
Keyed = tuple[int, int, int, bytes]  # key, used, frozen, packed record
Table = str  # one of the two that follow
SLOTS, HOURS = "drift_slots", "drift_hours"


@dataclass(frozen=True, slots=True)
class Change:
    """What one transaction writes, after it has deleted what is gone (by number or id)."""

    series: tuple[tuple[int, str], ...] = ()
    slots: tuple[tuple[int, Page], ...] = ()
    hours: tuple[tuple[int, Page], ...] = ()
    gone_series: tuple[int, ...] = ()
    gone_slots: tuple[int, ...] = ()
    gone_hours: tuple[int, ...] = ()
    buckets: tuple[tuple[int, bytes], ...] = ()
    gone_buckets: tuple[int, ...] = ()


def load(connection: sqlite3.Connection) -> Loaded:
    """Reads everything, in one transaction of the caller or not at all."""
    names = series(connection)
    known = {EVERY, *names.values()}
    slots, odd_slots = _pages(connection, SLOTS, known)
    hours, odd_hours = _pages(connection, HOURS, known)
    (named,) = connection.execute("SELECT count(*) FROM drift_series").fetchone()
    strange = named - len(names) + odd_slots + odd_hours
    return Loaded(names, slots, hours, generation(connection), strange, buckets(connection))


def buckets(connection: sqlite3.Connection) -> dict[int, bytes]:
    """The pages of engines' own buckets by slot, see :mod:`sidecar.analyst.buckets`."""
    found = connection.execute("SELECT slot, page FROM drift_buckets ORDER BY slot")
    return {slot: page for slot, page in found if 0 <= slot < _NUMBERS and isinstance(page, bytes)}


def series(connection: sqlite3.Connection) -> dict[Series, int]:
    """The id of every series; of a name that makes no sense, none."""
    rows = connection.execute("SELECT id, name FROM drift_series ORDER BY id DESC")
    named = [(series_of(text), identity) for identity, text in rows if 0 < identity < MOST_ID]
    return {one: identity for one, identity in named if one is not None}


def _pages(
    connection: sqlite3.Connection, table: Table, known: set[int]
) -> tuple[dict[int, Page], int]:
    """Its pages by number, and how many of its rows belong to none."""
    found, strange = {}, 0
    rows = connection.execute(f"SELECT key, used, frozen, record FROM {table} ORDER BY key")  # noqa: S608  # a constant
    for number, group in groupby(rows, key=lambda row: row[0] >> SHIFT):
        every = list(group)
        kept = [
            (row[0] & MOST_ID, *row[1:])
            for row in every
            if row[0] & MOST_ID in known and _well_formed(row)
        ]
        if kept and kept[0][0] == EVERY:
            found[number] = Page(kept)
            strange += len(every) - len(kept)
        else:
            strange += len(every)
    return found, strange


def _well_formed(row: tuple[object, ...]) -> bool:
    key, used, frozen, record = row
    return (
        isinstance(key, int)
        and 0 <= key >> SHIFT < _NUMBERS
        and isinstance(used, int)
        and isinstance(frozen, int)
        and 0 <= used <= MASK
        and 0 <= frozen <= MASK
        and isinstance(record, bytes)
        and len(record) <= _LARGEST
    )


def apply(connection: sqlite3.Connection, change: Change) -> None:
    """Writes a change within the transaction under way."""
    for table, gone, new in (
        (SLOTS, change.gone_slots, change.slots),
        (HOURS, change.gone_hours, change.hours),
    ):
        connection.executemany(
            f"DELETE FROM {table} WHERE key BETWEEN ? AND ?",  # noqa: S608  # a constant
            ((number << SHIFT, number << SHIFT | MOST_ID) for number in gone),
        )
        for number, page in new:
            put(connection, table, keyed(number, page.rows()))
    connection.executemany(
        "DELETE FROM drift_series WHERE id = ?", ((i,) for i in change.gone_series)
    )
    connection.executemany("INSERT OR REPLACE INTO drift_series VALUES (?, ?)", change.series)
    connection.executemany(
        "DELETE FROM drift_buckets WHERE slot = ?", ((slot,) for slot in change.gone_buckets)
    )
    connection.executemany("INSERT OR REPLACE INTO drift_buckets VALUES (?, ?)", change.buckets)


def put(connection: sqlite3.Connection, table: Table, rows: Iterable[Keyed]) -> None:
    """Writes rows, over what has their keys."""
    connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", rows)  # noqa: S608  # a constant


def every(connection: sqlite3.Connection, table: Table) -> Iterator[Keyed]:
    """Its rows in the order of their keys, without those that make no sense."""
    found = connection.execute(f"SELECT key, used, frozen, record FROM {table} ORDER BY key")  # noqa: S608  # a constant
    return (row for row in found if _well_formed(row))


def add(connection: sqlite3.Connection, table: Table, row: Keyed) -> bool:
    """Writes a row unless one with its key knows something; whether it did."""
    statement = (
        f"INSERT INTO {table} VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"  # noqa: S608  # a constant
        " used = excluded.used, frozen = excluded.frozen, record = excluded.record"
        f" WHERE {table}.used = 0"
    )
    return connection.execute(statement, row).rowcount == 1


def watch(connection: sqlite3.Connection, number: int, slots: int) -> None:
    """Notes that these slots of an hour were watched, too."""
    statement = (
        "INSERT INTO drift_hours VALUES (?, ?, 0, x'')"
        " ON CONFLICT (key) DO UPDATE SET used = used | excluded.used"
    )
    connection.execute(statement, (number << SHIFT, slots))


def name(connection: sqlite3.Connection, identity: int, one: Series) -> None:
    """Gives a series its id."""
    connection.execute("INSERT INTO drift_series VALUES (?, ?)", (identity, name_of(one)))


def empty(connection: sqlite3.Connection, hours: Iterable[int], identities: Iterable[int]) -> None:
    """Forgets the records of hours by their keys, and keeps the slots of these series out of hours
    to come. What is left says that something was there: it was not idle.
    """
    connection.executemany(
        "UPDATE drift_hours SET frozen = used | frozen, used = 0, record = x'' WHERE key = ?",
        ((key,) for key in hours),
    )
    connection.executemany(
        "UPDATE drift_slots SET frozen = 1, used = 0 WHERE key & ? = ?",
        ((MOST_ID, identity) for identity in identities),
    )


def keyed(number: int, rows: Iterable[Row]) -> Iterator[Keyed]:
    """Rows of a page with the keys that they have in the file."""
    return ((number << SHIFT | one, used, frozen, data) for one, used, frozen, data in rows)


def name_of(series: Series) -> str:
    """A series as text: JSON in ASCII, whatever its names hold."""
    return json.dumps([series.signal, series.leg, series.server])


def series_of(name: object) -> Series | None:
    """The series of such a text; None if it is none, or could not be told on as UTF-8: a lone
    surrogate, which no sidecar writes, would end the analyst whenever it reports.
    """
    with suppress(ValueError, TypeError, RecursionError):
        signal, leg, server = json.loads(name)  # type: ignore[arg-type]  # TypeError is caught
        f"{signal}{leg}{server}".encode()
        if all(isinstance(word, str) for word in (signal, leg, server)):
            return Series(signal, leg, server)
    return None


def marks(connection: sqlite3.Connection, since: float) -> tuple[Mark, ...]:
    """Every mark that ended after ``since``."""
    query = "SELECT kind, author, starts, ends, text FROM marks WHERE ends > ?"
    return codec.marks(connection.execute(query, (since,)).fetchall())


def generation(connection: sqlite3.Connection) -> int:
    """It grows whenever somebody else than the analyst changed these rows."""
    query = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?"
    found = connection.execute(query, (_GENERATION,)).fetchone()
    return int(found[0]) if found else 0


def renew(connection: sqlite3.Connection) -> None:
    """Tells the analyst to read everything anew, within the transaction under way."""
    text = str(generation(connection) + 1)
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_GENERATION, text))
