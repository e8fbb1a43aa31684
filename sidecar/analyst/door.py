"""How a command gets at the file of latencies while a sidecar, and its analyst, use it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sidecar.alarms import places, schema
from sidecar.alarms.states import from_os, from_sqlite


class Nothing(Exception):  # a state rather than an error
    """There is nothing to read; the text says where and what to do."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All that is written within it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        schema.rollback(connection)


@contextmanager
def opened(path: Path, made: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection for a command, beside a sidecar that may run. With ``made`` the file is made or
    brought to this version where need be, unless a sidecar, which is an older one then, has it.
    Raises Nothing or Unusable, the latter also for sqlite3.Error within.
    """
    try:
        places.examine(path)
        if not made and not path.exists():
            raise Nothing(f"{path}: there is no such file; it is that of alarms.database")
        places.make(path)
        connection = schema.connect(path)
        try:
            if schema.recognise(connection, path) < len(schema.MIGRATIONS):
                if not made:
                    raise Nothing(
                        f"{path}: no sidecar of this version has recorded latencies there"
                    )
                _migrate(connection, path)
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise from_sqlite(error, path) from error
    except OSError as error:
        raise from_os(error, path) from error


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    lock = places.hold(path)
    try:
        schema.prepare(connection, path)
    finally:
        os.close(lock)
