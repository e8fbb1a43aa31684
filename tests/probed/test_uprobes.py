"""Ways to put user probes in, and where the kernel has none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sidecar.probed import perf, uprobes
from sidecar.probed.perf import Event
from sidecar.probed.uprobes import Multi, Place, Single
from sidecar.signals import Absence, NoData


def source(folder: Path, kind: str, retprobe: str) -> Path:
    """A made-up /sys with a source of user probes."""
    device = folder / "bus" / "event_source" / "devices" / "uprobe"
    (device / "format").mkdir(parents=True)
    (device / "type").write_text(kind)
    (device / "format" / "retprobe").write_text(retprobe)
    return folder


@pytest.mark.parametrize(
    ("release", "multi"),
    [("6.18.44-fc", True), ("6.10.0", True), ("7.1", True), ("6.9.12", False), ("5.17.0", False),
     ("6.1.0-49-amd64", False), ("", False), ("mainline", False)],
)  # fmt: skip
def test_way(tmp_path: Path, release: str, multi: bool) -> None:
    """Multi links from the release on in which they see every thread, perf events before."""
    sys = source(tmp_path, "8\n", "config:3\n")
    chosen = uprobes.way(release, sys)
    assert chosen == Single(8, 1 << 3) if not multi else isinstance(chosen, Multi)


@pytest.mark.parametrize(("kind", "retprobe"), [("x", "config:0"), ("8", "config1:0"), ("8", "")])
def test_unknown_source(tmp_path: Path, kind: str, retprobe: str) -> None:
    """A source that is described otherwise than known is not guessed at."""
    with pytest.raises(NoData) as caught:
        uprobes.single(source(tmp_path, kind, retprobe))
    assert caught.value.absence is Absence.UNSUPPORTED


def test_no_source(tmp_path: Path) -> None:
    """A kernel without user probes is told by the setting that it lacks."""
    with pytest.raises(NoData, match="CONFIG_UPROBE_EVENTS"):
        uprobes.single(tmp_path)


def test_unknown_event() -> None:
    """An event that the kernel does not know is its error, not a descriptor."""
    with pytest.raises(OSError, match="perf_event_open"):
        perf.open_event(Event(0xFFFF), 0)


def test_no_program() -> None:
    """A link without a program is refused, and nothing is left open."""
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="bpf link") as caught:
        Multi().attach(1 << 30, b"/proc/self/exe", [Place(0, 1)], os.getpid(), False)
    assert caught.value.errno in (errno.EBADF, errno.EPERM)
    assert len(os.listdir("/proc/self/fd")) == before
