"""Ending the target's process, so that whoever looks after it starts a new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.fields import Fields, Json, process_json
from chaos.processes import Process
from chaos.undo.ending import end
from chaos.undo.resume import elsewhere
from chaos.undo.undo import World, failed
from chaos.vocabulary import Ending, Healing


@dataclass(frozen=True, slots=True)
class Restart:
    """For a process that cannot be well again. It is ended even if the fault never took hold: who
    died between the two cannot be asked. A process that was started since is never touched.
    """

    process: Process
    grace: float = 5.0
    kind: ClassVar[str] = "restart"

    @classmethod
    def from_fields(cls, fields: Fields) -> Restart:
        """From its JSON."""
        return cls(fields.process("process"), fields.number("grace"))

    def fields(self) -> dict[str, Json]:
        """As JSON."""
        return {"process": process_json(self.process), "grace": self.grace}

    def heal(self, world: World) -> Healing:
        """Over once the old process is gone; whether a new one serves is for the run to judge."""
        if self.process.elsewhere(world.proc):
            return failed(elsewhere(self.process))
        ending = end(self.process, self.grace, world)
        if ending.ending is Ending.HEALED:
            return Healing(ending.ending, f"{ending.text}; its supervisor starts a new one")
        return ending
