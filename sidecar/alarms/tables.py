"""What is read from and written to the tables of the file, and how much of it they keep."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sidecar.alarms import codec
from sidecar.alarms.standing import Key, Standing, Transition
from sidecar.verdicts import Mark, MarkKind

LEVELS = 1_000  # of which the longest not renewed gives way
HISTORY = {"pending": 2_000, "firing": 4_000, "resolved": 4_000}  # transitions kept
MARKS = 10_000
_MARKS_IN_FORCE = 100

_MARK = "kind, author, starts, ends, text"


@dataclass(frozen=True, slots=True)
class Change:
    """What one transaction writes: all of it or nothing."""

    standings: tuple[Standing, ...] = ()
    gone: tuple[Key, ...] = ()
    transitions: tuple[Transition, ...] = ()
    levels: tuple[tuple[str, str], ...] = ()


def apply(connection: sqlite3.Connection, change: Change, now: float) -> None:
    """Writes a change within the transaction under way and drops what is too old to keep."""
    connection.executemany(
        "DELETE FROM alarms WHERE key = ?", ((codec.key_text(key),) for key in change.gone)
    )
    connection.executemany(
        "INSERT OR REPLACE INTO alarms VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        map(codec.to_row, change.standings),
    )
    connection.executemany(
        "INSERT INTO transitions (at, key, before, after, firings, alarm)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        map(_row, change.transitions),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO levels VALUES (?, ?, ?)",
        ((key, payload, now) for key, payload in change.levels),
    )
    touch(connection, "written", now)  # also alone: a try after a full disk has to write something
    if change.transitions:
        _prune_history(connection)
    if change.levels:
        connection.execute(
            "DELETE FROM levels WHERE key IN"
            " (SELECT key FROM levels ORDER BY updated DESC LIMIT -1 OFFSET ?)",
            (LEVELS,),
        )


def touch(connection: sqlite3.Connection, key: str, now: float) -> None:
    """Notes when something was last done."""
    note(connection, key, str(now))


def note(connection: sqlite3.Connection, key: str, text: str) -> None:
    """Keeps a text by key, instead of what was kept by it before."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, text))


def noted(connection: sqlite3.Connection, key: str) -> str:
    """What is kept by a key; empty if nothing is."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(found[0]) if found else ""


def standings(connection: sqlite3.Connection) -> tuple[tuple[Standing, ...], int]:
    """The alarms kept, and how many rows made no sense and are left out."""
    rows = connection.execute("SELECT * FROM alarms ORDER BY key").fetchall()
    found = [codec.from_row(row) for row in rows]
    kept = tuple(standing for standing in found if standing is not None)
    return kept, len(rows) - len(kept)


def levels(connection: sqlite3.Connection) -> dict[str, str]:
    """Every detector's level, JSON by key."""
    return dict(connection.execute("SELECT key, payload FROM levels"))


def history(connection: sqlite3.Connection, limit: int) -> tuple[Transition, ...]:
    """The latest transitions, the newest first."""
    query = "SELECT at, before, firings, alarm FROM transitions ORDER BY id DESC LIMIT ?"
    found = (codec.to_transition(*row) for row in connection.execute(query, (limit,)))
    return tuple(transition for transition in found if transition is not None)


def add_mark(connection: sqlite3.Connection, mark: Mark) -> None:
    """Adds a mark within the transaction under way."""
    connection.execute(
        f"INSERT INTO marks ({_MARK}) VALUES (?, ?, ?, ?, ?)",  # noqa: S608  # a constant
        (mark.kind.value, mark.author, mark.start, mark.end, mark.text),
    )
    connection.execute("DELETE FROM marks WHERE id <= (SELECT max(id) FROM marks) - ?", (MARKS,))


def marks(connection: sqlite3.Connection, limit: int) -> tuple[Mark, ...]:
    """The latest marks, the newest first."""
    query = f"SELECT {_MARK} FROM marks ORDER BY id DESC LIMIT ?"  # noqa: S608  # a constant
    return codec.marks(connection.execute(query, (limit,)).fetchall())


def marks_in_force(connection: sqlite3.Connection, now: float) -> tuple[Mark, ...]:
    """The marks in force at ``now``, the newest first, as many as anybody reads."""
    query = (
        f"SELECT {_MARK} FROM marks WHERE ends > ? AND starts <= ?"  # noqa: S608  # a constant
        " ORDER BY id DESC LIMIT ?"
    )
    return codec.marks(connection.execute(query, (now, now, _MARKS_IN_FORCE)).fetchall())


def last_deploy(connection: sqlite3.Connection, now: float) -> tuple[Mark, ...]:
    """The deploy that ended last by ``now``, if there is one: nobody may have run at its end."""
    query = (
        f"SELECT {_MARK} FROM marks WHERE kind = ? AND ends <= ?"  # noqa: S608  # a constant
        " ORDER BY ends DESC LIMIT 1"
    )
    return codec.marks(connection.execute(query, (MarkKind.DEPLOY.value, now)).fetchall())


def _prune_history(connection: sqlite3.Connection) -> None:
    """Each state has a share of its own, so that noise does not push out what fired."""
    connection.executemany(
        "DELETE FROM transitions WHERE after = ? AND id <= (SELECT id FROM transitions"
        " WHERE after = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        ((state, state, kept) for state, kept in HISTORY.items()),
    )


def _row(transition: Transition) -> tuple[float, str, str, str, int, str]:
    alarm = transition.alarm
    return (
        transition.at,
        codec.key_text(alarm.key),
        transition.before.value,
        alarm.state.value,
        transition.firings,
        codec.transition_text(transition),
    )
