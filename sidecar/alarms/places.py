"""Whether a file may be trusted with alarms: its folder, its owner, what it already is, and the
lock that keeps a second sidecar out.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sidecar.alarms.states import StoreState, Unusable

_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID = slice(68, 72)  # www.sqlite.org/fileformat.html, big-endian
_HEADER_BYTES = 100
LOCK, ANALYST_LOCK = ".lock", ".analyst.lock"  # of the sidecar, and of its analyst
_SUFFIXES = ("", "-wal", "-shm", "-journal", LOCK, ANALYST_LOCK)
_SET_ASIDE = 3  # damaged files kept; with more than these the disk is the matter


def sibling(path: Path, suffix: str) -> Path:
    """The file beside ``path`` that SQLite or we give that suffix."""
    return path.with_name(path.name + suffix)


def examine(path: Path) -> None:
    """Raises Unusable where the folder is missing or others could exchange the file. Whoever may
    write the folder could, so it must not be everybody's unless its sticky bit is set.
    """
    try:
        folder = path.parent.stat()
    except (FileNotFoundError, NotADirectoryError):
        folder = None
    if folder is None or not stat.S_ISDIR(folder.st_mode):
        raise Unusable(StoreState.ABSENT_FOLDER, f"{path.parent} is no folder")
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        raise Unusable(StoreState.UNSAFE, f"everybody may exchange files in {path.parent}")
    for suffix in _SUFFIXES:
        _examine_file(sibling(path, suffix))


def _examine_file(path: Path) -> None:
    try:
        file = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(file.st_mode):
        raise Unusable(StoreState.UNSAFE, f"{path} is a symbolic link")
    if not stat.S_ISREG(file.st_mode):
        raise Unusable(StoreState.UNSAFE, f"{path} is no plain file")
    if file.st_nlink > 1:
        raise Unusable(StoreState.UNSAFE, f"{path} has a second name (hard link)")
    if os.geteuid() not in (0, file.st_uid):
        raise Unusable(StoreState.UNSAFE, f"{path} belongs to another user")


def make(path: Path) -> None:
    """An empty file of mode 0600, where there is none."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):
        os.close(os.open(path, flags, 0o600))


def close_to_others(path: Path) -> None:
    """Takes everybody else's access to a file of ours away."""
    if stat.S_IMODE(path.lstat().st_mode) & 0o077:
        path.chmod(0o600)


def hold(path: Path, suffix: str = LOCK) -> int:
    """Locks the file for this sidecar, or another part of it for its analyst, until the descriptor
    returned is closed or the process ends, however it ends. Commands that only add do not need it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(sibling(path, suffix), flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 20).decode("ascii", "replace").strip()
        os.close(lock)
        raise Unusable(
            StoreState.LOCKED, f"another sidecar (process {holder or 'unknown'}) has {path}"
        ) from None
    except OSError:
        os.close(lock)
        raise
    with suppress(OSError):  # the number is for people; a full disk must not forbid the lock
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def identify(path: Path, application_id: int) -> None:
    """Raises Unusable for a file that is neither empty nor a database of ours, from its header.

    Only while this process has no connection to it: closing any descriptor of a file takes all of
    the process's POSIX locks on it away, SQLite's too (www.sqlite.org/howtocorrupt.html, 2.2).
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        header = os.read(descriptor, _HEADER_BYTES)
    finally:
        os.close(descriptor)
    if not header:
        return
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise Unusable(StoreState.FOREIGN, f"{path} is no SQLite database")
    if int.from_bytes(header[_APPLICATION_ID], "big") != application_id:
        raise Unusable(StoreState.FOREIGN, f"{path} is a database of another application")


def set_aside(path: Path, now: float) -> Path:
    """Renames a damaged file of ours, with its journals, to ``NAME.corrupt-<date>``; raises
    Unusable when that has been done too often to be an accident.
    """
    earlier = [name for name in os.listdir(path.parent) if name.startswith(f"{path.name}.corrupt-")]
    if sum(not name.endswith(("-wal", "-shm", "-journal")) for name in earlier) >= _SET_ASIDE:
        what = f"{path} is damaged again, {_SET_ASIDE} times so far"
        raise Unusable(StoreState.CORRUPT, what)
    day = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S")
    target = sibling(path, f".corrupt-{day}")
    number = 1
    while target.exists():
        number += 1
        target = sibling(path, f".corrupt-{day}.{number}")
    for suffix in ("-wal", "-shm", "-journal", ""):  # one left behind would be played in
        with suppress(FileNotFoundError):
            sibling(path, suffix).rename(sibling(target, suffix))
    return target
