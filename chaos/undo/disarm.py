"""Disarming the interposer of a target through its page."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from chaos.fields import Fields, Json
from chaos.undo.undo import World, failed, healed, moot
from chaos.vocabulary import Healing

_OWNER = "chaos.interposer.page"


@dataclass(frozen=True, slots=True)
class Disarm:
    """The page outlives its target's restarts, so this is keyed on its path."""

    path: Path
    kind: ClassVar[str] = "disarm"

    @classmethod
    def from_fields(cls, fields: Fields) -> Disarm:
        """From its JSON."""
        return cls(Path(fields.text("path")))

    def fields(self) -> dict[str, Json]:
        """As JSON."""
        return {"path": str(self.path)}

    def heal(self, world: World) -> Healing:
        """Over once the page itself says that it is not armed."""
        try:
            kind = os.lstat(self.path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return moot(f"page {self.path} is gone, and with it what it armed")
        if not stat.S_ISREG(kind):
            return failed(f"page {self.path} is no regular file; it is left alone")
        try:
            disarm = world.disarm or import_module(_OWNER).disarm
        except (ImportError, AttributeError) as error:
            return failed(f"page {self.path} cannot be disarmed here: {error}")
        if not disarm(self.path):  # it tells whether anything was armed until then
            return moot(f"page {self.path} was not armed")
        if disarm(self.path):
            return failed(f"page {self.path} is armed again: somebody else breaks the same target")
        return healed(f"page {self.path} is disarmed")
