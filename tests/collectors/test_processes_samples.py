"""Frames of the probe ``sched`` as metrics and events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidecar.collectors.processes import samples
from sidecar.collectors.processes.samples import METRICS, SchedSamples
from sidecar.probed import frames
from sidecar.probed.frames import FrameError, FrameType
from sidecar.probed.sched_frames import (
    BUCKETS,
    Durations,
    Happened,
    OffCpu,
    ProcessEvent,
    Running,
    Who,
    pack_off_cpu,
    pack_process,
    pack_running,
)
from sidecar.signals import Event, Histogram, Labels, Sample

LABEL = "python (port 8000)"
WHO = Who(LABEL, 100, 1, 900, 7)


def durations(bucket: int, count: int, sum_ns: int) -> Durations:
    """So many in one bucket."""
    counts = [0] * BUCKETS
    counts[bucket] = count
    return Durations(tuple(counts), sum_ns)


RUNNING = Running(WHO, 0, 5_000_000_000, 11, 13, 17, True, 19, 23, 2, durations(14, 29, 31_000_000))
OFF = OffCpu(
    WHO,
    durations(20, 3, 41),
    durations(10, 5, 43),
    durations(9, 7, 47),
    durations(8, 11, 53),
)
EXIT = ProcessEvent(Happened.EXIT, LABEL, 100, 1, 900, 9, 5_000_000_000, "python")


class Told:
    """What a SchedSamples says."""

    def __init__(self) -> None:
        self.samples = SchedSamples()
        self.now = 0.0

    def take(self, *parts: Running | OffCpu | ProcessEvent) -> list[Event]:
        events: list[Event] = []
        for part in parts:
            if isinstance(part, Running):
                frame = pack_running(part)
            elif isinstance(part, OffCpu):
                frame = pack_off_cpu(part)
            else:
                frame = pack_process(part)
            events.extend(self.samples.take(frame, 1000.0, self.now))
        return events

    def value(self, metric: str, **labels: str) -> float | None:
        found = [
            s.value
            for s in self.samples.signals(self.now)
            if isinstance(s, Sample)
            and s.metric == metric
            and labels.items() <= dict(s.labels).items()
        ]
        assert len(found) <= 1
        return found[0] if found else None

    def histogram(self, metric: str, **labels: str) -> Histogram | None:
        found = [
            s
            for s in self.samples.signals(self.now)
            if isinstance(s, Histogram)
            and s.metric == metric
            and labels.items() <= dict(s.labels).items()
        ]
        assert len(found) <= 1
        return found[0] if found else None


@pytest.fixture
def told() -> Told:
    """Nothing has come yet."""
    return Told()


def test_nothing_before_a_frame(told: Told) -> None:
    """Without the probe there are no zeros."""
    assert list(told.samples.signals(0.0)) == []


def test_every_signal_is_declared(told: Told) -> None:
    """Each sample has a declared name and its labels, each histogram its last bound at infinity."""
    told.take(RUNNING, OFF, EXIT)
    declared = {metric.name: metric.labels for metric in METRICS}
    for signal in told.samples.signals(0.0):
        assert isinstance(signal, Sample | Histogram)
        assert tuple(name for name, _ in signal.labels) == declared[signal.metric]
        if isinstance(signal, Histogram):
            assert signal.bounds[-1] == float("inf")
            assert list(signal.counts) == sorted(signal.counts)


def test_figures(told: Told) -> None:
    """Counts are the frame's; CPU time and page faults count from when it was first heard of."""
    told.take(RUNNING, OFF)
    later = replace(
        RUNNING, cpu_ns=7_500_000_000, minor_faults=18, major_faults=24, threads=5, voluntary=37
    )
    told.take(later)
    name = "modelprobe_sched_switches_total"
    assert told.value(name, kind="voluntary") == 37
    assert told.value(name, kind="involuntary") == 23
    assert told.value("modelprobe_sched_untimed_switches_total") == 2
    assert told.value("modelprobe_sched_cpu_seconds_total") == 2.5
    assert told.value("modelprobe_process_page_faults_total", kind="minor") == 7
    assert told.value("modelprobe_process_page_faults_total", kind="major") == 11
    assert told.value("modelprobe_process_threads", process=LABEL) == 5


