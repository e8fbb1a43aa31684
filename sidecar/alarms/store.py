"""The one file that alarms, their history, marks and baselines are kept in, and its states.

Whatever is wrong with the file, the store says it and the sidecar goes on in memory. A file that
is not ours, or of a later version, is left alone; a damaged one of ours is renamed, never deleted.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sidecar.alarms import places, schema, tables
from sidecar.alarms.standing import Standing
from sidecar.alarms.states import StoreState, Unusable, from_os, from_sqlite
from sidecar.verdicts import Mark


class Store:
    """The file, held by one sidecar at a time. One thread at a time may call it.

    When ``read`` is true after ``open``, ``restored`` and ``levels`` are what the file held, also
    where the file cannot be written. ``reason`` is empty when all is well; with OK it tells what
    was lost on the way there.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        busy_seconds: float = schema.BUSY_SECONDS,
    ) -> None:
        self.path: Path | None = None
        self.state = StoreState.DISABLED
        self.reason = ""
        self.read = False
        self.restored: tuple[Standing, ...] = ()
        self.levels: Mapping[str, str] = {}
        self._wall = wall
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None
        self._lock: int | None = None
        self._inode = 0

    def open(self, path: Path | None) -> StoreState:
        """Opens or makes the file and reads what it holds. May be called again at any time."""
        self.close()
        self.path, self.reason = path, ""
        self.read, self.restored, self.levels = False, (), {}
        if path is None:
            self._say(Unusable(StoreState.DISABLED, "no file for alarms is configured"))
            return self.state
        try:
            places.examine(path)
            self._take(path)
            self._read_or_replace(path)
        except Unusable as error:
            self._say(error)
        except OSError as error:
            self._say(from_os(error, path))
        else:
            self.state = StoreState.OK
            return self.state
        self.close()
        return self.state

    def close(self) -> None:
        """Lets go of the file and its lock."""
        self._disconnect()
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

    def write(self, change: tables.Change) -> StoreState:
        """Writes one change in one transaction. FULL and LOCKED keep the file open, to be tried
        again; any other failure closes it, and it takes ``open`` to go on.
        """
        connection, path = self._connection, self.path
        if connection is None or path is None:
            return self.state
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                tables.apply(connection, change, self._wall())
                connection.execute("COMMIT")
            finally:
                schema.rollback(connection)
        except sqlite3.Error as error:
            self._fail(from_sqlite(error, path))
        else:
            if self.state is not StoreState.OK:
                self.state, self.reason = StoreState.OK, ""
        return self.state

    def marks(self, now: float) -> tuple[Mark, ...]:
        """The marks in force at ``now``, the newest first, and after them the deploy that ended
        last; none when the file is not usable.
        """
        connection, path = self._connection, self.path
        if connection is None or path is None:
            return ()
        try:
            return (*tables.marks_in_force(connection, now), *tables.last_deploy(connection, now))
        except sqlite3.Error as error:
            self._fail(from_sqlite(error, path))
            return ()

    def _take(self, path: Path) -> None:
        if not places.sibling(path, ".lock").exists():  # then it was never ours: leave no lock
            places.identify(path, schema.APPLICATION_ID)
        self._lock = places.hold(path)
        places.identify(path, schema.APPLICATION_ID)
        places.make(path)
        places.close_to_others(path)

    def _read_or_replace(self, path: Path) -> None:
        try:
            self._read(path)
        except Unusable as error:
            if error.state is not StoreState.CORRUPT:
                raise
            self._disconnect()
            kept = places.set_aside(path, self._wall())
            places.make(path)
            self._read(path)
            self.reason = f"{path} was damaged; it is kept as {kept.name}, alarms began anew"

    def _read(self, path: Path) -> None:
        try:
            connection = self._connection = schema.connect(path, self._busy_seconds)
            schema.recognise(connection, path)
            schema.check(connection, path)
            schema.prepare(connection, path)
            self.restored, lost = tables.standings(connection)
            self.levels = tables.levels(connection)
            self.read = True
            # Writes something: a file that can only be read is to be known now, not at an alarm.
            tables.touch(connection, "opened", self._wall())
        except sqlite3.Error as error:
            raise from_sqlite(error, path) from error
        self._inode = path.lstat().st_ino
        if lost:
            self.reason = f"{lost} alarms in {path} made no sense and are left out"

    def _fail(self, error: Unusable) -> None:
        self._say(error)
        if error.state not in (StoreState.FULL, StoreState.LOCKED):
            self.close()

    def _say(self, error: Unusable) -> None:
        self.state, self.reason = error.state, error.reason

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
