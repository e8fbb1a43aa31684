"""What /proc says of processes, as data: proc(5). A process may end between any two reads, and
nobody here is surprised by it.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
ENDED = "ZXx"  # a zombie runs nothing, it only waits for its parent to look
_GONE = (FileNotFoundError, ProcessLookupError)
_EXITING = 0x4  # PF_EXITING of linux/sched.h
_LISTEN = "0A"  # TCP_LISTEN of include/net/tcp_states.h
_ANY = ("00000000", "0" * 32)
# Each 32-bit word of an address is printed in the machine's byte order, little-endian here.
_LOOPBACK = "0" * 24 + "01000000"
_MAPPED = "0" * 16 + "FFFF0000"


@dataclass(frozen=True, slots=True)
class Stat:
    """One line of ``/proc/PID/stat``."""

    pid: int
    state: str
    parent: int
    start_ticks: int
    leaving: bool = False  # on its way out: its memory is gone, its files and devices may not be


def boot_id(proc: Path = PROC) -> str:
    """The random name of this boot."""
    return (proc / "sys/kernel/random/boot_id").read_text().strip()


def pid_namespace(proc: Path = PROC) -> int:
    """The inode of our PID namespace, 0 where it cannot be read."""
    try:
        return int(os.readlink(proc / "self/ns/pid").removeprefix("pid:[").removesuffix("]"))
    except (OSError, ValueError):
        return 0


def stat_of(pid: int, proc: Path = PROC) -> Stat | None:
    """One process, None when it is gone."""
    try:
        content = (proc / str(pid) / "stat").read_bytes()
    except _GONE:
        return None
    fields = content.rpartition(b")")[2].split()  # the name before it may hold anything
    leaving = bool(int(fields[6]) & _EXITING)
    return Stat(pid, fields[0].decode(), int(fields[1]), int(fields[19]), leaving)


def stopping(pid: int, proc: Path = PROC) -> bool:
    """Whether a SIGSTOP is on its way to a process, which is asleep in the kernel for example."""
    try:
        lines = (proc / str(pid) / "status").read_text(errors="replace").splitlines()
    except _GONE:
        return False
    pending = (line.split()[1] for line in lines if line.startswith(("SigPnd:", "ShdPnd:")))
    return any(int(mask, 16) >> (signal.SIGSTOP - 1) & 1 for mask in pending)


def pids(proc: Path = PROC) -> list[int]:
    """Every process that is to be seen."""
    return [int(name) for name in os.listdir(proc) if name.isdecimal()]


def every(proc: Path = PROC) -> dict[int, Stat]:
    """All that are to be seen and have not ended, by number."""
    found = (stat_of(pid, proc) for pid in pids(proc))
    return {stat.pid: stat for stat in found if stat is not None and stat.state not in ENDED}


def environ(pid: int, proc: Path = PROC) -> dict[str, str]:
    """What a process was started with. ProcessLookupError when it is gone, PermissionError when
    it is not ours to read.
    """
    try:
        content = (proc / str(pid) / "environ").read_bytes()
    except _GONE:
        raise ProcessLookupError(f"no process {pid} in {proc}") from None
    pairs = (os.fsdecode(line).partition("=") for line in content.split(b"\0") if line)
    return {name: value for name, _, value in pairs}


def arguments(pid: int, proc: Path = PROC) -> list[str]:
    """The command line of a process, empty for a kernel thread. ProcessLookupError as above."""
    try:
        content = (proc / str(pid) / "cmdline").read_bytes()
    except _GONE:
        raise ProcessLookupError(f"no process {pid} in {proc}") from None
    return [os.fsdecode(word) for word in content.split(b"\0")[:-1]]


def maps_has(pid: int, name: str, proc: Path = PROC) -> bool:
    """Whether a file of that base name, or of one that goes on with a dot, deleted since or not, is
    mapped into a process; False once it is gone.
    """
    try:
        with (proc / str(pid) / "maps").open("rb") as maps:
            paths = (line.split(None, 5)[5:] for line in maps)
            found = (os.fsdecode(path[0]).rstrip("\n") for path in paths if path)
            names = (path.removesuffix(" (deleted)").rpartition("/")[2] for path in found)
            return any(base == name or base.startswith(f"{name}.") for base in names)
    except _GONE:
        return False


def listening(port: int, proc: Path = PROC) -> set[str]:
    """The sockets that listen on a TCP port at loopback or at every address."""
    inodes = set[str]()
    for table in ("net/tcp", "net/tcp6"):
        try:
            rows = (proc / table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue  # no IPv6 here
        for fields in (row.split() for row in rows):
            address, _, number = fields[1].partition(":")
            if fields[3] == _LISTEN and int(number, 16) == port and _local(address):
                inodes.add(f"socket:[{fields[9]}]")
    return inodes


def _local(address: str) -> bool:
    v4 = address.removeprefix(_MAPPED)
    return address in (*_ANY, _LOOPBACK) or (len(v4) == 8 and v4.endswith("7F"))


def sockets(pid: int, proc: Path = PROC) -> set[str]:
    """What the descriptors of a process are, as far as they can be read."""
    folder = proc / str(pid) / "fd"
    found = set[str]()
    try:
        for name in os.listdir(folder):
            try:
                found.add(os.readlink(folder / name))
            except OSError:
                continue  # closed since
    except OSError:
        return found  # ended, or not ours to read
    return found
