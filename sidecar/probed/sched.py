"""The user side of ``sched.bpf.c``: attaches it to the threads of watched processes and tells, once
a second, how these got their CPUs, and at once that one ended or became another program.

A second's attaching is bounded, so that what other probes say is drained meanwhile. Nothing is
pinned: with the last descriptor everything ends.
"""

from __future__ import annotations

import errno
import os
import resource
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from sidecar.privileges import Capability
from sidecar.probed import loaders, perf_software, sched_layout
from sidecar.probed import sched_frames as told
from sidecar.probed.frames import OpenCount
from sidecar.probed.kernel import Map, Ring, possible_cpus
from sidecar.probed.loaders import Kind, Program
from sidecar.probed.namespaces import Network
from sidecar.probed.probe import Report, Watched
from sidecar.probed.raw_tracepoint import Tracepoints
from sidecar.probed.sched_followed import Followed, event
from sidecar.probed.sched_frames import Happened
from sidecar.probed.sched_layout import Layout, Part
from sidecar.probed.sched_slots import Slots
from sidecar.probed.sched_state import RECORD_BYTES, TALLIES, Record, record
from sidecar.probed.sched_threads import Threads
from sidecar.probed.targets import Target
from sidecar.signals import Absence, Coverage, NoData

PROGRAMS = (
    Program("switched", Kind.PERF_EVENT),
    Program("exited", Kind.RAW_TRACEPOINT),
    Program("executed", Kind.RAW_TRACEPOINT),
    Program("oom_killed", Kind.RAW_TRACEPOINT),
)
MAPS = ("layouts", "processes", "tgids", "names", "threads", "tallies", "records")
ALWAYS = {"mark_victim": "oom_killed"}
WHILE_WATCHING = {"sched_process_exit": "exited", "sched_process_exec": "executed"}
ATTACH_SECONDS = 0.05  # of one second, for all processes
LET_GO_SECONDS = 0.01  # of each draining
SPARE_FILES = 256  # open files that are left to the rest of probed
_ZERO = b"\0\0\0\0"
_CPUS = Path("/sys/devices/system/cpu/possible")


