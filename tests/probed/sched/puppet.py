"""A process that does what it is told, and a probe that watches it."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sidecar.probed import frames
from sidecar.probed.coverage import Coverage
from sidecar.probed.frames import FrameType
from sidecar.probed.namespaces import network_of
from sidecar.probed.probe import Report, Watched
from sidecar.probed.sched import SchedProbe
from sidecar.probed.sched_frames import (
    OffCpu,
    ProcessEvent,
    Running,
    unpack_process,
    unpack_sched,
)
from sidecar.probed.targets import By, Selector, Target, scan

SCRIPT = """
import ctypes, os, signal, subprocess, sys, threading, time
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
_SWITCHES = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Waits for a condition of another process."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        select.select([], [], [], 0.005)


class Puppet:
    """A Python process that executes lines; after each it sleeps until the next."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._hear("ready")

    @property
    def pid(self) -> int:
        """Its pid as we see it."""
        return self.process.pid

    def tell(self, line: str) -> None:
        """Gives it a line of Python, and does not wait."""
        assert self.process.stdin
        print(line, file=self.process.stdin, flush=True)

    def do(self, line: str) -> None:
        """Has it done, and the process asleep again in all its threads."""
        self.tell(line)
        self._hear("done")
        until(self.asleep)

    def _hear(self, word: str) -> None:
        assert self.process.stdout
        heard = self.process.stdout.readline().strip()
        assert heard == word, f"{heard!r}: the puppet is gone"

    def asleep(self) -> bool:
        """Whether all its threads sleep."""
        stats = [path.read_text() for path in self._tasks("stat")]
        return all(stat.rpartition(")")[2].split()[0] == "S" for stat in stats)

    def switches(self) -> tuple[int, int]:
        """Voluntary and involuntary ones of the threads that are there, as the kernel counts."""
        counted = [0, 0]
        for path in self._tasks("status"):
            told = dict(
                line.split(":\t") for line in path.read_text().splitlines() if ":\t" in line
            )
            for i, name in enumerate(_SWITCHES):
                counted[i] += int(told[name])
        return counted[0], counted[1]

    def waited_ns(self) -> int:
        """Time its threads waited for a CPU, as the kernel counts it."""
        return sum(int(path.read_text().split()[1]) for path in self._tasks("schedstat"))

    def _tasks(self, name: str) -> Iterable[Path]:
        return list(Path(f"/proc/{self.pid}/task").glob(f"*/{name}"))


@contextmanager
def puppet(script: str = SCRIPT, prefix: tuple[str, ...] = ()) -> Iterator[Puppet]:
    """A puppet until the block ends."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Puppet(process)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def spinning(cpu: int, count: int) -> Iterator[None]:
    """Processes that want this CPU all the time."""
    script = (
        f"import os; os.sched_setaffinity(0, {{{cpu}}}); print('ready', flush=True)\nwhile 1: pass"
    )
    spinners = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for one in spinners:
            assert one.stdout
            assert one.stdout.readline().strip() == "ready"
        yield
    finally:
        for one in spinners:
            one.kill()
            one.communicate()


class Watch:
    """What a probe says of the processes that it watches."""

    def __init__(self, probe: SchedProbe) -> None:
        self.probe = probe
        self.running: dict[int, Running] = {}
        self.off: dict[int, OffCpu] = {}
        self.events: list[ProcessEvent] = []
        self.frames: list[bytes] = []
        self.changed = 0

    def on(self, *pids: int) -> tuple[Target, ...]:
        """Watches processes, and goes on until all their threads are attached."""
        selectors = [Selector(By.PID, str(pid)) for pid in pids]
        chosen = scan(selectors, network_of()).targets
        assert len(chosen) == len(pids)
        self.probe.watch(Watched(targets=chosen))
        followed = self.probe._followed.values()
        until(lambda: self.look() and all(one.threads and one.threads.done for one in followed))
        return chosen

    def look(self) -> bool:
        """Takes what came and a second's frames."""
        self._take(self.probe.drain())
        self._take(self.probe.second(time.monotonic_ns()))
        return True

    def _take(self, reports: Iterable[Report]) -> None:
        for report in reports:
            self.changed += report.changed
            self.frames.append(report.frame)
            if frames.frame_type(report.frame) is FrameType.PROCESS:
                self.events.append(unpack_process(report.frame))
                continue
            found = unpack_sched(report.frame)
            if isinstance(found, Running):
                self.running[found.who.pid] = found
            else:
                self.off[found.who.pid] = found

    def event(self) -> ProcessEvent:
        """The first thing that happens, and nothing else has."""
        until(lambda: self.look() and self.events)
        (event,) = self.events
        return event

    def covered(self) -> Coverage:
        """How the probe fares with the only process."""
        (found,) = self.probe.coverage()
        return found
