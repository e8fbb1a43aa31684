"""Which processes are watched: those that listen on a port, match a command line, belong to a
control group, or have a pid.

A scan reads /proc, which on a node with thousands of processes costs a tenth of a second, so
``rescan.py`` bounds its share of a CPU. A process is named by pid and start time: pids are used
again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from pathlib import Path

from sidecar.probed.namespaces import Network
from sidecar.signals import Absence

MAX_SELECTORS = 12
MAX_TARGETS = 64
VALUE_BYTES = 62  # of a selector in its frame
_LISTEN = "0A"  # TCP_LISTEN, include/net/tcp_states.h
_MAX_DESCRIPTORS = 16_384  # looked at a process, from 0 on: listeners are low
_MAX_TEXT_BYTES = 65_536  # read of a command line and the like, which the process may choose


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
    for pid in _pids(proc, wanted):
        folder = f"{proc}/{pid}"
        if pid in without or not _lives_in(network, folder):
            continue
        found, seen = _match(pid, folder, wanted, sockets)
        hidden += not seen
        target = _target(pid, folder, found[0]) if found else None
        if target is not None:
            met.update(found)
            chosen[target.identity] = target
    kept = sorted(chosen.values(), key=lambda target: target.identity)
    missing = (_missing(s, sockets, hidden) for s in wanted if s not in met)
    return Found(tuple(kept[:MAX_TARGETS]), tuple(missing), max(0, len(kept) - MAX_TARGETS))


def _listening(net: Path, ports: set[int]) -> dict[str, int]:
    """Inode of each listening socket on one of these ports."""
    found: dict[str, int] = {}
    if not ports:
        return found
    for name in ("tcp", "tcp6"):
        try:
            with (net / name).open() as table:  # by the line: it may hold 100,000 connections
                found.update(_listeners(table, ports))
        except OSError:
            continue  # no IPv6 here, or the process of that namespace has ended
    return found


def listens_on(
    target: Target, ports: Iterable[int], network: Network, proc: Path = Path("/proc")
) -> frozenset[int]:
    """Those of the ports on which a process listens; none when it has ended or may not be seen."""
    sockets = _listening(proc / network.table / "net", set(ports))
    try:
        return frozenset(_held(f"{proc}/{target.pid}/fd", sockets)) if sockets else frozenset()
    except OSError:
        return frozenset()


def start_of(pid: int, proc: Path = Path("/proc")) -> int | None:
    """When a process began, in clock ticks since boot; None when there is none of this pid that
    runs.
    """
    try:
        stat = (proc / str(pid) / "stat").read_text(errors="replace")
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _listeners(table: Iterable[str], ports: set[int]) -> Iterator[tuple[str, int]]:
    for line in islice(table, 1, None):
        fields = line.split()
        if len(fields) < 10 or fields[3] != _LISTEN:
            return  # listeners come first
        port = int(fields[1].rpartition(":")[2], 16)
        if port in ports:
            yield fields[9], port


def _text(path: str) -> str:
    """What a file of /proc begins with; empty when the process has ended."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # half the time of a file object
    except OSError:
        return ""
    try:
        return os.read(file, _MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def _pids(proc: Path, wanted: tuple[Selector, ...]) -> list[int]:
    """Whom to look at: nobody else where all are named."""
    if all(selector.by is By.PID for selector in wanted):
        return sorted({int(selector.value) for selector in wanted})
    return [int(name) for name in os.listdir(proc) if name.isdecimal()]


def _lives_in(network: Network, folder: str) -> bool:
    if network.pid is None:
        return True
    try:
        return os.stat(f"{folder}/ns/net").st_ino == network.inode
    except OSError:
        return False


def _match(
    pid: int, folder: str, wanted: tuple[Selector, ...], sockets: dict[str, int]
) -> tuple[list[Selector], bool]:
    """The selectors that choose it, and whether its descriptors could be looked at."""
    command: str | None = None
    group: str | None = None
    seen = True
    held: set[int] = set()
    if sockets:
        try:
            held = _held(f"{folder}/fd", sockets)
        except PermissionError:
            seen = False
        except OSError:
            held = set()  # it has ended
    found = []
    for selector in wanted:
        if selector.by is By.PID:
            hit = int(selector.value) == pid
        elif selector.by is By.PORT:
            hit = int(selector.value) in held
        elif selector.by is By.COMMAND:
            command = _command_line(folder) if command is None else command
            hit = selector.value in command
        else:
            group = _text(f"{folder}/cgroup") if group is None else group
            hit = selector.value in group
        if hit:
            found.append(selector)
    return found, seen


def _command_line(folder: str) -> str:
    return _text(f"{folder}/cmdline").replace("\0", " ")


def _held(folder: str, sockets: dict[str, int]) -> set[int]:
    """Watched ports that a process listens on; the kernel lists its descriptors by number."""
    held: set[int] = set()
    wanted = len(set(sockets.values()))
    with os.scandir(folder) as descriptors:
        for entry in islice(descriptors, _MAX_DESCRIPTORS):
            try:
                link = os.readlink(entry.path)
            except FileNotFoundError:
                continue  # closed meanwhile
            if link.startswith("socket:[") and link[8:-1] in sockets:
                held.add(sockets[link[8:-1]])
                if len(held) == wanted:
                    break
    return held


def _target(pid: int, folder: str, selector: Selector) -> Target | None:
    """The process, None when it has ended or was not collected."""
    # The command, field 2, may hold spaces and parentheses: look behind the last one.
    head, _, rest = _text(f"{folder}/stat").rpartition(")")
    fields = rest.split()
    if len(fields) < 20 or fields[0] in "ZX":
        return None
    start, command = int(fields[19]), head.partition("(")[2]
    return Target(pid, start, _ns_pid(pid, folder), command, selector)


def _ns_pid(pid: int, folder: str) -> int:
    """Its own pid; as we see it when it has ended meanwhile."""
    try:
        with open(f"{folder}/status", "rb") as status:  # its groups may fill many pages
            found = (line for line in status if line.startswith(b"NSpid:"))
            return int(next(found, b"%d" % pid).split()[-1])
    except OSError:
        return pid


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
            "looked at: give probed CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, or choose by command "
            "line",
        )
    return Missing(
        selector,
        Absence.NOT_FOUND,
        f"port {selector.value} is listened on by a process of another process namespace: set "
        "shareProcessNamespace: true",
    )
