"""Stalls for want of CPU, memory or I/O (PSI), CPU throttling and memory limits of control groups.

A quota that throttles looks like a slow GPU; the counters here tell the two apart. The host's and
our own group's figures need no privilege; other groups are named in the settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sidecar import cgroups
from sidecar.cgroups import Group
from sidecar.config import PressureSettings, Settings
from sidecar.signals import Absence, Kind, Labels, Metric, NoData, Sample

STALLED = Metric(
    "modelprobe_pressure_stalled_seconds_total",
    Kind.COUNTER,
    "Time in which some or all (full) tasks stood still for want of a resource (PSI).",
    ("scope", "resource", "kind"),
)
CPU = Metric(
    "modelprobe_cgroup_cpu_seconds_total", Kind.COUNTER, "CPU used by the group.", ("cgroup",)
)
CPU_LIMIT = Metric(
    "modelprobe_cgroup_cpu_limit_cores",
    Kind.GAUGE,
    "CPU quota in cores; no sample where there is none.",
    ("cgroup",),
)
PERIODS = Metric(
    "modelprobe_cgroup_cpu_periods_total",
    Kind.COUNTER,
    "Periods in which the quota was enforced.",
    ("cgroup",),
)
THROTTLED = Metric(
    "modelprobe_cgroup_cpu_throttled_periods_total",
    Kind.COUNTER,
    "Periods in which the group used its quota up and was stopped.",
    ("cgroup",),
)
THROTTLED_SECONDS = Metric(
    "modelprobe_cgroup_cpu_throttled_seconds_total",
    Kind.COUNTER,
    "Time for which the group was stopped by its quota, summed over CPUs.",
    ("cgroup",),
)
MEMORY = Metric(
    "modelprobe_cgroup_memory_bytes", Kind.GAUGE, "Memory charged to the group.", ("cgroup",)
)
MEMORY_LIMIT = Metric(
    "modelprobe_cgroup_memory_limit_bytes",
    Kind.GAUGE,
    "Memory limit; no sample where there is none.",
    ("cgroup",),
)
MEMORY_EVENTS = Metric(
    "modelprobe_cgroup_memory_events_total",
    Kind.COUNTER,
    "Times the group met its limits (max), or had a process killed for them (oom_kill).",
    ("cgroup", "event"),
)
METRICS = (
    STALLED,
    CPU,
    CPU_LIMIT,
    PERIODS,
    THROTTLED,
    THROTTLED_SECONDS,
    MEMORY,
    MEMORY_LIMIT,
    MEMORY_EVENTS,
)
OWN = "self"
_RESOURCES = ("cpu", "memory", "io")


def from_settings(settings: Settings) -> Iterable[PressureCollector]:
    """One collector unless it is switched off."""
    return [PressureCollector(settings.pressure)] if settings.pressure.enabled else []


class PressureCollector:
    """Reads some small files of the kernel."""

    name = "pressure"
    metrics = METRICS
    streamed = False
    deadline_seconds = 3.0

    def __init__(self, settings: PressureSettings, proc: Path = Path("/proc")) -> None:
        self.interval_seconds = settings.interval_seconds
        self._settings = settings
        self._proc = proc
        self._groups: dict[str, Group] = {}

    def open(self) -> None:
        """Finds the groups; a configured one that is not there is an error, not a silence."""
        mine = self._proc / "self"
        self._groups.clear()
        own = cgroups.find(cgroups.own_path(mine), mine)
        if own is not None:
            self._groups[OWN] = own
        for wanted in self._settings.cgroups:
            found = cgroups.find(str(wanted.path), mine)
            if found is None:
                raise NoData(
                    Absence.NOT_FOUND,
                    f"pressure.cgroups: there is no group {wanted.path} for {wanted.name}; "
                    "see /proc/PID/cgroup of a process in it",
                )
            self._groups[wanted.name] = found

    def collect(self, now: float) -> Iterable[Sample]:
        """Every figure that this kernel has."""
        samples = list(self._host())
        for name, group in self._groups.items():
            samples.extend(_stalls(name, group.unified))
            samples.extend(_usage(name, group))
        if not samples:
            raise NoData(
                Absence.UNSUPPORTED, "this kernel has neither PSI nor control groups mounted"
            )
        return samples

    def close(self) -> None:
        """Holds nothing open."""

    def _host(self) -> Iterator[Sample]:
        for resource in _RESOURCES:
            yield from _psi("host", resource, self._proc / "pressure" / resource)


def _stalls(name: str, folder: Path | None) -> Iterator[Sample]:
    if folder is None:
        return
    for resource in _RESOURCES:
        yield from _psi(name, resource, folder / f"{resource}.pressure")


def _psi(scope: str, resource: str, path: Path) -> Iterator[Sample]:
    """``some avg10=0.00 … total=MICROSECONDS`` (Documentation/accounting/psi.rst)."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return  # no such file, or PSI is off (EOPNOTSUPP)
    for line in lines:
        kind, _, rest = line.partition(" ")
        total = rest.rpartition("total=")[2]
        if kind in ("some", "full") and total.isdigit():
            labels = (("scope", scope), ("resource", resource), ("kind", kind))
            yield Sample(STALLED.name, int(total) / 1e6, labels)


def _usage(name: str, group: Group) -> Iterator[Sample]:
    labels: Labels = (("cgroup", name),)
    cpu, memory = cgroups.cpu(group), cgroups.memory(group)
    for metric, value in (
        (CPU, cpu.seconds),
        (CPU_LIMIT, cpu.limit_cores),
        (PERIODS, cpu.periods),
        (THROTTLED, cpu.throttled_periods),
        (THROTTLED_SECONDS, cpu.throttled_seconds),
        (MEMORY, memory.bytes),
        (MEMORY_LIMIT, memory.limit_bytes),
    ):
        if value is not None:
            yield Sample(metric.name, float(value), labels)
    for event, count in memory.events:
        yield Sample(MEMORY_EVENTS.name, float(count), (*labels, ("event", event)))
