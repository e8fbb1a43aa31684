"""The database of alarms: its connection, its tables and how an older one becomes a newer.

SQLite in WAL mode, so that a command can add a mark while the sidecar writes. Values reach it as
parameters only; every word from outside is JSON in ASCII, which any text survives.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

from sidecar.alarms.states import StoreState, Unusable

APPLICATION_ID = 0x4D50_414C  # "MPAL"
BUSY_SECONDS = 5.0
_WAL_BYTES = 4_194_304  # what is left of the journal after a checkpoint
_ATTEMPTS = 50  # at the journal mode, whose lock SQLite's own time limit does not cover

# One entry a version; never changed once released, only added to.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE alarms (key TEXT PRIMARY KEY, state TEXT NOT NULL, severity TEXT NOT NULL,"
        " since REAL NOT NULL, held_seconds REAL NOT NULL, passed_seconds REAL NOT NULL,"
        " fired REAL, resolved REAL, firings INTEGER NOT NULL, details TEXT NOT NULL)",
        "CREATE TABLE transitions (id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL,"
        " key TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,"
        " firings INTEGER NOT NULL, alarm TEXT NOT NULL)",
        "CREATE INDEX transitions_after ON transitions (after)",
        "CREATE TABLE marks (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,"
        " author TEXT NOT NULL, starts REAL NOT NULL, ends REAL NOT NULL, text TEXT NOT NULL)",
        "CREATE INDEX marks_ends ON marks (ends)",
        "CREATE TABLE levels (key TEXT PRIMARY KEY, payload TEXT NOT NULL, updated REAL NOT NULL)",
    ),
    # Latencies of every series; what the keys are is said in sidecar/analyst/rows.py.
    (
        "CREATE TABLE drift_series (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
        "CREATE TABLE drift_slots (key INTEGER PRIMARY KEY, used INTEGER NOT NULL,"
        " frozen INTEGER NOT NULL, record BLOB NOT NULL)",
        "CREATE TABLE drift_hours (key INTEGER PRIMARY KEY, used INTEGER NOT NULL,"
        " frozen INTEGER NOT NULL, record BLOB NOT NULL)",
        "CREATE TABLE drift_buckets (slot INTEGER PRIMARY KEY, page BLOB NOT NULL)",
    ),
)
# Which tables each version added.
_TABLES = (
    frozenset({"meta", "alarms", "transitions", "marks", "levels"}),
    frozenset({"drift_series", "drift_slots", "drift_hours", "drift_buckets"}),
)


def connect(path: Path, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Opens the existing file at ``path``; transactions are begun by hand. Makes no file."""
    connection = sqlite3.connect(
        f"file:{quote(bytes(path))}?mode=rw",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,  # opened by one thread, then handed to the writer's
    )
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def recognise(connection: sqlite3.Connection, path: Path, latest: int = len(MIGRATIONS)) -> int:
    """The version of a database of ours, 0 for an empty one; Unusable for any other."""
    application, version = (
        _number(connection, "application_id"),
        _number(connection, "user_version"),
    )
    tables = {
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    }
    if application == 0 and version == 0 and not tables:
        return 0
    if application != APPLICATION_ID:
        raise Unusable(StoreState.FOREIGN, f"{path} is a database of another application")
    if version > latest:
        raise Unusable(StoreState.NEWER, f"{path} is of version {version}, this one knows {latest}")
    if version < 1 or not tables >= frozenset().union(*_TABLES[:version]):
        raise Unusable(StoreState.CORRUPT, f"{path} lacks tables")
    return version


def prepare(
    connection: sqlite3.Connection,
    path: Path,
    migrations: tuple[tuple[str, ...], ...] = MIGRATIONS,
) -> None:
    """Brings the database to the latest version, all steps or none, and into WAL mode. Its first
    version is written without WAL, so that the file's header says whose it is from then on.
    """
    latest = len(migrations)
    if recognise(connection, path, latest) < latest:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = recognise(connection, path, latest)  # another process may have been faster
            for step in migrations[version:]:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {latest}")
            connection.execute("COMMIT")
        except BaseException:
            rollback(connection)
            raise
    _use_wal(connection)


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Raises Unusable when SQLite finds the database damaged."""
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise Unusable(StoreState.CORRUPT, f"{path} is damaged")


def rollback(connection: sqlite3.Connection) -> None:
    """Ends a transaction that failed, unless SQLite has done so itself."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _use_wal(connection: sqlite3.Connection) -> None:
    """Where the file system cannot share memory, SQLite stays with its other journal: slower, and
    a command may wait for the sidecar, but as safe.
    """
    for attempt in range(_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.02)
        else:
            return
