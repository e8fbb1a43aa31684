"""The folder of the journal: ours alone, and no way into anything else."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


class Unsafe(Exception):
    """Somebody else could write there, or it leads elsewhere; the text says what to do."""


def make_folder(path: Path) -> int:
    """As ``open_folder``; made with mode 0700 when there is none."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
        _sync(path.parent)
    return open_folder(path)


def open_folder(path: Path) -> int:
    """A descriptor of the folder. ``Unsafe`` for a link, another's folder, or one that others can
    write to; OSError when there is none.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        raise Unsafe(f"{path} is a link or no folder; name a folder of its own") from None
    try:
        _check(os.fstat(folder), str(path))
    except Unsafe:
        os.close(folder)
        raise
    return folder


def open_file(folder: int, name: str, flags: int) -> int:
    """A file of the folder with mode 0600. ``Unsafe`` for a link or another's file."""
    try:
        file = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as error:
        if os.path.islink(f"/proc/self/fd/{folder}/{name}"):
            raise Unsafe(f"{name} in the journal's folder is a link; remove it") from error
        raise
    try:
        found = os.fstat(file)
        _check_plain(found, name)
        _check(found, name)
    except Unsafe:
        os.close(file)
        raise
    return file


def _check_plain(found: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise Unsafe(f"{name} in the journal's folder is no plain file of its own; remove it")


def _check(found: os.stat_result, name: str) -> None:
    if found.st_uid != os.geteuid():
        raise Unsafe(f"{name} belongs to user {found.st_uid}, not to {os.geteuid()}; name another")
    if found.st_mode & 0o022:
        raise Unsafe(f"{name} can be written by others; chmod go-w it, or name another")


def _sync(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
