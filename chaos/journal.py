"""The write-ahead journal: what is to be undone is on disk before it is done.

The injector, its guardian and ``recover`` all append, each line with one write under a short lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from chaos.entries import (
    LONGEST,
    By,
    Foreign,
    Noted,
    Plan,
    Planned,
    Reading,
    Step,
    encode,
    parse,
)
from chaos.folder import make_folder, open_file, open_folder
from chaos.unended import orphans, outstanding

NAME = "journal.jsonl"
FORMER = "journal.1.jsonl"
_LOCK = "journal.lock"
_TAIL = 2 * LONGEST  # holds a whole line wherever it begins
_STEP_SECONDS = 0.002
_E = TypeVar("_E", Planned, Noted)


class Unwritable(Exception):
    """The journal cannot be kept, so nothing may be injected."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds: CLOCK_BOOTTIME runs on while the machine sleeps, and names no date."""

    boottime: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    unix: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


class Journal:
    """The journal of one folder. Every method opens it anew and closes it, so that it may be held
    across forks. A full file of ``most_bytes`` is put aside, once nothing in it is outstanding, in
    the place of the one before; beyond ``limit_bytes`` nothing more is planned.
    """

    def __init__(
        self,
        folder: Path,
        clocks: Clocks | None = None,
        most_bytes: int = 2**20,
        limit_bytes: int = 64 * 2**20,
        patience: float = 2.0,
    ) -> None:
        self.folder = folder
        self.clocks = clocks or Clocks()
        self._most_bytes = most_bytes
        self._limit_bytes = limit_bytes
        self._patience = patience

    def plan(self, plan: Plan) -> Planned:
        """On disk once this returns. ``Unwritable`` when it is not: nothing may be injected then.
        ``Unsafe`` and ``Foreign`` as for ``read``; ValueError for a run that was planned before.
        """
        with self._locked() as folder:
            content = _content(folder)
            reading = self._parsed(content)
            if any(isinstance(e, Planned) and e.run == plan.run for e in reading.entries):
                raise ValueError(f"run {plan.run} is in {self.folder / NAME} already")
            if len(content) > self._most_bytes and not _needed(reading):
                os.rename(NAME, FORMER, src_dir_fd=folder, dst_dir_fd=folder)
            elif len(content) > self._limit_bytes:
                raise Unwritable(
                    f"{self.folder / NAME} is full of runs that were never healed; heal them "
                    "(model-probe chaos recover), or move it away"
                )
            clocks = self.clocks
            return self._append(
                folder, lambda seq: Planned(seq, clocks.boottime(), clocks.unix(), plan)
            )

    def note(
        self, run: str, step: Step, by: By, text: str = "", late_seconds: float = 0.0
    ) -> Noted:
        """A later step of a run, on disk once this returns. Raises as ``plan`` does."""
        if step is Step.PLANNED:
            raise ValueError("plan() writes plans")
        clocks = self.clocks
        with self._locked() as folder:
            return self._append(
                folder,
                lambda seq: Noted(
                    seq, clocks.boottime(), clocks.unix(), run, step, by, text, late_seconds
                ),
            )

    def read(self) -> Reading:
        """All that can be read; nothing when nothing was ever written. ``Unsafe`` when others could
        have written it, ``Foreign`` when another version or program did; OSError.
        """
        try:
            folder = open_folder(self.folder)
        except FileNotFoundError:
            return Reading()
        try:
            return self._parsed(_content(folder))
        finally:
            os.close(folder)

    def _parsed(self, content: bytes) -> Reading:
        try:
            return parse(content)
        except Foreign as error:
            raise Foreign(f"{self.folder / NAME}: {error}; move it away, or name another") from None

    def _append(self, folder: int, make: Callable[[int], _E]) -> _E:
        file = open_file(folder, NAME, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            size = os.fstat(file).st_size
            tail = self._tail(file, size)
            if tail.torn:
                size -= tail.torn
                os.ftruncate(file, size)  # it was never acknowledged, so nobody acted on it
            entry = make(tail.seq + 1)
            _write(file, size, encode(entry))
            if size == 0:
                os.fsync(folder)  # its name must last too
            return entry
        finally:
            os.close(file)

    def _tail(self, file: int, size: int) -> Reading:
        start = max(0, size - _TAIL)
        content = os.pread(file, size - start, start)
        if start:
            content = content.partition(b"\n")[2]
        try:
            return self._parsed(content)
        except Foreign:
            if not start:
                raise
            return self._parsed(_whole(file))  # much damage at its end: what is before it tells

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The folder, while nobody else appends; whoever was stopped in the middle is not waited
        for longer than ``patience`` seconds.
        """
        try:
            folder = make_folder(self.folder)
            try:
                lock = open_file(folder, _LOCK, os.O_RDWR | os.O_CREAT)
                try:
                    self._lock(lock)
                    yield folder
                finally:
                    os.close(lock)
            finally:
                os.close(folder)
        except OSError as error:
            raise Unwritable(
                f"the journal in {self.folder} cannot be written: {error.strerror or error}; "
                "nothing is injected without it"
            ) from error

    def _lock(self, lock: int) -> None:
        deadline = self.clocks.monotonic() + self._patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self.clocks.monotonic() >= deadline:
                    raise OSError(
                        errno.EDEADLK, f"{_LOCK} was held for {self._patience:g} s; by a hung one?"
                    ) from None
                self.clocks.pause(_STEP_SECONDS)
            else:
                return


def _needed(reading: Reading) -> bool:
    return bool(outstanding(reading.entries) or orphans(reading.entries))


def _content(folder: int) -> bytes:
    try:
        file = open_file(folder, NAME, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return _whole(file)
    finally:
        os.close(file)


def _whole(file: int) -> bytes:
    size = os.fstat(file).st_size
    return os.pread(file, size, 0)


def _write(file: int, size: int, line: bytes) -> None:
    """One write, then to the disk; what did not get there whole is taken back."""
    try:
        short = os.write(file, line) != len(line)
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise
    if short:
        os.ftruncate(file, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
