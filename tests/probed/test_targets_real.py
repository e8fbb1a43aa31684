"""Which processes a scan chooses on this machine: listeners, their workers, threads, the hidden."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sidecar import privileges
from sidecar.privileges import Capability
from sidecar.probed.namespaces import Network, network_of
from sidecar.probed.targets import By, Found, Missing, Selector, scan
from sidecar.signals import Absence
from tests.probed.children import in_child
from tests.probed.sockets import listening

NOBODY = 65534
_PR_SET_DUMPABLE = 4
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
_LISTENER = (
    "import os, socket, sys\n"
    "listener = socket.create_server(('127.0.0.1', 0))\n"
    "[os.fork() for _ in range(int(sys.argv[1])) if os.getppid() == {parent}]\n"
    "os.write(1, b'%d %d\\n' % (os.getpid(), listener.getsockname()[1]))\n"  # whole lines
    "sys.stdin.read()\n"
)


@contextmanager
def serving(workers: int = 0) -> Iterator[tuple[int, list[int]]]:
    """A server of another process with workers that inherited its socket: its port and pids."""
    source = _LISTENER.format(parent=os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", source, str(workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        told = [process.stdout.readline().split() for _ in range(workers + 1)]
        yield int(told[0][1]), [int(pid) for pid, _ in told]
        process.stdin.close()


def by(kind: By, value: object, network: Network | None = None) -> Found:
    """A scan of the real /proc."""
    return scan([Selector(kind, str(value))], network or network_of())


def test_workers_of_a_real_server() -> None:
    """A server that forks is as many targets as processes, found by the listener they inherited."""
    with serving(workers=2) as (port, pids):
        found = by(By.PORT, port)
        assert {target.pid for target in found.targets} == set(pids)
        assert (len(pids), found.missing) == (3, ())


def test_threads_are_their_process() -> None:
    """A process is one target however many threads it has."""
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(7)]
    for thread in threads:
        thread.start()
    try:
        with listening() as listener:
            found = by(By.PORT, listener.getsockname()[1])
    finally:
        stop.set()
    assert [target.pid for target in found.targets] == [os.getpid()]


def test_start_is_the_kernels() -> None:
    """Of one process the start is the same in each scan, of a later one it is not earlier."""
    (first,) = by(By.PID, os.getpid()).targets
    with serving() as (port, _):
        (later,) = by(By.PORT, port).targets
    assert by(By.PID, os.getpid()).targets == (first,)
    assert later.start >= first.start > 0


def test_uncollected_child() -> None:
    """A real zombie is not chosen by its pid."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)  # ends with the child, which held the other end
    os.close(reading)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    found = by(By.PID, pid)
    os.waitpid(pid, 0)
    assert found.targets == ()


def test_long_command_line() -> None:
    """A command line of 1.2 MB with bytes that are no text is found by what it begins with, and
    what comes behind the bound is not looked at.
    """
    early, late = uuid.uuid4().hex, uuid.uuid4().hex
    filling = [b"\xff" * 100_000] * 12
    source = "print(flush=True); input()"  # it has its command line once it says something
    command = [sys.executable, "-c", source, early, *filling, late]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        chosen = {target.pid for target in by(By.COMMAND, early).targets}
        beyond = {target.pid for target in by(By.COMMAND, late).targets}
        process.communicate(b"\n")
    assert chosen == {process.pid}
    assert beyond == set()


def _looking_with(kept: set[Capability], port: int) -> dict[str, object]:
    """What a process of root with only these capabilities finds."""

    def look() -> dict[str, object]:
        privileges.set_capabilities(kept, kept)
        found = by(By.PORT, port)
        absences = [missing.absence.value for missing in found.missing]
        return {"pids": [target.pid for target in found.targets], "absences": absences}

    return in_child(look)  # type: ignore[no-any-return]  # JSON


@contextmanager
def _listener_of_nobody() -> Iterator[tuple[int, int]]:
    """A process of another user that listens: its port and pid."""
    with listening() as listener:
        port = listener.getsockname()[1]
        told, ready = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # as after an exec
            os.write(ready, b"x")
            signal.pause()
        os.read(told, 1)
    try:
        yield port, pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(told)
        os.close(ready)


@needs_root
def test_listener_of_another_user() -> None:
    """Two capabilities together find whose port it is; with either alone it is hidden, and said to
    be, not taken for absent.
    """
    both = {Capability.SYS_PTRACE, Capability.DAC_READ_SEARCH}
    with _listener_of_nobody() as (port, pid):
        assert _looking_with(both, port) == {"pids": [pid], "absences": []}
        for alone in both:
            found = _looking_with({alone}, port)
            assert found == {"pids": [], "absences": [Absence.NO_PERMISSION.value]}


@needs_root
def test_other_process_namespace() -> None:
    """From within another process namespace a listener outside is named as one."""

    def look() -> list[str]:
        made = "unshare --pid --fork --mount-proc"
        source = (
            "import sys\n"
            "from sidecar.probed.namespaces import network_of\n"
            "from sidecar.probed.targets import By, Selector, scan\n"
            "found = scan([Selector(By.PORT, sys.argv[1])], network_of())\n"
            "print(found.targets, found.missing[0].reason)\n"
        )
        command = [*made.split(), sys.executable, "-c", source, str(port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return [done.stdout, done.stderr]

    with listening() as listener:
        port = listener.getsockname()[1]
        out, problem = look()
    if "unshare failed" in problem:
        pytest.skip(f"no process namespace can be made here: {problem.strip()}")
    assert out.startswith("() "), problem
    assert "shareProcessNamespace: true" in out


def test_closed_port() -> None:
    """A port that nobody listens on is told so on the real table too."""
    with listening() as listener:
        port = listener.getsockname()[1]
    missing = by(By.PORT, port).missing
    selector = Selector(By.PORT, str(port))
    reason = f"nobody listens on port {port} here"
    assert missing == (Missing(selector, Absence.NOT_FOUND, reason),)
