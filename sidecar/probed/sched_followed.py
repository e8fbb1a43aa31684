"""One process that the probe ``sched`` follows, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sidecar.probed import process_stat
from sidecar.probed import sched_frames as told
from sidecar.probed.process_stat import ProcessStat
from sidecar.probed.sched_frames import Happened, OffCpu, ProcessEvent, Running, Who
from sidecar.probed.sched_state import Record, Totals
from sidecar.probed.sched_threads import Threads
from sidecar.probed.targets import Target
from sidecar.signals import Absence, CollectorState, Coverage, NoData


@dataclass(slots=True)
class Followed:
    """A watched process with its slot and threads, or why it has none."""

    target: Target
    slot: int | None = None
    threads: Threads | None = None
    failure: NoData | None = None
    _stat: ProcessStat | None = None
    _fired: bool = False
    _ended: bool = False

    def look(self, proc: Path) -> bool:
        """Reads what /proc says; False when the process has ended, or its pid is another's."""
        found = process_stat.read(self.target.pid, proc)
        self._ended = self._ended or found is None or found.start != self.target.start
        if not self._ended:
            self._stat = found
        return not self._ended

    def figures(self, totals: Totals, at_ns: int) -> Iterator[bytes]:
        """The SCHED frames, with what /proc said last; none before it said something."""
        stat, target = self._stat, self.target
        if stat is None:
            return
        self._fired = self._fired or totals.voluntary + totals.involuntary > 0
        who = Who(target.label, target.pid, target.ns_pid, totals.tgid, target.start)
        sees = self.threads is not None and self.threads.failure is None
        running = Running(
            who, at_ns, stat.cpu_ns, stat.minor_faults, stat.major_faults, stat.threads, sees,
            totals.voluntary, totals.involuntary, totals.missed, totals.waits,
        )  # fmt: skip
        yield told.pack_running(running)
        if sees:
            off = (totals.sleep, totals.blocked, totals.stopped, totals.preempted)
            yield told.pack_off_cpu(OffCpu(who, *off))

    def end(self) -> None:
        """It has ended: nothing more is told of it."""
        self._ended = True

    def coverage(self, absent: tuple[str, ...]) -> Coverage:
        """How it fares; ``absent`` is what this kernel gives of no process."""
        target, threads, failure = self.target, self.threads, self._absent()
        reasons = [failure.reason] if failure is not None else []
        if threads is not None and threads.left_out:
            reasons.append(f"{threads.left_out} threads are too many and left out")
        state = CollectorState.FIRING if self._fired else CollectorState.ATTACHED
        return Coverage(
            "sched",
            target.label,
            target.pid,
            target.ns_pid,
            target.start,
            CollectorState.BLIND if failure is not None else state,
            threads.attached if threads is not None else 0,
            failure.absence if failure is not None else None,
            "; ".join((*reasons, *absent)),
        )

    def _absent(self) -> NoData | None:
        if self._ended:
            return NoData(Absence.CLOSED, "it has ended")
        return self.failure or (self.threads.failure if self.threads is not None else None)


def event(found: Record, one: Followed | None) -> ProcessEvent:
    """What is told of a record of this process, or of nobody watched."""
    label, pid, ns_pid = "", 0, 0
    if one is not None:
        label = one.target.label
        if found.happened is not Happened.CHILD_EXIT:
            pid, ns_pid = one.target.pid, one.target.ns_pid
    return ProcessEvent(
        found.happened, label, pid, ns_pid, found.tgid, found.code, found.at_ns, found.comm
    )
