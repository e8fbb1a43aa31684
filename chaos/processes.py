"""Processes, named so that no other can be mistaken for them, and signalled so that none ever is.

A number is used again after its process ends, so a process is its number, its start in ticks since
boot, the boot, and the PID namespace that counts it (proc(5), pid_namespaces(7)).
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.procfs import (
    ENDED,
    PROC,
    Stat,
    arguments,
    boot_id,
    environ,
    every,
    listening,
    maps_has,
    pid_namespace,
    sockets,
    stat_of,
)

__all__ = [
    "PROC",
    "Process",
    "arguments",
    "children",
    "ended",
    "environ",
    "listener",
    "maps_has",
    "send",
    "tree",
]


@dataclass(frozen=True, slots=True)
class Process:
    """One process for ever. ``namespace`` is the inode of the PID namespace that counted ``pid``,
    0 where it could not be read.
    """

    pid: int
    start_ticks: int
    boot_id: str
    namespace: int = 0

    @classmethod
    def from_pid(cls, pid: int, proc: Path = PROC) -> Process:
        """Who has that number now. ProcessLookupError when nobody does, or only a zombie."""
        stat = stat_of(pid, proc)
        if stat is None or stat.state in ENDED:
            raise ProcessLookupError(f"no process {pid} in {proc}")
        return cls(pid, stat.start_ticks, boot_id(proc), pid_namespace(proc))

    def elsewhere(self, proc: Path = PROC) -> bool:
        """Whether it is of this boot and of another PID namespace: it may live and not be seen."""
        here = pid_namespace(proc)
        known = 0 not in (here, self.namespace)
        return known and here != self.namespace and self.boot_id == boot_id(proc)

    def state(self, proc: Path = PROC) -> str | None:
        """The letter of ``/proc/PID/stat`` (``T`` stopped, ``t`` traced); None once it is gone."""
        if self.elsewhere(proc) or self.boot_id != boot_id(proc):
            return None
        stat = stat_of(self.pid, proc)
        return stat.state if stat and stat.start_ticks == self.start_ticks else None

    def alive(self, proc: Path = PROC) -> bool:
        """Whether it still is, as more than a zombie."""
        state = self.state(proc)
        return state is not None and state not in ENDED

    @contextmanager
    def held(self, proc: Path = PROC) -> Iterator[int | None]:
        """A descriptor of the very process (pidfd_open(2)), readable once it has ended; None when
        it is gone. The number is looked up first and verified after, so none that was given it
        since is ever held.
        """
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield descriptor if self.alive(proc) else None
        finally:
            os.close(descriptor)

    def signal(self, number: signal.Signals, proc: Path = PROC) -> bool:
        """Sends it a signal, never to another that has its number by now; False when it is gone.
        PermissionError when it is somebody else's.
        """
        with self.held(proc) as descriptor:
            return descriptor is not None and send(descriptor, number)


def send(descriptor: int, number: signal.Signals) -> bool:
    """Signals a held process; False when it has ended."""
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    return True


def ended(descriptor: int, seconds: float) -> bool:
    """Waits for so long at most for the end of a held process."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1_000))


def children(pid: int, proc: Path = PROC) -> list[Process]:
    """The living processes whose parent has that number, eldest first."""
    born = [stat for stat in every(proc).values() if stat.parent == pid]
    return _named(sorted(born, key=lambda stat: (stat.start_ticks, stat.pid)), proc)


def tree(pid: int, proc: Path = PROC) -> list[Process]:
    """The process of that number and all its living descendants, parents before children; empty
    when there is none.
    """
    stats = every(proc)
    found = [stats[pid]] if pid in stats else []
    eldest_first = sorted(stats.values(), key=lambda stat: (stat.start_ticks, stat.pid))
    for parent in found:  # grows while it is gone through
        found += [stat for stat in eldest_first if stat.parent == parent.pid and stat not in found]
    return _named(found, proc)


def _named(stats: list[Stat], proc: Path) -> list[Process]:
    boot, namespace = boot_id(proc), pid_namespace(proc)
    return [Process(stat.pid, stat.start_ticks, boot, namespace) for stat in stats]


def listener(port: int, proc: Path = PROC) -> int | None:
    """Who listens on a TCP port at loopback or at every address; of several that share a socket
    the eldest ancestor. None when nobody does, or nobody whose descriptors can be read.
    """
    inodes = listening(port, proc)
    stats = every(proc) if inodes else {}
    holders = {pid for pid in stats if inodes & sockets(pid, proc)}
    eldest = [stats[pid] for pid in holders if not holders & _ancestors(pid, stats)]
    return min(eldest, key=lambda stat: (stat.start_ticks, stat.pid)).pid if eldest else None


def _ancestors(pid: int, stats: dict[int, Stat]) -> set[int]:
    found = set[int]()
    while pid in stats and stats[pid].parent not in found:
        pid = stats[pid].parent
        found.add(pid)
    return found
