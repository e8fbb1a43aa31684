"""How the file of alarms fares, in one word and one line, whatever error it was that said so."""

from __future__ import annotations

import errno
import os
import sqlite3
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_LITTLE_BYTES = 65_536  # with less space free than this, an I/O error is taken for a full disk


class StoreState(StrEnum):
    """In every state but ``ok`` alarms go on in memory and are not remembered.

    ``disabled`` no file is configured; ``absent_folder`` there is no folder for it; ``unsafe`` it
    is a link, or others could exchange it; ``read_only`` it cannot be written; ``locked`` another
    sidecar has it; ``foreign`` it is no database of alarms; ``newer`` a later model-probe made it;
    ``full`` no space; ``corrupt`` damaged; ``io_error`` the disk refuses.
    """

    OK = "ok"
    DISABLED = "disabled"
    ABSENT_FOLDER = "absent_folder"
    UNSAFE = "unsafe"
    READ_ONLY = "read_only"
    LOCKED = "locked"
    FOREIGN = "foreign"
    NEWER = "newer"
    FULL = "full"
    CORRUPT = "corrupt"
    IO_ERROR = "io_error"


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """How the file fares. Of ``rounds`` handed over, all up to ``durable`` are in the file;
    ``busy_seconds`` is how long the write now under way has taken, 0 when there is none;
    ``lag_seconds`` how old what the file holds is, 0 when it holds all rounds.
    """

    state: StoreState
    reason: str
    rounds: int
    durable: int
    writes: int
    failures: int
    dropped_transitions: int
    dropped_levels: int
    write_seconds: float
    busy_seconds: float
    lag_seconds: float


_REMEDIES = {
    StoreState.DISABLED: "name a file to keep them",
    StoreState.ABSENT_FOLDER: "make that folder or name another",
    StoreState.UNSAFE: "use a plain file in a folder that only this user can write",
    StoreState.READ_ONLY: "make it writable for this user or name another place",
    StoreState.LOCKED: "stop the other one or give each a file of its own",
    StoreState.FOREIGN: "it is left alone; name another file",
    StoreState.NEWER: "it is left alone; run the newer version or name another file",
    StoreState.FULL: "free some space; it is tried again",
    StoreState.CORRUPT: "it is left alone; move it away and look at the disk",
    StoreState.IO_ERROR: "look at the disk; it is tried again",
}


class Unusable(Exception):  # a state rather than an error
    """The file cannot be used: ``state`` says how, ``reason`` in one line what, where and what to
    do about it.
    """

    def __init__(self, state: StoreState, what: str) -> None:
        remedy = _REMEDIES[state]
        super().__init__(f"{what}: {remedy}")
        self.state = state
        self.reason = f"{what}: {remedy}"


_CODES = {
    sqlite3.SQLITE_FULL: (StoreState.FULL, "no space is left for {path}"),
    sqlite3.SQLITE_READONLY: (StoreState.READ_ONLY, "{path} cannot be written"),
    sqlite3.SQLITE_PERM: (StoreState.READ_ONLY, "{path} cannot be written"),
    sqlite3.SQLITE_NOTADB: (StoreState.FOREIGN, "{path} is no SQLite database"),
    sqlite3.SQLITE_CORRUPT: (StoreState.CORRUPT, "{path} is damaged"),
    sqlite3.SQLITE_BUSY: (StoreState.LOCKED, "another process has been writing {path} for long"),
    sqlite3.SQLITE_LOCKED: (StoreState.LOCKED, "another process has been writing {path} for long"),
}
_NUMBERS = {
    errno.ENOSPC: StoreState.FULL,
    errno.EDQUOT: StoreState.FULL,
    errno.EROFS: StoreState.READ_ONLY,
    errno.EACCES: StoreState.READ_ONLY,
    errno.EPERM: StoreState.READ_ONLY,
    errno.ELOOP: StoreState.UNSAFE,
    errno.ENOENT: StoreState.ABSENT_FOLDER,
    errno.ENOTDIR: StoreState.ABSENT_FOLDER,
}


def from_sqlite(error: sqlite3.Error, path: Path) -> Unusable:
    """What an error of SQLite means for the file at ``path``."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _CODES:
        state, what = _CODES[code & 0xFF]
        return Unusable(state, what.format(path=path))
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return Unusable(StoreState.READ_ONLY, f"{path} cannot be opened by this user")
    if _space_left(path) < _LITTLE_BYTES:  # a full disk also shows as an I/O error or no opening
        return Unusable(StoreState.FULL, f"no space is left for {path}")
    return Unusable(StoreState.IO_ERROR, f"{path}: {error}")


def from_os(error: OSError, path: Path) -> Unusable:
    """What a system call's error means for the file at ``path``."""
    state = _NUMBERS.get(error.errno or 0, StoreState.IO_ERROR)
    return Unusable(state, f"{error.filename or path}: {error.strerror or error}")


def _space_left(path: Path) -> int:
    try:
        room = os.statvfs(path.parent)
    except OSError:
        return _LITTLE_BYTES
    return room.f_bavail * room.f_frsize
