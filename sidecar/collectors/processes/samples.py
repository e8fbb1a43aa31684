"""What the probe ``sched`` says, as metrics and events: how long threads of watched processes wait
for a CPU, what they do off it, page faults, exits and OOM kills.

A counter covers all processes with one label and never goes back when one of them ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sidecar.collectors.processes import figures as at
from sidecar.collectors.processes.figures import Figures
from sidecar.collectors.processes.minute import Minute
from sidecar.collectors.processes.words import event, how
from sidecar.probed import frames
from sidecar.probed.frames import FrameType
from sidecar.probed.sched_frames import (
    BOUNDS_NS,
    Durations,
    Happened,
    ProcessEvent,
    Running,
    unpack_process,
    unpack_sched,
)
from sidecar.signals import Event, Histogram, Kind, Labels, Metric, Sample, Signal

RUN_QUEUE = Metric(
    "modelprobe_sched_run_queue_seconds",
    Kind.HISTOGRAM,
    "How long threads were ready to run before they got a CPU, one value a time they got it.",
    ("process",),
)
OFF_CPU = Metric(
    "modelprobe_sched_off_cpu_seconds",
    Kind.HISTOGRAM,
    "How long threads were off their CPU: asleep, blocked (uninterruptible: disk, page fault, "
    "driver), stopped (by a signal or tracer) or preempted.",
    ("process", "kind"),
)
CPU = Metric(
    "modelprobe_sched_cpu_seconds_total",
    Kind.COUNTER,
    "CPU time of all threads since the process was first seen.",
    ("process",),
)
SWITCHES = Metric(
    "modelprobe_sched_switches_total",
    Kind.COUNTER,
    "Times a thread left its CPU: to wait (voluntary), or while it could have gone on.",
    ("process", "kind"),
)
UNTIMED = Metric(
    "modelprobe_sched_untimed_switches_total",
    Kind.COUNTER,
    "Switches that are counted and are not in the histograms, because the program missed one.",
    ("process",),
)
FAULTS = Metric(
    "modelprobe_process_page_faults_total",
    Kind.COUNTER,
    "Page faults since the process was first seen; a major one had to wait for the disk.",
    ("process", "kind"),
)
THREADS = Metric("modelprobe_process_threads", Kind.GAUGE, "Threads now.", ("process",))
EXITS = Metric(
    "modelprobe_process_exits_total",
    Kind.COUNTER,
    "Ends of watched processes (self) and of those they made (child): by exit code, or by signal.",
    ("process", "relation", "how", "detail"),
)
OOM_KILLS = Metric(
    "modelprobe_oom_kills_total",
    Kind.COUNTER,
    "Processes that the kernel chose to free memory, anywhere on the machine; `process` is "
    "`other` when it is not watched.",
    ("process",),
)
P99 = Metric(
    "modelprobe_sched_run_queue_p99_seconds",
    Kind.GAUGE,
    "Between which bounds the 99th percentile of waiting for a CPU lies, of the last minute.",
    ("process", "bound"),
)
WAITING = Metric(
    "modelprobe_sched_waiting_ratio",
    Kind.GAUGE,
    "Time that threads waited for a CPU per time that they had one, in the last minute.",
    ("process",),
)
METRICS = (
    RUN_QUEUE, OFF_CPU, CPU, SWITCHES, UNTIMED, FAULTS, THREADS, EXITS, OOM_KILLS, P99, WAITING,
)  # fmt: skip
OTHER = "other"
MAX_LABELS = 64
_DETAILS = 8  # exit codes and signals of one process, the rest are `other`
_FRESH_SECONDS = 5.0  # a process that is not heard of for so long has no gauges
_BOUNDS = (*(bound / 1e9 for bound in BOUNDS_NS), float("inf"))
_OFF_KINDS = {
    "sleep": at.SLEEP,
    "blocked": at.BLOCKED,
    "stopped": at.STOPPED,
    "preempted": at.PREEMPTED,
}


class SchedSamples:
    """Takes SCHED and PROCESS frames; ``now`` is a monotonic time in seconds."""

    def __init__(self) -> None:
        self._figures = Figures()
        self._minutes: dict[str, Minute] = {}
        self._labels: set[str] = set()
        self._exits: Counter[Labels] = Counter()
        self._oom: Counter[str] = Counter({OTHER: 0})
        self._heard = False

    def take(self, frame: bytes, unix_offset: float, now: float) -> tuple[Event, ...]:
        """One frame, and the events that it tells. ``unix_offset`` is Unix time minus
        CLOCK_MONOTONIC in seconds. Raises FrameError.
        """
        self._heard = True
        if frames.frame_type(frame) is FrameType.PROCESS:
            found = unpack_process(frame)
            self._count(found)
            told = event(found, found.at_ns / 1e9 + unix_offset)
            return (told,) if told is not None else ()
        part = unpack_sched(frame)
        if isinstance(part, Running):
            self._figures.running(part, self._label(part.who.label), now)
        else:
            self._figures.off_cpu(part)
        return ()

    def signals(self, now: float) -> Iterator[Signal]:
        """What stands now; nothing before a first frame came."""
        if not self._heard:
            return
        for label in self._figures.labels():
            yield from self._of(label, now)
        for labels, count in self._exits.items():
            yield Sample(EXITS.name, float(count), labels)
        for label, count in self._oom.items():
            yield Sample(OOM_KILLS.name, float(count), (("process", label),))

    def _label(self, label: str) -> str:
        """Itself, or `other` beyond the cap."""
        if label in self._labels or len(self._labels) < MAX_LABELS:
            self._labels.add(label)
            return label
        return OTHER

    def _count(self, found: ProcessEvent) -> None:
        label = self._label(found.label) if found.label else OTHER
        if found.happened is Happened.OOM_KILL:
            self._oom[label] += 1
        elif found.happened is not Happened.EXEC:
            relation = "self" if found.happened is Happened.EXIT else "child"
            kind, detail = how(found)
            labels = _exit_labels(label, relation, kind, detail)
            known = sum(1 for one in self._exits if one[:2] == labels[:2])
            if labels not in self._exits and known >= _DETAILS:
                labels = _exit_labels(label, relation, kind, OTHER)
            self._exits[labels] += 1
        if found.happened is Happened.EXIT:
            self._figures.end(found.pid)

    def _of(self, label: str, now: float) -> Iterator[Signal]:
        who = ("process", label)
        total = self._figures.total(label)
        yield Sample(CPU.name, total[at.CPU_NS] / 1e9, (who,))
        yield Sample(FAULTS.name, float(total[at.MINOR]), (who, ("kind", "minor")))
        yield Sample(FAULTS.name, float(total[at.MAJOR]), (who, ("kind", "major")))
        threads = self._figures.threads(label, now - _FRESH_SECONDS)
        if threads is not None:
            yield Sample(THREADS.name, float(threads), (who,))
        if not self._figures.sees_switches(label):
            return  # an absence, and no zeros
        yield Sample(SWITCHES.name, float(total[at.VOLUNTARY]), (who, ("kind", "voluntary")))
        yield Sample(SWITCHES.name, float(total[at.INVOLUNTARY]), (who, ("kind", "involuntary")))
        yield Sample(UNTIMED.name, float(total[at.MISSED]), (who,))
        waits = at.durations(total, at.WAITS)
        yield _histogram(RUN_QUEUE, waits, (who,))
        for kind, where in _OFF_KINDS.items():
            yield _histogram(OFF_CPU, at.durations(total, where), (who, ("kind", kind)))
        minute = self._minutes.setdefault(label, Minute())
        minute.note(now, waits, total[at.CPU_NS])
        if threads is not None:
            yield from _of_minute(minute, who)


def _exit_labels(label: str, relation: str, kind: str, detail: str) -> Labels:
    return (("process", label), ("relation", relation), ("how", kind), ("detail", detail))


def _of_minute(minute: Minute, who: tuple[str, str]) -> Iterator[Sample]:
    bounds, ratio = minute.p99(), minute.waiting_ratio()
    if bounds is not None:
        yield Sample(P99.name, bounds[0], (who, ("bound", "lower")))
        if bounds[1] is not None:
            yield Sample(P99.name, bounds[1], (who, ("bound", "upper")))
    if ratio is not None:
        yield Sample(WAITING.name, ratio, (who,))


def _histogram(metric: Metric, found: Durations, labels: Labels) -> Histogram:
    total, cumulative = 0, []
    for count in found.counts:
        total += count
        cumulative.append(total)
    return Histogram(metric.name, _BOUNDS, tuple(cumulative), found.sum_ns / 1e9, labels)