def test_histograms(told: Told) -> None:
    """Buckets are cumulative, in seconds, and each kind of being off the CPU is its own."""
    told.take(RUNNING, OFF)
    waits = told.histogram("modelprobe_sched_run_queue_seconds")
    assert waits is not None
    assert waits.counts[13:15] == (0, 29)
    assert waits.bounds[14] == pytest.approx(2**24 / 1e9)
    assert (waits.counts[-1], waits.sum) == (29, 0.031)
    for kind, count in (("sleep", 3), ("blocked", 5), ("stopped", 7), ("preempted", 11)):
        off = told.histogram("modelprobe_sched_off_cpu_seconds", kind=kind)
        assert off is not None
        assert off.counts[-1] == count


def test_without_switches(told: Told) -> None:
    """Where switches cannot be seen their series are missing, and the others are there."""
    told.take(replace(RUNNING, sees_switches=False, voluntary=0, involuntary=0, waits=Durations()))
    assert told.value("modelprobe_process_threads") == 17
    assert told.value("modelprobe_sched_cpu_seconds_total") == 0
    assert told.value("modelprobe_sched_switches_total", kind="voluntary") is None
    assert told.histogram("modelprobe_sched_run_queue_seconds") is None


def test_an_ended_process_stays_counted(told: Told) -> None:
    """What a process did stays in its label's counters; the next one adds to them."""
    told.take(RUNNING, EXIT)
    assert told.value("modelprobe_process_threads") is None
    assert told.value("modelprobe_sched_switches_total", kind="voluntary") == 19
    told.take(replace(RUNNING, who=replace(WHO, pid=101, start=8), voluntary=5, threads=2))
    assert told.value("modelprobe_sched_switches_total", kind="voluntary") == 24
    assert told.value("modelprobe_process_threads") == 2


def test_attached_anew(told: Told) -> None:
    """When probed is started again its counts begin at zero, and ours go on."""
    told.take(RUNNING)
    told.take(replace(RUNNING, cpu_ns=6_000_000_000, voluntary=3, involuntary=0, missed=0))
    assert told.value("modelprobe_sched_switches_total", kind="voluntary") == 22
    assert told.value("modelprobe_sched_switches_total", kind="involuntary") == 23
    assert told.value("modelprobe_sched_cpu_seconds_total") == 1.0


def test_many_processes_never_go_back(told: Told) -> None:
    """Of 521 processes with one label, one after the other, all switches stay counted."""
    last = 0.0
    for i in range(521):
        told.now = float(i)
        told.take(replace(RUNNING, who=replace(WHO, pid=i, start=i), voluntary=1, involuntary=0))
        now = told.value("modelprobe_sched_switches_total", kind="voluntary")
        assert now == last + 1
        last = now


def test_many_labels(told: Told) -> None:
    """Beyond 64 labels processes are `other`."""
    for i in range(67):
        told.take(replace(RUNNING, who=replace(WHO, label=f"p{i}", pid=i)))
    names = {
        dict(s.labels)["process"]
        for s in told.samples.signals(0.0)
        if isinstance(s, Sample) and s.metric == "modelprobe_process_threads"
    }
    assert len(names) == 65
    assert told.value("modelprobe_process_threads", process="other") == 51


def test_no_gauge_of_the_silent(told: Told) -> None:
    """A process that is not heard of any more has counters and no gauges."""
    told.take(RUNNING)
    told.now = 5.1
    assert told.value("modelprobe_process_threads") is None
    assert told.value("modelprobe_sched_switches_total", kind="voluntary") == 19


@pytest.mark.parametrize(
    ("code", "labels", "text"),
    [
        (9, ("signal", "SIGKILL"), "was killed by SIGKILL"),
        (139, ("signal", "SIGSEGV"), "was killed by SIGSEGV and dumped core"),
        (3 << 8, ("exit", "3"), "ended with exit code 3"),
        (0, ("exit", "0"), "ended with exit code 0"),
        (34, ("signal", "SIGRTMIN"), "was killed by SIGRTMIN"),
        (40, ("signal", "signal 40"), "was killed by signal 40"),
    ],
)
def test_exits(told: Told, code: int, labels: tuple[str, str], text: str) -> None:
    """An end is counted by how it came, and told in words."""
    (event,) = told.take(replace(EXIT, code=code))
    assert (event.at, event.kind, event.subject) == (1005.0, "exit", LABEL)
    assert event.text == f"{LABEL} (pid 100) {text}"
    how, detail = labels
    assert told.value("modelprobe_process_exits_total", how=how, detail=detail) == 1


