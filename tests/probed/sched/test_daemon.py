"""``probed --probe sched`` as a process: what it says, may do and leaves behind."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.privileges import Capability
from sidecar.probed import coverage, frames
from sidecar.probed.coverage import Coverage
from sidecar.probed.frames import FrameType, Watch
from sidecar.probed.sched_frames import (
    Happened,
    OffCpu,
    ProcessEvent,
    Running,
    unpack_process,
    unpack_sched,
)
from sidecar.probed.targets import By, Selector
from sidecar.signals import CollectorState
from tests.probed.sched.puppet import Puppet, puppet, until
from tests.probed.test_daemon import NOBODY, running

pytestmark = pytest.mark.ebpf
Found = Running | OffCpu | ProcessEvent | Coverage


class Client:
    """A sidecar that watches processes."""

    def __init__(self, path: Path, *selectors: Selector) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        until(lambda: self._reaches(path))
        self.socket.send(frames.pack_watch(Watch({}, selectors)))

    def _reaches(self, path: Path) -> bool:
        try:
            self.socket.connect(os.fspath(path))
        except (FileNotFoundError, ConnectionRefusedError):  # not made yet, or not listened on
            return False
        return True

    def first(self, wanted: Callable[[Found], bool]) -> Found:
        """The first thing told that is wanted."""
        while True:
            frame = self.socket.recv(frames.FRAME_BYTES + 1)
            assert frame, "probed hung up"
            kind = frames.frame_type(frame)
            if kind is FrameType.STATUS:
                assert frames.unpack_status(frame).absence == ""
                continue
            reads = {FrameType.COVERAGE: coverage.unpack, FrameType.PROCESS: unpack_process}
            found: Found = reads.get(kind, unpack_sched)(frame)  # type: ignore[operator]
            if wanted(found):
                return found


def pid_of(one: Puppet) -> Selector:
    """Chooses a puppet."""
    return Selector(By.PID, str(one.pid))


def switched(found: Found) -> bool:
    """Whether switches of a process were seen."""
    return isinstance(found, Running) and found.voluntary > 0


def test_from_switch_to_frame(tmp_path: Path) -> None:
    """Confined to its loop, probed attaches to a process that comes, and tells of its switches and
    its end.
    """
    path = tmp_path / "probed.sock"
    with running(path, "--probe", "sched"), puppet() as one:
        client = Client(path, pid_of(one))
        covered = client.first(lambda found: isinstance(found, Coverage) and found.parts > 0)
        assert covered.state is not CollectorState.BLIND
        one.do("time.sleep(0.001)")
        seen = client.first(switched)
        assert seen.who.pid == one.pid
        one.tell("os._exit(3)")
        ended = client.first(lambda found: isinstance(found, ProcessEvent))
        assert (ended.happened, ended.exit_code, ended.pid) == (Happened.EXIT, 3, one.pid)


def test_keeps_what_following_takes(tmp_path: Path) -> None:
    """Of its capabilities those for attaching and for looking at processes stay, and no other."""
    path = tmp_path / "probed.sock"
    with running(path, "--probe", "sched") as process, puppet() as one:
        client = Client(path, pid_of(one))
        client.first(lambda found: isinstance(found, Coverage) and found.parts > 0)
        status = Path(f"/proc/{process.pid}/status").read_text()
        held = int(re.findall(r"CapPrm:\s+(\w+)", status)[0], 16)
        allowed = 1 << Capability.PERFMON | 1 << Capability.SYS_PTRACE | 1 << Capability.BPF
        allowed |= 1 << Capability.DAC_READ_SEARCH
        assert held & 1 << Capability.PERFMON
        assert held & ~allowed == 0
        assert re.findall(r"Seccomp:\s+(\d)", status) == ["2"]


def limited_to(*kept: Capability) -> Callable[[], None]:
    """Leaves a child these capabilities across exec."""

    def limit() -> None:
        for capability in set(range(64)) - set(kept):
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)

    return limit


@contextmanager
def somebody_else() -> Iterator[subprocess.Popen[bytes]]:
    """A process of another user that sleeps in short turns."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", "while :; do sleep 0.05; done"], user=NOBODY, group=NOBODY
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_another_users_process(tmp_path: Path) -> None:
    """CAP_PERFMON alone, beside CAP_BPF for loading, is enough for a process of another user."""
    if Path("/proc/self/ns/pid").stat().st_ino != 0xEFFFFFFC:
        pytest.skip("in a nested pid namespace CAP_SYS_PTRACE is needed too, for targets in others")
    path = tmp_path / "probed.sock"
    arguments = ("--probe", "sched", "--loader", "prebuilt")
    limit = limited_to(Capability.BPF, Capability.PERFMON)
    with running(path, *arguments, preexec_fn=limit), somebody_else() as other:
        client = Client(path, Selector(By.PID, str(other.pid)))
        found = client.first(switched)
        assert isinstance(found, Running)
        assert found.sees_switches


def programs(pid: int) -> set[int]:
    """The programs that a process holds."""
    found = set()
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            found.update(int(one) for one in re.findall(r"prog_id:\s+(\d+)", info.read_text()))
        except OSError:
            continue  # closed meanwhile
    return found


def test_killed_leaves_nothing(tmp_path: Path) -> None:
    """After SIGKILL none of its programs is in the kernel any more, and the watched goes on."""
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    if not Path(tool).exists():
        pytest.skip("bpftool is not installed: apt install bpftool")
    path = tmp_path / "probed.sock"

    def known(program: int) -> bool:
        asked = [tool, "prog", "show", "id", str(program)]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    with puppet() as one:
        with running(path, "--probe", "sched") as process:
            client = Client(path, pid_of(one))
            client.first(lambda found: isinstance(found, Coverage) and found.parts > 0)
            one.do("time.sleep(0.001)")
            client.first(switched)
            held = programs(process.pid)
            assert len(held) == 4
            assert all(known(program) for program in held)
            process.kill()
            process.wait()
        until(lambda: not any(known(program) for program in held))
        one.do("time.sleep(0.001)")
