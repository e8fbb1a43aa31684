"""The frames of the probe ``sched``: what a process has done with its CPUs since it was attached
(SCHED, two frames a second for each), and that one ended, was replaced or killed (PROCESS).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from sidecar.probed import frames
from sidecar.probed.frames import FrameError, FrameType

BUCKETS = 24
# Bucket i holds durations of at most 2^(10+i) ns; the last one has no bound.
BOUNDS_NS = tuple(1 << 10 + i for i in range(BUCKETS - 1))

_WHO = struct.Struct("=B64sIIIQ")
_DURATIONS = struct.Struct(f"={1 + BUCKETS}Q")
_RUNNING = struct.Struct("=QBQQQQQQI")
_PROCESS = struct.Struct("=B64sIIIIQ16s")
_RUNNING_PART, _OFF_CPU_PART = 0, 1
_LABEL_BYTES = 63


class Happened(IntEnum):
    """What a PROCESS frame tells."""

    EXIT = 1  # a watched process has ended
    CHILD_EXIT = 2  # a process that a watched one made has ended, and is not watched itself
    EXEC = 3  # a watched process became another program
    OOM_KILL = 4  # the kernel chose a process, watched or not, to free memory


@dataclass(frozen=True, slots=True)
class Who:
    """A watched process. ``pid`` is as ``probed`` sees it, ``ns_pid`` as it sees itself and
    ``host_pid`` as the first pid namespace does (0 while that is not known); ``start`` is field 22
    of proc(5)'s stat.
    """

    label: str
    pid: int
    ns_pid: int
    host_pid: int
    start: int

    @property
    def identity(self) -> tuple[int, int]:
        """What names this process and no later one of its pid."""
        return self.pid, self.start


@dataclass(frozen=True, slots=True)
class Durations:
    """Counts by bucket of BOUNDS_NS, not cumulative, and the sum in nanoseconds."""

    counts: tuple[int, ...] = (0,) * BUCKETS
    sum_ns: int = 0

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Running:
    """How a process ran. ``waits`` has one duration for each time one of its threads got a CPU:
    how long it had been waiting for one; ``voluntary``, ``involuntary`` and ``waits`` are since it
    was attached and None where switches cannot be seen (``sees_switches``). CPU time, in
    nanoseconds, and page faults are since the process began. ``missed`` switches are counted, but
    have no durations.
    """

    who: Who
    at_ns: int
    cpu_ns: int
    minor_faults: int
    major_faults: int
    threads: int
    sees_switches: bool = False
    voluntary: int = 0
    involuntary: int = 0
    missed: int = 0
    waits: Durations = Durations()


@dataclass(frozen=True, slots=True)
class OffCpu:
    """For how long threads were off their CPU, by how they left it: to sleep, to sleep
    uninterruptibly (``blocked``: disk, page faults, driver), stopped by a signal or a tracer, or
    still willing to run (``preempted``, which is waiting and so in ``Running.waits`` too).
    """

    who: Who
    sleep: Durations = Durations()
    blocked: Durations = Durations()
    stopped: Durations = Durations()
    preempted: Durations = Durations()


@dataclass(frozen=True, slots=True)
class ProcessEvent:
    """Something that happened to a process. ``label`` is the watched process's (of a child: its
    parent's), empty when it is nobody watched; ``pid`` is as ``probed`` sees it, 0 when only the
    first namespace's ``host_pid`` is known. ``code`` is the status that wait(2) gives for an end.
    """

    happened: Happened
    label: str
    pid: int
    ns_pid: int
    host_pid: int
    code: int
    at_ns: int
    comm: str

    @property
    def signal(self) -> int:
        """The signal that ended it, 0 when none did."""
        return self.code & 0x7F

    @property
    def dumped_core(self) -> bool:
        """Whether a core dump was written."""
        return bool(self.code & 0x80)

    @property
    def exit_code(self) -> int:
        """What it gave to exit(2)."""
        return self.code >> 8 & 0xFF


def _cut(label: str) -> bytes:
    return label.encode()[:_LABEL_BYTES]


def _pack_who(part: int, who: Who) -> bytes:
    return _WHO.pack(part, _cut(who.label), who.pid, who.ns_pid, who.host_pid, who.start)


def _pack_durations(found: Durations) -> bytes:
    return _DURATIONS.pack(found.sum_ns, *found.counts)


def pack_running(running: Running) -> bytes:
    """The first SCHED frame."""
    body = _RUNNING.pack(
        running.at_ns,
        running.sees_switches,
        running.cpu_ns,
        running.voluntary,
        running.involuntary,
        running.missed,
        running.minor_faults,
        running.major_faults,
        running.threads,
    )
    head = _pack_who(_RUNNING_PART, running.who)
    return frames.pack(FrameType.SCHED, head + body + _pack_durations(running.waits))


def pack_off_cpu(off: OffCpu) -> bytes:
    """The second SCHED frame."""
    parts = (off.sleep, off.blocked, off.stopped, off.preempted)
    head = _pack_who(_OFF_CPU_PART, off.who)
    return frames.pack(FrameType.SCHED, head + b"".join(map(_pack_durations, parts)))


def _durations(frame: bytes, at: int) -> Durations:
    total, *counts = _DURATIONS.unpack_from(frame, at)
    return Durations(tuple(counts), total)


def unpack_sched(frame: bytes) -> Running | OffCpu:
    """The body of a SCHED frame; raises FrameError when it is none of the two."""
    part, label, pid, ns_pid, host_pid, start = _WHO.unpack_from(frame, frames.HEADER_BYTES)
    who = Who(frames.text(label), pid, ns_pid, host_pid, start)
    at = frames.HEADER_BYTES + _WHO.size
    if part == _OFF_CPU_PART:
        return OffCpu(who, *(_durations(frame, at + i * _DURATIONS.size) for i in range(4)))
    if part != _RUNNING_PART:
        raise FrameError(f"part {part} of a SCHED frame")
    at_ns, sees, cpu, voluntary, involuntary, missed, minor, major, threads = _RUNNING.unpack_from(
        frame, at
    )
    if sees > 1:
        raise FrameError(f"a SCHED frame that sees switches {sees} times")
    waits = _durations(frame, at + _RUNNING.size)
    counted = (voluntary, involuntary, missed, waits)
    return Running(who, at_ns, cpu, minor, major, threads, bool(sees), *counted)


def pack_process(event: ProcessEvent) -> bytes:
    """The PROCESS frame."""
    return frames.pack(
        FrameType.PROCESS,
        _PROCESS.pack(
            event.happened,
            _cut(event.label),
            event.pid,
            event.ns_pid,
            event.host_pid,
            event.code,
            event.at_ns,
            event.comm.encode()[:15],
        ),
    )


def unpack_process(frame: bytes) -> ProcessEvent:
    """The body of a PROCESS frame; raises FrameError when it tells nothing known."""
    kind, label, pid, ns_pid, host_pid, code, at_ns, comm = _PROCESS.unpack_from(
        frame, frames.HEADER_BYTES
    )
    try:
        happened = Happened(kind)
    except ValueError as error:
        raise FrameError(f"a PROCESS frame of kind {kind}") from error
    return ProcessEvent(
        happened, frames.text(label), pid, ns_pid, host_pid, code, at_ns, frames.text(comm)
    )
