"""Marks: declared stretches of time, added by a command while the sidecar runs.

They reach the sidecar through the file of alarms, which needs no lock for this and no other way
in. A mark annotates; it never mutes. So that nobody forgets one, it has an author and an end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sidecar.alarms import places, schema, tables
from sidecar.alarms.states import from_os, from_sqlite
from sidecar.verdicts import Mark, MarkKind

MAXIMUM_SECONDS: Mapping[MarkKind, float] = {
    MarkKind.CHAOS: 4 * 3_600.0,
    MarkKind.DEPLOY: 4 * 3_600.0,
    MarkKind.INCIDENT: 24 * 3_600.0,
}
_AHEAD_SECONDS = 60.0
_AUTHOR = 100
_TEXT = 1_000


class MarkError(ValueError):
    """A mark that is not allowed: ``field`` is what is wrong; the text says what is allowed."""

    def __init__(self, field: str, allowed: str) -> None:
        super().__init__(f"{field}: {allowed}")
        self.field = field


def checked(
    kind: str,
    author: str,
    start: datetime,
    end: datetime,
    text: str,
    now: float,
    maximum_seconds: Mapping[MarkKind, float] = MAXIMUM_SECONDS,
) -> Mark:
    """The mark, or MarkError. Lengths are counted in real seconds, also across a change to or
    from summer time.
    """
    if kind not in {known.value for known in MarkKind}:
        raise MarkError("kind", f"one of {', '.join(MarkKind)}, not {kind!r}")
    author = _line("author", author, _AUTHOR)
    if not author:
        raise MarkError("author", "required: who declares it")
    text = _line("text", text, _TEXT)
    starts, ends = _seconds("start", start), _seconds("end", end)
    if starts > now + _AHEAD_SECONDS:
        raise MarkError("start", f"now or earlier, not {starts - now:.0f} s from now")
    if ends <= starts:
        raise MarkError("end", "later than start")
    longest = maximum_seconds[MarkKind(kind)]
    if ends - starts > longest:
        hours = (ends - starts) / 3_600
        raise MarkError("end", f"at most {longest / 3_600:g} h after start, not {hours:.4g} h")
    return Mark(MarkKind(kind), author, starts, ends, text)


def add(path: Path, mark: Mark) -> None:
    """Adds a checked mark; the sidecar sees it at its next look, within seconds. Makes the file
    where there is none. Raises Unusable when the file cannot be used, naming state and remedy.
    """
    with _opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            tables.add_mark(connection, mark)
            connection.execute("COMMIT")
        finally:
            schema.rollback(connection)


def listed(path: Path, limit: int = 100) -> tuple[Mark, ...]:
    """The latest marks, the newest first; none where there is no file. Raises Unusable."""
    if not path.exists():
        return ()
    with _opened(path) as connection:
        return tables.marks(connection, limit)


def current(path: Path, now: float) -> tuple[Mark, ...]:
    """Those of the latest that are in force at ``now``."""
    return tuple(mark for mark in listed(path, tables.MARKS) if mark.start <= now < mark.end)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for a moment. A database of an older version is used as it is: a sidecar of
    that version may be running. See :func:`places.identify` for why its header is not looked at.
    """
    try:
        places.examine(path)
        places.make(path)
        connection = schema.connect(path)
        try:
            if schema.recognise(connection, path) == 0:
                schema.prepare(connection, path)
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise from_sqlite(error, path) from error
    except OSError as error:
        raise from_os(error, path) from error


def _line(field: str, text: str, longest: int) -> str:
    text = text.strip()
    if len(text) > longest:
        raise MarkError(field, f"at most {longest} characters, not {len(text)}")
    if not text.isprintable():  # also keeps out what is no Unicode
        raise MarkError(field, "one line of printable characters")
    return text


def _seconds(field: str, time: datetime) -> float:
    if time.utcoffset() is None:
        raise MarkError(field, "a time with its zone, such as 2026-01-31T12:00:00+01:00 or Z")
    return time.timestamp()
