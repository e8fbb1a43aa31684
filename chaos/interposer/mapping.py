"""Opens the page's file as one opens what somebody else can write to: nothing odd is mapped."""

from __future__ import annotations

import mmap
import os
import stat
from contextlib import suppress
from pathlib import Path

from chaos.interposer.layout import MAGIC, SIZE, VERSION, Layout
from chaos.interposer.rules import Refused


class Mapping:
    """The file and its bytes, shared with the target; ``area`` is their structure."""

    def __init__(self, path: Path, uid: int | None = None) -> None:
        """Raises `Refused`; FileNotFoundError when there is none: no process of the target yet."""
        self.path = path
        # Without O_NONBLOCK the opening of a pipe could wait for ever.
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            self._file = os.open(path, flags)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Refused(
                f"cannot be opened ({error.strerror})",
                f"page {path}",
                "remove what is there and restart the target: it must be a plain file",
            ) from error
        try:
            self._check(uid)
            self._bytes = mmap.mmap(self._file, SIZE)
        except BaseException:
            os.close(self._file)
            raise
        self.area: Layout = Layout.from_buffer(self._bytes)
        if (self.area.magic, self.area.version, self.area.size) != (MAGIC, VERSION, SIZE):
            self.close()
            raise self._refused(f"is no page of version {VERSION}")

    def _refused(self, what: str) -> Refused:
        return Refused(what, f"page {self.path}", "remove it and restart the target")

    def _check(self, uid: int | None) -> None:
        """Root takes the pages of the target's user too, when told who that is."""
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            raise self._refused("is no regular file")
        if stat.S_IMODE(found.st_mode) != 0o600:
            raise self._refused(f"has mode {stat.S_IMODE(found.st_mode):04o}, not 0600")
        owners = {0, os.geteuid()} | ({uid} if uid is not None and os.geteuid() == 0 else set())
        if found.st_uid not in owners:
            raise self._refused(f"belongs to user {found.st_uid}")
        self.unshrunk()

    def unshrunk(self) -> None:
        """Raises `Refused` when the file has shrunk: the kernel kills who reads what is gone."""
        size = os.fstat(self._file).st_size
        if size != SIZE:
            raise self._refused(f"has {size} bytes, not {SIZE}")

    def descriptor(self) -> int:
        """Of the open file, for locks."""
        return self._file

    def close(self) -> None:
        """Idempotent."""
        if self._file >= 0:
            del self.area
            file, self._file = self._file, -1
            os.close(file)
            with suppress(BufferError):  # a traceback has it yet: the bytes go when that does
                self._bytes.close()
