"""Letting processes run again that were stopped with SIGSTOP."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from chaos.fields import Fields, Json, process_json, process_of
from chaos.processes import PROC, Process, send
from chaos.procfs import stopping
from chaos.undo.undo import World, failed, healed, moot, worst
from chaos.vocabulary import Healing

_STOPPED = "T"
_TRACED = "t"


@dataclass(frozen=True, slots=True)
class Resume:
    """Only processes that were running before may be listed: whoever was stopped already was
    stopped by somebody else. ``of`` leaves those out.
    """

    processes: tuple[Process, ...]
    kind: ClassVar[str] = "resume"

    @classmethod
    def of(cls, processes: Iterable[Process], proc: Path = PROC) -> Resume:
        """Those that are neither stopped nor gone now."""
        states = ((process, process.state(proc)) for process in processes)
        halted = (None, _STOPPED, _TRACED)
        return cls(tuple(process for process, state in states if state not in halted))

    @classmethod
    def from_fields(cls, fields: Fields) -> Resume:
        """From its JSON."""
        processes = fields.items("processes")
        return cls(tuple(process_of(one, f"{fields.place}: 'processes'") for one in processes))

    def fields(self) -> dict[str, Json]:
        """As JSON."""
        return {"processes": [process_json(process) for process in self.processes]}

    def heal(self, world: World) -> Healing:
        """SIGCONT to each; over once its state is seen not to be ``T``. One that runs gets it too:
        a SIGSTOP may be on its way, and is discarded by this (signal(7)).
        """
        return worst(_resumed(process, world) for process in self.processes)


def _resumed(process: Process, world: World) -> Healing:
    name = f"process {process.pid}"
    if process.elsewhere(world.proc):
        return failed(elsewhere(process))
    with process.held(world.proc) as descriptor:
        if descriptor is None:
            return moot(f"{name} has ended")
        stopped = process.state(world.proc) == _STOPPED or stopping(process.pid, world.proc)
        try:
            if not send(descriptor, signal.SIGCONT):
                return moot(f"{name} has ended")
        except PermissionError:
            return failed(f"{name} is stopped and not ours to resume; as root: kill -CONT")
        if not world.until(lambda: process.state(world.proc) != _STOPPED):
            return failed(
                f"{name} got SIGCONT and is still stopped; is its cgroup frozen, or is it traced?"
            )
    if not process.alive(world.proc):
        return moot(f"{name} has ended")
    return healed(f"{name} runs again") if stopped else moot(f"{name} was not stopped")


def elsewhere(process: Process) -> str:
    """Why a process of another PID namespace is not given up for gone."""
    return (
        f"process {process.pid} is of PID namespace {process.namespace}, which is not to be seen "
        "from here; recover from there (nsenter --pid), or write the run off if it is gone"
    )
