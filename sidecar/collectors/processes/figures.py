"""Sums of what processes with one label have done, so that a counter goes on when one of them ends,
is attached anew or is replaced.

Pure arithmetic on the frames of :mod:`sidecar.probed.sched_frames`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecar.probed.sched_frames import BUCKETS, Durations, OffCpu, Running

_IDENTITIES = 256  # processes that are remembered one by one, of all labels
_ROW = 1 + BUCKETS  # sum and counts of Durations
WAITS, SLEEP, BLOCKED, STOPPED, PREEMPTED = (3 + i * _ROW for i in range(5))
VOLUNTARY, INVOLUNTARY, MISSED = 0, 1, 2
_SINCE_ATTACHED = 3 + 5 * _ROW
CPU_NS, MINOR, MAJOR = (_SINCE_ATTACHED + i for i in range(3))
SIZE = _SINCE_ATTACHED + 3
_Row = list[int]


def durations(figures: _Row, at: int) -> Durations:
    """One of the histograms WAITS to PREEMPTED."""
    return Durations(tuple(figures[at + 1 : at + _ROW]), figures[at])


@dataclass(slots=True)
class _Process:
    label: str
    heard: float
    began: tuple[int, int, int]  # CPU and faults when it was first heard of
    figures: _Row = field(default_factory=lambda: [0] * SIZE)
    threads: int = 0
    sees_switches: bool = False
    ended: bool = False


class Figures:
    """What is known of all processes. Times are of any one clock that does not go back."""

    def __init__(self) -> None:
        self._processes: dict[tuple[int, int], _Process] = {}
        self._earlier: dict[str, _Row] = {}

    def running(self, running: Running, label: str, now: float) -> None:
        """Takes in the first SCHED frame of a process."""
        lives = (running.cpu_ns, running.minor_faults, running.major_faults)
        one = self._processes.get(running.who.identity)
        if one is None:
            one = _Process(label, now, lives)
            self._processes[running.who.identity] = one
            self._forget_some()
        counted = [running.voluntary, running.involuntary, running.missed]
        if counted[0] + counted[1] < one.figures[VOLUNTARY] + one.figures[INVOLUNTARY]:
            self._begin_anew(one)
        one.figures[VOLUNTARY : MISSED + 1] = counted
        _set(one.figures, WAITS, running.waits)
        since = (new - old for new, old in zip(lives, one.began, strict=True))
        one.figures[CPU_NS:] = map(max, one.figures[CPU_NS:], since)  # none of them goes back
        one.heard, one.threads, one.ended = now, running.threads, False
        one.sees_switches = running.sees_switches

    def off_cpu(self, off: OffCpu) -> None:
        """Takes in the second one; without the first it says nothing."""
        one = self._processes.get(off.who.identity)
        if one is None:
            return
        for at, found in (
            (SLEEP, off.sleep),
            (BLOCKED, off.blocked),
            (STOPPED, off.stopped),
            (PREEMPTED, off.preempted),
        ):
            _set(one.figures, at, found)

    def end(self, pid: int) -> None:
        """A process has ended; what it did stays counted."""
        for identity, one in self._processes.items():
            if identity[0] == pid:
                one.ended = True

    def labels(self) -> list[str]:
        """Those of processes heard of so far."""
        return sorted({*self._earlier, *(one.label for one in self._processes.values())})

    def total(self, label: str) -> _Row:
        """Everything that processes of this label did."""
        rows = [one.figures for one in self._processes.values() if one.label == label]
        rows.append(self._earlier.get(label, [0] * SIZE))
        return [sum(column) for column in zip(*rows, strict=True)]

    def threads(self, label: str, since: float) -> int | None:
        """Threads of the processes that were heard of since then; None when none was."""
        found = [one.threads for one in self._alive(label, since)]
        return sum(found) if found else None

    def sees_switches(self, label: str) -> bool:
        """Whether the switches of any of them were seen."""
        known = any(o.label == label and o.sees_switches for o in self._processes.values())
        return known or any(self._earlier.get(label, ())[:_SINCE_ATTACHED])

    def _alive(self, label: str, since: float) -> list[_Process]:
        everyone = self._processes.values()
        return [o for o in everyone if o.label == label and o.heard >= since and not o.ended]

    def _begin_anew(self, one: _Process) -> None:
        """It was attached anew: what was counted before stays, and counting starts at zero."""
        earlier = self._earlier.setdefault(one.label, [0] * SIZE)
        for i in range(_SINCE_ATTACHED):
            earlier[i] += one.figures[i]
            one.figures[i] = 0

    def _forget_some(self) -> None:
        while len(self._processes) > _IDENTITIES:
            oldest = min(self._processes, key=lambda who: self._processes[who].heard)
            one = self._processes.pop(oldest)
            earlier = self._earlier.setdefault(one.label, [0] * SIZE)
            self._earlier[one.label] = [a + b for a, b in zip(earlier, one.figures, strict=True)]


def _set(figures: _Row, at: int, found: Durations) -> None:
    figures[at : at + _ROW] = [found.sum_ns, *found.counts]
