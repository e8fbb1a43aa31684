"""Tests of sidecar.cgroups and the pressure collector, on recorded trees and this machine's own."""

from pathlib import Path

import pytest

from sidecar import cgroups
from sidecar.collectors import pressure
from sidecar.collectors.pressure import PressureCollector
from sidecar.config import CgroupSettings, PressureSettings
from sidecar.signals import Absence, NoData, Sample

PSI = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0 total=250000\n"


def tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def version_2(tmp_path: Path, path: str = "/kubepods/pod1") -> Path:
    """A /proc and a cgroup2 mount of a pod with a quota of 6 cores that throttles (FC-36 A)."""
    mount = tmp_path / "sys"
    tree(
        mount / path.lstrip("/"),
        {
            "cpu.max": "600000 100000\n",
            "cpu.stat": (
                "usage_usec 9000000\nuser_usec 1\nsystem_usec 2\nnr_periods 100\n"
                "nr_throttled 99\nthrottled_usec 48000000\n"
            ),
            "memory.current": "1048576\n",
            "memory.max": "max\n",
            "memory.events": "low 0\nhigh 3\nmax 5\noom 1\noom_kill 1\n",
            "cpu.pressure": PSI,
        },
    )
    tree(
        tmp_path / "proc",
        {
            "self/cgroup": f"0::{path}\n",
            "self/mountinfo": f"30 23 0:26 / {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
            "pressure/memory": PSI,
        },
    )
    return tmp_path / "proc"


def version_1(tmp_path: Path) -> Path:
    """A mixed system: version 1 has the controllers, version 2 is mounted without any."""
    root = tmp_path / "sys"
    tree(
        root,
        {
            "cpu/pod1/cpu.stat": "nr_periods 11\nnr_throttled 7\nthrottled_time 3000000000\n",
            "cpu/pod1/cpu.cfs_quota_us": "250000\n",
            "cpu/pod1/cpu.cfs_period_us": "100000\n",
            "cpuacct/pod1/cpuacct.usage": "5000000000\n",
            "memory/pod1/memory.usage_in_bytes": "4096\n",
            "memory/pod1/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/pod1/memory.failcnt": "13\n",
            "memory/pod1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
            "unified/pod1/cpu.stat": "usage_usec 1\n",
        },
    )
    mounts = "".join(
        f"3{i} 23 0:2{i} / {root}/{name} rw - cgroup cgroup rw,{name}\n"
        for i, name in enumerate(("cpu", "cpuacct", "memory"))
    )
    tree(
        tmp_path / "proc",
        {
            "self/cgroup": "3:cpu:/pod1\n2:cpuacct:/pod1\n1:memory:/pod1\n0::/pod1\n",
            "self/mountinfo": f"{mounts}40 23 0:40 / {root}/unified rw - cgroup2 cgroup2 rw\n",
        },
    )
    return tmp_path / "proc"


def collected(proc: Path, *groups: CgroupSettings) -> dict[tuple[str, ...], float]:
    collector = PressureCollector(PressureSettings(cgroups=groups), proc)
    collector.open()
    return {
        (s.metric, *(value for _, value in s.labels)): s.value
        for s in collector.collect(0.0)
        if isinstance(s, Sample)
    }


def test_a_throttled_pod_of_version_2(tmp_path: Path) -> None:
    """FC-36 A: 99 of 100 periods throttled, 48 s lost, 6 cores; no limit is no sample."""
    found = collected(version_2(tmp_path))
    assert found[pressure.THROTTLED.name, "self"] == 99
    assert found[pressure.PERIODS.name, "self"] == 100
    assert found[pressure.THROTTLED_SECONDS.name, "self"] == 48
    assert found[pressure.CPU_LIMIT.name, "self"] == 6
    assert found[pressure.MEMORY_EVENTS.name, "self", "oom_kill"] == 1
    assert (pressure.MEMORY_LIMIT.name, "self") not in found


def test_version_1_wins_on_a_mixed_system(tmp_path: Path) -> None:
    """Its controllers hold the figures; an unlimited memory limit is no limit, not 2**63."""
    found = collected(version_1(tmp_path))
    assert found[pressure.CPU.name, "self"] == 5
    assert found[pressure.CPU_LIMIT.name, "self"] == 2.5
    assert found[pressure.THROTTLED_SECONDS.name, "self"] == 3
    assert found[pressure.MEMORY_EVENTS.name, "self", "oom_kill"] == 2
    assert found[pressure.MEMORY_EVENTS.name, "self", "max"] == 13
    assert (pressure.MEMORY_LIMIT.name, "self") not in found


def test_stalls_of_host_and_group(tmp_path: Path) -> None:
    """Totals in microseconds are seconds; a resource without a file has no sample."""
    found = collected(version_2(tmp_path))
    assert found[pressure.STALLED.name, "self", "cpu", "some"] == 1.5
    assert found[pressure.STALLED.name, "host", "memory", "full"] == 0.25
    assert not [key for key in found if key[0] == pressure.STALLED.name and "io" in key]


def test_a_named_group(tmp_path: Path) -> None:
    """The engine's group is read under the name that the settings give it."""
    proc = version_2(tmp_path)
    engine = CgroupSettings(name="engine", path=Path("/kubepods/pod1"))
    assert collected(proc, engine)[pressure.THROTTLED.name, "engine"] == 99


def test_a_named_group_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A wrong path is not_found with where to look, not a silent nothing."""
    wrong = CgroupSettings(name="engine", path=Path("/kubepods/pod2"))
    with pytest.raises(NoData, match="/kubepods/pod2") as caught:
        collected(version_2(tmp_path), wrong)
    assert caught.value.absence is Absence.NOT_FOUND


def test_a_kernel_with_neither_is_unsupported(tmp_path: Path) -> None:
    """No PSI and no group: a named state, no zeros."""
    tree(tmp_path, {"self/cgroup": "", "self/mountinfo": ""})
    with pytest.raises(NoData) as caught:
        collected(tmp_path)
    assert caught.value.absence is Absence.UNSUPPORTED


def test_inside_a_private_view_the_mount_is_the_group(tmp_path: Path) -> None:
    """A container that sees a path of the host which is not below its mount reads the mount."""
    proc = version_2(tmp_path, path="/")
    (proc / "self/cgroup").write_text("0::/../../seen/from/outside\n")
    assert collected(proc)[pressure.PERIODS.name, "self"] == 100


def test_this_machine() -> None:
    """Whatever this kernel has is read without an error, and CPU time is there."""
    group = cgroups.find(cgroups.own_path())
    if group is None:
        pytest.skip("no control groups are mounted here")
    seconds = cgroups.cpu(group).seconds
    assert seconds is None or seconds > 0
    assert collected(Path("/proc"))
