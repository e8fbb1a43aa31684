"""Where control groups lie, version 1, 2 or both, and what their files say.

Kernel sources of truth: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/. A file that is not
there is an absent figure: the root group has no limits, and a controller may be off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED_V1 = 2**62  # PAGE_COUNTER_MAX in bytes, and the -1 of older kernels, lie above


@dataclass(frozen=True, slots=True)
class Group:
    """One control group: a folder of version 2, or one for each controller of version 1."""

    unified: Path | None
    controllers: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU that a group used and was denied; None where the kernel does not say."""

    seconds: float | None
    limit_cores: float | None
    periods: int | None
    throttled_periods: int | None
    throttled_seconds: float | None


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that a group holds and may hold; None where the kernel does not say."""

    bytes: int | None
    limit_bytes: int | None
    events: tuple[tuple[str, int], ...]


def own_path(proc: Path = Path("/proc/self")) -> dict[str, str]:
    """Our own path by controller from cgroup(7); the key of version 2 is empty."""
    paths = {}
    for line in _lines(proc / "cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def find(path: str | Mapping[str, str], proc: Path = Path("/proc/self")) -> Group | None:
    """The group at a path (or at one for each controller); None when there is no such folder."""
    unified: Path | None = None
    controllers: dict[str, Path] = {}
    for controller, mount in _mounts(proc).items():
        where = path if isinstance(path, str) else path.get(controller, "/")
        folder = mount / where.lstrip("/")
        if not folder.is_dir():
            # In a container with a private view of its group the mount is the group itself.
            folder = mount
            if isinstance(path, str) or not folder.is_dir():
                continue
        if controller == "":
            unified = folder
        else:
            controllers[controller] = folder
    return Group(unified, controllers) if unified or controllers else None


def _mounts(proc: Path) -> dict[str, Path]:
    """Mount points of control group file systems by controller (proc_pid_mountinfo(5))."""
    found: dict[str, Path] = {}
    for line in _lines(proc / "mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = [*after.split(), "", "", ""][:3]
        point = Path(before.split()[4])
        if kind == "cgroup2":
            found.setdefault("", point)
        elif kind == "cgroup":
            for option in options.split(","):
                if option in ("cpu", "cpuacct", "memory"):
                    found.setdefault(option, point)
    return found


def cpu(group: Group) -> Cpu:
    """From version 1 where it has the controller: a mixed system leaves version 2 without one."""
    folder = group.controllers.get("cpu")
    if folder is not None:
        stat = pairs(folder / "cpu.stat")
        accounting = group.controllers.get("cpuacct", folder)
        return Cpu(
            seconds=_scaled(number(accounting / "cpuacct.usage"), 1e-9),
            limit_cores=_cpu_quota(folder),
            periods=stat.get("nr_periods"),
            throttled_periods=stat.get("nr_throttled"),
            throttled_seconds=_scaled(stat.get("throttled_time"), 1e-9),
        )
    if group.unified is None:
        return Cpu(None, None, None, None, None)
    stat = pairs(group.unified / "cpu.stat")
    return Cpu(
        seconds=_scaled(stat.get("usage_usec"), 1e-6),
        limit_cores=_cpu_max(group.unified / "cpu.max"),
        periods=stat.get("nr_periods"),
        throttled_periods=stat.get("nr_throttled"),
        throttled_seconds=_scaled(stat.get("throttled_usec"), 1e-6),
    )


def memory(group: Group) -> Memory:
    """From version 1 where it has the controller, else from version 2."""
    folder = group.controllers.get("memory")
    if folder is not None:
        limit = number(folder / "memory.limit_in_bytes")
        events = {
            "max": number(folder / "memory.failcnt"),
            "oom_kill": pairs(folder / "memory.oom_control").get("oom_kill"),
        }
        return Memory(
            bytes=number(folder / "memory.usage_in_bytes"),
            limit_bytes=limit if limit is not None and limit < _UNLIMITED_V1 else None,
            events=tuple((name, count) for name, count in events.items() if count is not None),
        )
    if group.unified is None:
        return Memory(None, None, ())
    return Memory(
        bytes=number(group.unified / "memory.current"),
        limit_bytes=number(group.unified / "memory.max"),
        events=tuple(pairs(group.unified / "memory.events").items()),
    )


def _cpu_max(path: Path) -> float | None:
    fields = _text(path).split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None  # "max" is no limit
    return int(fields[0]) / int(fields[1])


def _cpu_quota(folder: Path) -> float | None:
    quota, period = number(folder / "cpu.cfs_quota_us"), number(folder / "cpu.cfs_period_us")
    return quota / period if quota is not None and quota > 0 and period else None


def pairs(path: Path) -> dict[str, int]:
    """Lines of a name and a number; empty when the file is absent."""
    found = {}
    for line in _lines(path):
        name, _, value = line.partition(" ")
        if value.strip().isdigit():
            found[name] = int(value)
    return found


def number(path: Path) -> int | None:
    """The one number of a file; None when it is absent or says `max` or -1."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _scaled(value: int | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # absent, or a controller that is off answers EOPNOTSUPP
        return ""
