"""Thawing a cgroup that was frozen: cgroup v2, ``cgroup.freeze``."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from chaos.fields import Fields, Json
from chaos.undo.undo import World, failed, healed, moot
from chaos.vocabulary import Healing

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Thaw:
    """``inode`` is that of the cgroup's folder: another cgroup of the same name is not ours. It
    must not have been frozen before; ``of`` refuses that.
    """

    path: Path
    inode: int
    kind: ClassVar[str] = "thaw"

    @classmethod
    def of(cls, path: Path) -> Thaw:
        """Of a cgroup that is not frozen now. ValueError when it is, OSError when there is none."""
        with _folder(path) as folder:
            if _read(folder, "cgroup.freeze").strip() != "0":
                raise ValueError(f"{path} is frozen already, by somebody else")
            return cls(path, os.fstat(folder).st_ino)

    @classmethod
    def from_fields(cls, fields: Fields) -> Thaw:
        """From its JSON."""
        return cls(Path(fields.text("path")), fields.integer("inode"))

    def fields(self) -> dict[str, Json]:
        """As JSON."""
        return {"path": str(self.path), "inode": self.inode}

    def heal(self, world: World) -> Healing:
        """Over once ``cgroup.events`` says that it is not frozen."""
        try:
            with _folder(self.path) as folder:
                return self._thawed(folder, world)
        except (FileNotFoundError, NotADirectoryError):
            return moot(f"cgroup {self.path} is gone")
        except OSError as error:
            if error.errno == errno.ENODEV:  # removed while it was open
                return moot(f"cgroup {self.path} is gone")
            raise

    def _thawed(self, folder: int, world: World) -> Healing:
        if os.fstat(folder).st_ino != self.inode:
            return moot(f"cgroup {self.path} is gone; another has its name")
        if _read(folder, "cgroup.freeze").strip() == "0" and not _frozen(folder):
            return moot(f"cgroup {self.path} was not frozen")
        freeze = os.open("cgroup.freeze", os.O_WRONLY | _FLAGS, dir_fd=folder)
        try:
            os.write(freeze, b"0")
        finally:
            os.close(freeze)
        if not world.until(lambda: not _frozen(folder)):
            return failed(f"cgroup {self.path} stays frozen; is one above it frozen?")
        return healed(f"cgroup {self.path} runs again")


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    try:
        yield folder
    finally:
        os.close(folder)


def _read(folder: int, name: str) -> str:
    file = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=folder)
    try:
        return os.read(file, 4_096).decode()
    finally:
        os.close(file)


def _frozen(folder: int) -> bool:
    return "frozen 1" in _read(folder, "cgroup.events").splitlines()
