"""The file of alarms as the analyst has it: a connection of its own, and how it fares.

The sidecar holds the same file. It makes it, migrates it, and sets a damaged one aside; the analyst
does so only where no sidecar runs. Whatever is wrong, what is remembered goes on in memory.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sidecar.alarms import places, schema, tables
from sidecar.alarms.states import StoreState, Unusable, from_os, from_sqlite
from sidecar.analyst import rows
from sidecar.analyst.door import transaction
from sidecar.analyst.stored import Loaded
from sidecar.verdicts import Mark

_MARKS_SECONDS = 15 * 86_400.0  # how far back marks matter, at the most days that can be set


class Renewed(Exception):  # a state rather than an error
    """Somebody else changed the rows: they have to be read anew before anything is written."""


class File:
    """One analyst at a time has it; one thread at a time may call it. ``reason`` is one line of
    what is wrong, where and what to do; with OK, of what was lost on the way. ``marks`` are those
    of the last days when the file was last looked at.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        busy_seconds: float = schema.BUSY_SECONDS,
    ) -> None:
        self.path: Path | None = None
        self.state = StoreState.DISABLED
        self.reason = ""
        self.marks: tuple[Mark, ...] = ()
        self._wall = wall
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None
        self._lock: int | None = None
        self._inode = 0
        self._generation = 0

    def open(self, path: Path | None) -> Loaded | None:
        """Opens or makes the file; what it holds, also where it cannot be written, and None where
        it cannot be read. May be called again at any time.
        """
        self.close()
        self.path, self.reason = path, ""
        found = None
        with self._failing():
            if path is None:
                raise Unusable(StoreState.DISABLED, "no file for alarms is configured")
            self._take(path)
            connection = self._sound(path)
            self._inode = path.lstat().st_ino
            found = rows.load(connection)
            self._generation = found.generation
            self.marks = self._read_marks(connection)
            # Writes something: a file that can only be read is to be known now.
            tables.touch(connection, "drift_opened", self._wall())
            self.state = StoreState.OK
            if found.strange:
                self.reason = f"{found.strange} rows in {path} made no sense and are left out"
        return found

    def close(self) -> None:
        """Lets go of the file and its lock."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def usable(self) -> bool:
        """Whether the file is open and its name still leads to it."""
        if self._connection is None or self.path is None:
            return False
        try:
            return self.path.lstat().st_ino == self._inode
        except OSError:
            return False

    def look(self) -> bool:
        """Reads the marks; False when all has to be read anew, as somebody changed rows, or the
        file has to be opened again.
        """
        connection = self._connection
        if connection is None or not self.usable():
            return False
        with self._failing():
            self.marks = self._read_marks(connection)
            return rows.generation(connection) == self._generation
        return False

    def write(self, change: rows.Change) -> StoreState:
        """Writes one change in one transaction, all of it or nothing. FULL and LOCKED keep the file
        open, to be tried again; any other failure closes it. Raises Renewed.
        """
        connection = self._connection
        if connection is None:
            return self.state
        with self._failing():
            with transaction(connection):
                if rows.generation(connection) != self._generation:
                    raise Renewed
                rows.apply(connection, change)
                tables.touch(connection, "drift_written", self._wall())
            if self.state is not StoreState.OK:
                self.state, self.reason = StoreState.OK, ""
        return self.state

    def note(self, key: str, text: str) -> None:
        """Keeps a text by key; where the file is not open it is only not kept."""
        if self._connection is not None:
            with self._failing():
                tables.note(self._connection, key, text)

    def noted(self, key: str) -> str:
        """What is kept by a key; empty if nothing is, or it cannot be read."""
        if self._connection is not None:
            with self._failing():
                return tables.noted(self._connection, key)
        return ""

    def _take(self, path: Path) -> None:
        places.examine(path)
        if not places.sibling(path, places.ANALYST_LOCK).exists():  # then it may not be ours
            places.identify(path, schema.APPLICATION_ID)
        self._lock = places.hold(path, places.ANALYST_LOCK)
        places.identify(path, schema.APPLICATION_ID)
        places.make(path)
        places.close_to_others(path)

    def _sound(self, path: Path) -> sqlite3.Connection:
        """A connection to a file without damage: where it has some and no sidecar runs, to a new
        one.
        """
        try:
            return self._connected(path)
        except Unusable as error:
            if error.state is not StoreState.CORRUPT:
                raise
            try:
                lock = places.hold(path)
            except Unusable:
                raise error from None  # the sidecar will set it aside
        try:
            kept = places.set_aside(path, self._wall())
            places.make(path)
            self.reason = f"{path} was damaged; it is kept as {kept.name}, baselines began anew"
            return self._connected(path)
        finally:
            os.close(lock)

    def _connected(self, path: Path) -> sqlite3.Connection:
        if self._connection is not None:
            self._connection.close()
        try:
            self._connection = connection = schema.connect(path, self._busy_seconds)
            schema.recognise(connection, path)
            schema.check(connection, path)
            schema.prepare(connection, path)
        except sqlite3.Error as error:
            raise from_sqlite(error, path) from error
        return connection

    def _read_marks(self, connection: sqlite3.Connection) -> tuple[Mark, ...]:
        return rows.marks(connection, self._wall() - _MARKS_SECONDS)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turns what goes wrong into a state, and closes the file unless it may go by itself."""
        path = self.path or Path()
        try:
            yield
        except Unusable as error:
            self._say(error)
        except sqlite3.Error as error:
            self._say(from_sqlite(error, path))
        except OSError as error:
            self._say(from_os(error, path))

    def _say(self, error: Unusable) -> None:
        self.state, self.reason = error.state, error.reason
        if error.state not in (StoreState.FULL, StoreState.LOCKED):
            self.close()
