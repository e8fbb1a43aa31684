"""Ending a process that was started for a fault, such as a memory balloon."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from chaos.fields import Fields, Json
from chaos.processes import Process, arguments, environ
from chaos.procfs import every, pid_namespace, stat_of
from chaos.undo.ending import end
from chaos.undo.undo import World, failed, moot, worst
from chaos.vocabulary import Healing

VARIABLE = "MODELPROBE_CHAOS_TOKEN"
OPTION = "--chaos-token="
_SHORTEST = 16  # characters; a token is made for one run and found nowhere else
_AGAIN_SECONDS = 0.05  # a process between fork and exec does not show its environment yet


@dataclass(frozen=True, slots=True)
class End:
    """It is known by its token, since it does not exist when this is written: by the variable
    ``MODELPROBE_CHAOS_TOKEN`` in its environment, which its children inherit, or the argument
    ``--chaos-token=TOKEN``. Neither we nor our ancestors are ever ended.

    ``process`` is it where whoever started it undoes it: that is waited for to its very end. Others
    cannot tell it from any that is on its way out, and wait ``patience`` seconds for those: a
    process gives up its memory, and its environment with it, before its devices (do_exit).
    """

    token: str
    grace: float = 2.0
    namespace: int = 0
    process: Process | None = field(default=None, compare=False)
    kind: ClassVar[str] = "end"

    def __post_init__(self) -> None:
        if len(self.token) < _SHORTEST or not self.token.isalnum():
            raise ValueError(f"'token' must be {_SHORTEST} letters and digits or more")

    @classmethod
    def from_fields(cls, fields: Fields) -> End:
        """From its JSON."""
        return cls(fields.text("token"), fields.number("grace"), fields.integer("namespace"))

    def fields(self) -> dict[str, Json]:
        """As JSON."""
        return {"token": self.token, "grace": self.grace, "namespace": self.namespace}

    def heal(self, world: World) -> Healing:
        """Over once no process has the token."""
        here = pid_namespace(world.proc)
        if here != self.namespace and 0 not in (here, self.namespace):
            return failed(f"what it started is of PID namespace {self.namespace}, not of ours")
        known = [end(self.process, self.grace, world)] if self.process else []
        found = list(self.owned(world))
        if not found and not known:
            world.pause(_AGAIN_SECONDS)
            found = list(self.owned(world))
        if not found and not known:
            leaving = [stat for stat in every(world.proc).values() if stat.leaving]
            world.until(lambda: not any(stat_of(one.pid, world.proc) == one for one in leaving))
            return moot("no process has its token any more")
        ending = worst([*known, *(end(process, self.grace, world) for process in found)])
        left = [process.pid for process in self.owned(world)]
        return failed(f"still there: {left}; {ending.text}") if left else ending

    def owned(self, world: World) -> Iterator[Process]:
        """The living processes that have the token."""
        stats = every(world.proc)
        ours = os.getpid()
        spared = set[int]()
        while ours in stats and ours not in spared:
            spared.add(ours)
            ours = stats[ours].parent
        for pid in stats.keys() - spared:
            try:
                named = environ(pid, world.proc).get(VARIABLE) == self.token
                if named or OPTION + self.token in arguments(pid, world.proc):
                    yield Process.from_pid(pid, world.proc)
            except (ProcessLookupError, PermissionError):
                continue  # gone, or somebody else's: what we start runs as we do
