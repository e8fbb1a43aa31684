"""Which processes are watched: those that listen on a port, match a command line, belong to a
control group, or have a pid.

A scan reads /proc, which on a node with thousands of processes costs tens of milliseconds, so
:class:`Rescan` bounds its share of a CPU. A process is named by pid and start time: pids are used
again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from sidecar.probed.namespaces import Network
from sidecar.signals import Absence

MAX_SELECTORS = 12
MAX_TARGETS = 64
VALUE_BYTES = 62  # of a selector in its frame
_LISTEN = "0A"  # TCP_LISTEN, include/net/tcp_states.h
_MAX_DESCRIPTORS = 65_536  # looked at a process


class By(IntEnum):
    """What a selector goes by."""

    PORT = 1  # the processes that hold a socket listening on it
    COMMAND = 2  # a part of the command line
    CGROUP = 3  # a part of the control group's path: a pod's uid, a container's id
    PID = 4


@dataclass(frozen=True, slots=True)
class Selector:
    """Chooses processes; ``value`` is a number in decimal, or text of at most VALUE_BYTES."""

    by: By
    value: str

    def __str__(self) -> str:
        return f"{self.by.name.lower()} {self.value}"


@dataclass(frozen=True, slots=True)
class Target:
    """A chosen process. ``pid`` is as we see it, ``ns_pid`` as it sees itself (the innermost of
    NSpid in proc(5)); ``start`` is field 22 of its stat, clock ticks since boot.
    """

    pid: int
    start: int
    ns_pid: int
    command: str  # its comm, at most 15 bytes
    selector: Selector

    @property
    def identity(self) -> tuple[int, int]:
        """What names this process and no later one of its pid."""
        return self.pid, self.start

    @property
    def label(self) -> str:
        """For people and labels."""
        return f"{self.command} ({self.selector})"


@dataclass(frozen=True, slots=True)
class Missing:
    """A selector that chose nothing, and why."""

    selector: Selector
    absence: Absence
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a scan found; ``left_out`` counts matches beyond MAX_TARGETS."""

    targets: tuple[Target, ...] = ()
    missing: tuple[Missing, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    start: int
    command: str
    folder: Path


def scan(
    selectors: Iterable[Selector],
    network: Network,
    proc: Path = Path("/proc"),
    without: frozenset[int] = frozenset(),
) -> Found:
    """Looks at every process once. ``network`` is the namespace whose ports are meant; where it is
    not ours, only its processes are chosen. Those of ``without`` never are.
    """
    wanted = tuple(dict.fromkeys(selectors))
    if not wanted:
        return Found()
    ports = {int(s.value) for s in wanted if s.by is By.PORT}
    sockets = _listening(proc / network.table / "net", ports)
    chosen: dict[tuple[int, int], Target] = {}
    met: set[Selector] = set()
    hidden = 0
    for process in _processes(proc):
        if process.pid in without or not _lives_in(network, process):
            continue
        found, seen = _match(process, wanted, sockets)
        hidden += not seen
        met.update(found)
        if found:
            target = _target(process, found[0])
            chosen[target.identity] = target
    kept = sorted(chosen.values(), key=lambda target: target.identity)
    missing = (_missing(s, sockets, hidden) for s in wanted if s not in met)
    return Found(tuple(kept[:MAX_TARGETS]), tuple(missing), max(0, len(kept) - MAX_TARGETS))


def _listening(net: Path, ports: set[int]) -> dict[str, int]:
    """Inode of each listening socket on one of these ports."""
    found: dict[str, int] = {}
    for name in ("tcp", "tcp6"):
        for line in _lines(net / name)[1:]:
            fields = line.split()
            if len(fields) < 10 or fields[3] != _LISTEN:
                break  # listeners come first
            port = int(fields[1].rpartition(":")[2], 16)
            if port in ports:
                found[fields[9]] = port
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _processes(proc: Path) -> Iterator[_Process]:
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        try:
            stat = (proc / name / "stat").read_text(errors="replace")
        except OSError:
            continue  # it has ended
        # The command, field 2, may hold spaces and parentheses: look behind the last one.
        head, _, rest = stat.rpartition(")")
        fields = rest.split()
        if len(fields) > 19 and fields[0] not in "ZX":
            yield _Process(int(name), int(fields[19]), head.partition("(")[2], proc / name)


def _lives_in(network: Network, process: _Process) -> bool:
    if network.pid is None:
        return True
    try:
        return (process.folder / "ns" / "net").stat().st_ino == network.inode
    except OSError:
        return False


def _match(
    process: _Process, wanted: tuple[Selector, ...], sockets: dict[str, int]
) -> tuple[list[Selector], bool]:
    """The selectors that choose it, and whether its descriptors could be looked at."""
    command: str | None = None
    group: str | None = None
    seen = True
    held: set[int] = set()
    if sockets:
        try:
            held = _held(process.folder / "fd", sockets)
        except PermissionError:
            seen = False
        except OSError:
            held = set()  # it has ended
    found = []
    for selector in wanted:
        if selector.by is By.PID:
            hit = selector.value == str(process.pid)
        elif selector.by is By.PORT:
            hit = int(selector.value) in held
        elif selector.by is By.COMMAND:
            command = _command_line(process) if command is None else command
            hit = selector.value in command
        else:
            group = "\n".join(_lines(process.folder / "cgroup")) if group is None else group
            hit = selector.value in group
        if hit:
            found.append(selector)
    return found, seen


def _command_line(process: _Process) -> str:
    return "".join(_lines(process.folder / "cmdline")).replace("\0", " ")


def _held(folder: Path, sockets: dict[str, int]) -> set[int]:
    """Watched ports that a process listens on: its descriptors by number, listeners are low."""
    held: set[int] = set()
    numbers = sorted(int(name) for name in os.listdir(folder))
    for number in numbers[:_MAX_DESCRIPTORS]:
        try:
            link = os.readlink(folder / str(number))
        except FileNotFoundError:
            continue  # closed meanwhile
        if link.startswith("socket:[") and link[8:-1] in sockets:
            held.add(sockets[link[8:-1]])
            if len(held) == len(set(sockets.values())):
                break
    return held


def _target(process: _Process, selector: Selector) -> Target:
    ns_pid = process.pid
    for line in _lines(process.folder / "status"):
        if line.startswith("NSpid:"):
            ns_pid = int(line.split()[-1])
    return Target(process.pid, process.start, ns_pid, process.command, selector)


def _missing(selector: Selector, sockets: dict[str, int], hidden: int) -> Missing:
    if selector.by is not By.PORT:
        return Missing(selector, Absence.NOT_FOUND, f"no process here matches {selector}")
    if int(selector.value) not in sockets.values():
        return Missing(selector, Absence.NOT_FOUND, f"nobody listens on port {selector.value} here")
    if hidden:
        return Missing(
            selector,
            Absence.NO_PERMISSION,
            f"port {selector.value} is listened on by one of {hidden} processes that may not be "
            "looked at: give probed CAP_SYS_PTRACE, or choose by command line",
        )
    return Missing(
        selector,
        Absence.NOT_FOUND,
        f"port {selector.value} is listened on by a process of another process namespace: set "
        "shareProcessNamespace: true",
    )


class Rescan:
    """When to scan again: one scan takes at most a fiftieth of a CPU, the time between two doubles
    while nothing changes, and a process that began or ended is looked at soon.
    """

    SHARE, SOON, LATEST = 50, 1.0, 30.0  # seconds

    def __init__(self) -> None:
        self._next = 0.0
        self._wait = self.SOON

    def due(self, now: float) -> bool:
        """Whether it is time."""
        return now >= self._next

    def prompt(self, now: float) -> None:
        """Something changed: scan soon, though not for each of a thousand short processes."""
        self._wait = self.SOON
        self._next = min(self._next, now + self.SOON)

    def done(self, now: float, cost: float, changed: bool) -> None:
        """After a scan that took ``cost`` seconds."""
        self._wait = self.SOON if changed else min(self._wait * 2, self.LATEST)
        self._next = now + max(self._wait, self.SHARE * cost)