def test_good_ends_of_children_are_no_events(told: Told) -> None:
    """A child's end is counted; it is told only when it is not a good one."""
    child = replace(EXIT, happened=Happened.CHILD_EXIT, pid=0, code=0, comm="worker")
    assert told.take(child, child) == []
    (event,) = told.take(replace(child, code=11))
    assert event.text == f"worker, a child of {LABEL}, (pid 900) was killed by SIGSEGV"
    name = "modelprobe_process_exits_total"
    assert told.value(name, relation="child", how="exit", detail="0") == 2


def test_details_are_bounded(told: Told) -> None:
    """Of one process at most 8 kinds of ends are told apart for each relation, then `other`."""
    for code in range(23):
        told.take(replace(EXIT, code=code << 8))
    series: set[Labels] = {
        s.labels
        for s in told.samples.signals(0.0)
        if isinstance(s, Sample) and s.metric == "modelprobe_process_exits_total"
    }
    assert len(series) == 9
    assert told.value("modelprobe_process_exits_total", detail="other") == 15


def test_oom_kills(told: Told) -> None:
    """Every OOM kill is counted, under `other` when its victim is not watched."""
    kill = replace(EXIT, happened=Happened.OOM_KILL, code=0)
    (event,) = told.take(replace(kill, label="", pid=0, comm="java"))
    assert event.text == "the kernel killed java (pid 900), which is not watched, to free memory"
    told.take(kill, kill)
    assert told.value("modelprobe_oom_kills_total", process="other") == 1
    assert told.value("modelprobe_oom_kills_total", process=LABEL) == 2


def test_exec_is_an_event(told: Told) -> None:
    """A process that became another program is told, and is no end."""
    (event,) = told.take(replace(EXIT, happened=Happened.EXEC, code=0, comm="vllm"))
    assert event.text == f"{LABEL} (pid 100) became another program, vllm"
    assert told.value("modelprobe_process_exits_total") is None


def test_bad_frames(told: Told) -> None:
    """A frame that is none of these is refused and changes nothing."""
    with pytest.raises(FrameError):
        told.samples.take(frames.pack(FrameType.SCHED, b"\x09"), 0.0, 0.0)
    with pytest.raises(FrameError):
        told.samples.take(frames.pack(FrameType.PROCESS, b"\x09"), 0.0, 0.0)
    assert [s for s in told.samples.signals(0.0) if isinstance(s, Histogram)] == []


def test_the_last_minute(told: Told) -> None:
    """Of the last minute the 99th percentile's bounds and the share of waiting are told; of less
    than 20 s, or of what happened before, nothing.
    """
    p99, ratio = samples.P99.name, samples.WAITING.name
    second = 1_000_000_000
    for i in range(131):
        told.now = float(i)
        slow = max(0, i - 70)  # before that all waits are short
        counts = [101 * i, *[0] * (BUCKETS - 1)]
        counts[15] = 3 * slow
        waits = Durations(tuple(counts), slow * second // 5)
        told.take(replace(RUNNING, cpu_ns=i * second, voluntary=100 * i, waits=waits))
        bound = told.value(p99, bound="lower")
        if i < 20:
            assert bound is None
            assert told.value(ratio) is None
        elif i <= 70:
            assert (bound, told.value(ratio)) == (0.0, 0.0)
    assert bound == 2**24 / 1e9
    assert told.value(p99, bound="upper") == 2**25 / 1e9
    assert told.value(ratio) == pytest.approx(0.2)


def test_no_ratio_to_nothing(told: Told) -> None:
    """An idle process has neither a percentile of few waits nor a share of no CPU time."""
    for i in range(31):
        told.now = float(i)
        told.take(RUNNING)
        assert told.value(samples.WAITING.name) is None
        assert told.value(samples.P99.name, bound="lower") is None


def test_figures_that_go_back(told: Told) -> None:
    """A counter never goes back, even where a process's figures do."""
    told.take(RUNNING)
    told.take(replace(RUNNING, cpu_ns=RUNNING.cpu_ns + 3 * 10**9))
    told.take(replace(RUNNING, cpu_ns=10**9, minor_faults=1, major_faults=1))
    assert told.value(samples.CPU.name) == 3.0
    assert told.value(samples.FAULTS.name, kind="minor") == 0.0
