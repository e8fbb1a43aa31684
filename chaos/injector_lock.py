"""One injector at a time, however many are started."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType

from chaos.fields import process_json, process_of
from chaos.folder import make_folder, open_file
from chaos.processes import Process

NAME = "injector.lock"


class Busy(Exception):
    """Another injector holds the lock; the text names it."""


class InjectorLock:
    """Held from ``with`` to its end, or to the end of the process and all that it forked. ``Busy``
    names the holder. ``Unsafe`` and OSError as for the journal.
    """

    def __init__(self, folder: Path, session: Process) -> None:
        self._path = folder
        self._session = session
        self._file = -1

    def __enter__(self) -> InjectorLock:
        file = _open(self._path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(_busy(self._path, file)) from None
        else:
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(process_json(self._session)).encode(), 0)
            self._file, file = file, -1
            return self
        finally:
            if file >= 0:
                os.close(file)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)
        self._file = -1


def held(path: Path) -> bool:
    """Whether some injector lives that uses this folder, wherever it is."""
    file = _open(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def _open(path: Path) -> int:
    folder = make_folder(path)
    try:
        return open_file(folder, NAME, os.O_RDWR | os.O_CREAT)
    finally:
        os.close(folder)


def _busy(path: Path, file: int) -> str:
    try:
        holder = process_of(json.loads(os.pread(file, 4_096, 0)), NAME)
    except ValueError:
        name = "another injector"  # it has only just begun, and not signed yet
    else:
        name = f"another injector, process {holder.pid},"
    return f"{name} uses {path}; wait for its end, or end it"