class SchedProbe:
    """The loaded probe. Raises NoData when it cannot be loaded."""

    keeps = frozenset({Capability.PERFMON, Capability.SYS_PTRACE})

    def __init__(
        self,
        loader: str,
        layout: Layout | None = None,
        proc: Path = Path("/proc"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proc, self._clock = proc, clock
        self._loaded = loaded = loaders.load(loader, "sched", PROGRAMS, MAPS)
        self._layout = layout if layout is not None else sched_layout.find()
        self.loader, self.because = loaded.loader, loaded.because
        self._tracepoints = Tracepoints(loaded.programs)
        self._leaving: list[Threads] = []
        self._followed: dict[tuple[int, int], Followed] = {}
        self._most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            cpus = possible_cpus(_CPUS.read_text())
            maps = {name: Map(loaded.maps[name]) for name in MAPS if name != "tallies"}
            self._tallies = Map(loaded.maps["tallies"], cpus)
            self._ring = Ring(loaded.maps["records"], maps["records"].max_entries)
            self._slots = Slots(maps, self._layout, proc)
        except OSError as error:
            loaded.close()
            raise NoData(Absence.UNSUPPORTED, f"sched cannot be set up: {error}") from error
        self._tracepoints.attach(ALWAYS)

    def watch(self, watched: Watched) -> None:
        """Begins with new processes and lets go of others; threads are attached second by second.
        Tracepoints that everybody passes are there only while something is watched.
        """
        wanted = {target.identity: target for target in watched.targets}
        for identity in set(self._followed) - set(wanted):
            self._leave(self._followed.pop(identity))
        if wanted:
            self._tracepoints.attach(WHILE_WATCHING)
        else:
            self._tracepoints.detach(WHILE_WATCHING)
        for identity, target in wanted.items():
            if identity not in self._followed:
                self._followed[identity] = self._begin(target)

    def drain(self) -> Iterator[Report]:
        """What happened to processes; one that ended tells its last figures first."""
        deadline = self._clock() + LET_GO_SECONDS
        self._leaving = [one for one in self._leaving if not one.let_go(deadline, self._clock)]
        for raw in self._ring.drain():
            yield from self._happened(record(raw[:RECORD_BYTES]))

    def second(self, now_ns: int) -> Iterator[Report]:
        """Goes on attaching, then two frames for each process."""
        deadline = self._clock() + ATTACH_SECONDS
        for one in self._followed.values():
            if one.threads is not None:
                one.threads.step(deadline, self._clock)
        for one in self._followed.values():
            if one.look(self._proc):
                yield from self._read(one, now_ns)

    def counters(self) -> Mapping[str, int]:
        """Records that the ring could not take, and threads beyond the table."""
        raw = self._tallies.lookup(_ZERO) or b""
        values = struct.unpack(f"={len(raw) // 8}Q", raw)
        return {name: sum(values[i :: len(TALLIES)]) for i, name in enumerate(TALLIES)}

    def opened(self, ports: object) -> tuple[OpenCount, ...]:
        """It knows no requests."""
        return ()

    def coverage(self) -> Iterator[Coverage]:
        """How it fares with each process, and what of it this kernel does not give."""
        return (one.coverage(tuple(self._absent())) for one in self._followed.values())

    def close(self) -> None:
        """Ends everything."""
        for one in self._followed.values():
            self._release(one)
        for threads in self._leaving:
            threads.close()
        self._followed.clear()
        self._tracepoints.close()
        self._ring.close()
        self._loaded.close()

    def _begin(self, target: Target) -> Followed:
        one = Followed(target)
        try:
            one.slot = self._slots.take(target)
        except NoData as failure:
            one.failure = failure
            return one
        except OSError as error:
            one.failure = NoData(Absence.ERROR, f"no slot for it in the kernel: {error}")
            return one
        if Part.SWITCHES in self._layout.parts:
            program = self._loaded.programs["switched"]
            one.threads = Threads(target.pid, program, self._open_event, self._proc)
        else:
            reason = self._layout.missing[Part.SWITCHES]
            one.failure = NoData(Absence.UNSUPPORTED, f"no switches: {reason}")
        return one

    def _open_event(self, tid: int, program: int) -> int:
        """An event on a thread, unless few open files are left: the lowest free number is taken."""
        fd = perf_software.on_switches(tid, program)
        if self._most_files != resource.RLIM_INFINITY and fd >= self._most_files - SPARE_FILES:
            os.close(fd)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return fd

    def _release(self, one: Followed) -> None:
        """Lets go of its threads, bit by bit."""
        if one.threads is not None:
            self._leaving.append(one.threads)
            one.threads = None

    def _leave(self, one: Followed) -> None:
        self._release(one)
        if one.slot is not None:
            self._slots.forget(one.slot)

    def _read(self, one: Followed, at_ns: int) -> Iterator[Report]:
        if one.slot is not None:
            for frame in one.figures(self._slots.totals(one.slot), at_ns):
                yield Report(frame)

    def _happened(self, found: Record) -> Iterator[Report]:
        one = next((one for one in self._followed.values() if one.slot == found.slot), None)
        if one is None and found.happened is not Happened.OOM_KILL:
            return  # it is not watched any more
        if one is not None and found.happened is Happened.EXIT:
            one.look(self._proc)  # a zombie still tells
            yield from self._read(one, found.at_ns)
            one.end()
            self._release(one)
        if one is not None and found.happened is Happened.EXEC and one.threads is not None:
            one.threads.again()
        changed = found.happened in (Happened.EXIT, Happened.EXEC)
        yield Report(told.pack_process(event(found, one)), changed=changed)

    def _absent(self) -> Iterator[str]:
        """What of it this kernel does not give."""
        yield from self._tracepoints.missing.values()
        if Part.EXITS not in self._layout.parts:
            yield f"no exit codes: {self._layout.missing[Part.EXITS]}"


def load(loader: str, network: Network) -> SchedProbe:
    """The probe; raises NoData when it cannot be loaded. It goes by processes, whose namespaces
    :class:`Slots` tells apart, and takes as many open files as this process may have.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # above fs.nr_open, which was lowered since
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return SchedProbe(loader)
