"""Page faults, threads and CPU time of a process: from /proc and a clock, no probe is needed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_CPU_CLOCK = 2  # CPUCLOCK_SCHED: what the scheduler has given, kernel/time/posix-cpu-timers.c
_MINOR_BITS = 20  # of the kernel's dev_t, linux/kdev_t.h; stat(2) tells another form


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """Since the process began; ``cpu_ns`` of all its threads, those that ended included."""

    start: int
    minor_faults: int = 0
    major_faults: int = 0
    threads: int = 0
    cpu_ns: int = 0


def read(pid: int, proc: Path = Path("/proc")) -> ProcessStat | None:
    """None when there is no such process; of a zombie the last figures. Any user may read it,
    unless /proc is mounted with hidepid.
    """
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
        cpu_ns = time.clock_gettime_ns(~pid << 3 | _CPU_CLOCK)
    except OSError:
        return None
    # The command, field 2, may hold spaces and parentheses: look behind the last one.
    fields = text.rpartition(")")[2].split()
    return ProcessStat(int(fields[19]), int(fields[7]), int(fields[9]), int(fields[17]), cpu_ns)


def pid_namespace(pid: int | str, proc: Path = Path("/proc")) -> tuple[int, int]:
    """Device, as the kernel counts it, and inode of a process's pid namespace. Raises OSError;
    EACCES for another user's process without CAP_SYS_PTRACE.
    """
    found = (proc / str(pid) / "ns" / "pid").stat()
    return os.major(found.st_dev) << _MINOR_BITS | os.minor(found.st_dev), found.st_ino
