"""PID namespaces: what number a process has in its own eyes (pid_namespaces(7), proc(5) NSpid)."""

from __future__ import annotations

import os
from pathlib import Path

from chaos.procfs import PROC, pids


def inner(pid: int, proc: Path = PROC) -> int:
    """The number that getpid() gives in the process itself. ProcessLookupError when it is gone."""
    try:
        lines = (proc / str(pid) / "status").read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        raise ProcessLookupError(f"no process {pid} in {proc}") from None
    for line in lines:
        if line.startswith("NSpid:"):
            return int(line.split()[-1])  # from our namespace inwards
    return pid  # a kernel without PID namespaces


def living(pid: int, proc: Path = PROC) -> dict[int, int]:
    """All processes to be seen of that one's namespace: our number of each by its own."""
    space = _namespace(pid, proc)
    found = {}
    for one in pids(proc) if space else ():
        if _namespace(one, proc) == space:
            try:
                found[inner(one, proc)] = one
            except ProcessLookupError:
                continue
    return found


def _namespace(pid: int, proc: Path) -> str:
    try:
        return os.readlink(proc / str(pid) / "ns/pid")
    except OSError:
        return ""  # gone, or not ours to see
