"""A fault by the freezer of cgroup v2: all threads of a process stop, and no signal shows it.

Only a cgroup that holds nobody but the process is taken: whatever else is in it would stop too, our
guardian perhaps. Source: Documentation/admin-guide/cgroup-v2.rst of the kernel.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from chaos.processes import Process
from chaos.target import PROC, Refused
from chaos.undo import Undo
from chaos.undo.thaw import Thaw
from chaos.vocabulary import Effect, Proof


def alone_in(process: Process, proc: Path = PROC) -> Path:
    """The folder of its cgroup; raises ``Refused`` unless it is the only one there."""
    folder = _mount(proc) / _path(process, proc).lstrip("/")
    if not (folder / "cgroup.freeze").exists():  # the root cgroup has none
        raise Refused(f"pid {process.pid} is in no cgroup that can be frozen alone ({folder})")
    held: set[int] = set()
    for procs in folder.rglob("cgroup.procs"):
        with suppress(OSError):  # a cgroup that went meanwhile
            held |= set(map(int, procs.read_text().split()))
    if held != {process.pid}:
        raise Refused(
            f"pid {process.pid} shares the cgroup {folder} with {len(held) - 1} others, which "
            "would be frozen with it; take the method stop, or give it a cgroup of its own"
        )
    return folder


def _mount(proc: Path) -> Path:
    for line in (proc / "self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.startswith("cgroup2 "):
            return Path(fields.split()[4])
    raise Refused("no cgroup of version 2 is mounted here")


def _path(process: Process, proc: Path) -> str:
    try:
        lines = (proc / str(process.pid) / "cgroup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        raise Refused(f"pid {process.pid} has ended") from None
    return next((line[3:] for line in lines if line.startswith("0::")), "/")


class Frozen:
    """One process's cgroup, frozen; implements ``Injection``.

    Going astray it freezes nothing: there is no cgroup of ours to take in its stead.
    """

    def __init__(self, process: Process, astray: bool) -> None:
        self._process, self._folder, self._astray = process, alone_in(process), astray
        try:
            self.undo: Undo = Thaw.of(self._folder)
        except ValueError as error:
            raise Refused(str(error)) from None

    def inject(self) -> None:
        """Freezes it."""
        if not self._astray:
            (self._folder / "cgroup.freeze").write_text("1")

    def keep(self) -> None:
        """Nothing runs out: the guardian sees to the end."""

    def release(self) -> None:
        """The undo thaws it."""

    def effect(self) -> Effect:
        """Seen when the kernel says that the cgroup is frozen and the process in it."""
        try:
            events = dict(
                line.split() for line in (self._folder / "cgroup.events").read_text().splitlines()
            )
        except OSError:
            return Effect(Proof.ABSENT, f"the cgroup of pid {self._process.pid} is gone")
        frozen = events.get("frozen") == "1" and self._process.alive()
        text = f"the cgroup of pid {self._process.pid} is {'' if frozen else 'not '}frozen"
        return Effect(Proof.SEEN if frozen else Proof.ABSENT, text)
