"""Network namespaces: our own, and those of clients where one ``probed`` serves a whole node.

A packet socket belongs to the namespace in which it was made. Entering another one needs
CAP_SYS_ADMIN (setns(2)), so it is done for the moment of making it and only in node mode.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sidecar.signals import Absence, NoData

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Network:
    """A network namespace by its inode, and the process through which it is reached: None for
    our own.
    """

    inode: int
    pid: int | None = None

    @property
    def table(self) -> str:
        """The folder under /proc with this namespace's ``net`` files."""
        return "self" if self.pid is None else str(self.pid)


def _link(pid: int | None, proc: Path) -> Path:
    return proc / ("self" if pid is None else str(pid)) / "ns" / "net"


def network_of(pid: int | None = None, proc: Path = Path("/proc")) -> Network:
    """The namespace of a process, ours by default; raises NoData when it may not be looked at."""
    try:
        inode = _link(pid, proc).stat().st_ino
        ours = _link(None, proc).stat().st_ino
    except PermissionError as error:
        raise _unseen(pid) from error
    except OSError as error:
        if pid == 0:  # what SO_PEERCRED says of a process outside of our process namespace
            raise NoData(
                Absence.NOT_FOUND,
                "the client's process cannot be seen from here: a probed for the whole node needs "
                "the host's process namespace (hostPID: true)",
            ) from error
        raise NoData(Absence.NOT_FOUND, f"no process {pid} in {proc}: {error.strerror}") from error
    return Network(inode, None if inode == ours else pid)


def _unseen(pid: int | None) -> NoData:
    return NoData(
        Absence.NO_PERMISSION,
        f"the network namespace of pid {pid} cannot be seen: a probed for the whole node needs "
        "CAP_SYS_PTRACE and the host's process namespace (hostPID)",
    )


def _enter(fd: int) -> None:
    if _libc.setns(fd, _CLONE_NEWNET) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")


@contextmanager
def within(network: Network, proc: Path = Path("/proc")) -> Iterator[None]:
    """Runs a block in a network namespace and comes back, whatever happens. Raises NoData when it
    cannot be entered or is another one by now.
    """
    if network.pid is None:
        yield
        return
    home = os.open(_link(None, proc), os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            there = os.open(_link(network.pid, proc), os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError as error:
            raise _unseen(network.pid) from error
        except OSError as error:
            raise NoData(Absence.CLOSED, f"pid {network.pid} has ended") from error
        try:
            if os.fstat(there).st_ino != network.inode:
                raise NoData(Absence.CLOSED, f"pid {network.pid} is another process by now")
            _enter(there)
        except PermissionError as error:
            raise NoData(
                Absence.NO_PERMISSION, "entering a pod's network namespace needs CAP_SYS_ADMIN"
            ) from error
        finally:
            os.close(there)
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)
