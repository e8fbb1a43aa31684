"""Ends, new programs and OOM kills of real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.probed.namespaces import network_of
from sidecar.probed.probe import Watched
from sidecar.probed.sched_frames import Happened
from sidecar.probed.targets import By, Selector, scan
from sidecar.signals import Absence, CollectorState
from tests.probed.sched.puppet import SCRIPT, Watch, puppet, until

pytestmark = pytest.mark.ebpf
MEMORY = Path("/sys/fs/cgroup/memory")
NO_CORE = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "


@pytest.mark.parametrize(
    ("line", "signal_number", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", signal.SIGKILL, 0),
        (NO_CORE + "ctypes.string_at(0)", signal.SIGSEGV, 0),
        ("os._exit(3)", 0, 3),
        ("threading.Thread(target=os._exit, args=(5,)).start(); time.sleep(60)", 0, 5),
        ("os._exit(0)", 0, 0),
    ],
)
def test_ends(watch: Watch, line: str, signal_number: int, code: int) -> None:
    """An end is told once, with its signal or exit code, and the last figures come before."""
    with puppet() as one:
        (target,) = watch.on(one.pid)
        one.do("pass")
        one.tell(line)
        event = watch.event()
        assert (event.happened, event.pid, event.label) == (Happened.EXIT, one.pid, target.label)
        assert (event.signal, event.exit_code) == (signal_number, code)
        assert not event.dumped_core
        assert one.process.wait() == (code or -signal_number)
        assert watch.running[one.pid].voluntary > 0
        assert watch.changed == 1
        assert watch.covered().state is CollectorState.BLIND
        frames = len(watch.frames)
        watch.look()
        assert len(watch.frames) == frames


def test_asleep_when_killed(prebuilt_watch: Watch) -> None:
    """A process that did nothing since it was attached is told too."""
    watch = prebuilt_watch
    with puppet() as one:
        watch.on(one.pid)
        one.process.kill()
        assert watch.event().signal == signal.SIGKILL


def test_ends_of_threads_are_not_told(watch: Watch) -> None:
    """A process lives while a thread of it does, even when its first one has ended."""
    with puppet() as one:
        watch.on(one.pid)
        one.do("for _ in range(7): one = threading.Thread(target=int); one.start(); one.join()")
        one.tell("threading.Thread(target=lambda: (time.sleep(0.3), os._exit(7))).start(); "
                 "ctypes.CDLL(None).pthread_exit(None)")  # fmt: skip
        event = watch.event()
        assert (event.happened, event.exit_code) == (Happened.EXIT, 7)


def test_children(watch: Watch) -> None:
    """The end of a process that a watched one made is told as a child's, under its label."""
    with puppet() as one:
        (target,) = watch.on(one.pid)
        one.do("pass")
        one.do("subprocess.run([sys.executable, '-c', 'import os; os._exit(11)'])")
        event = watch.event()
        assert (event.happened, event.exit_code) == (Happened.CHILD_EXIT, 11)
        assert (event.label, event.pid) == (target.label, 0)
        assert watch.changed == 0


def test_others_are_not_told(prebuilt_watch: Watch) -> None:
    """A process that nobody watches ends and nothing is told."""
    watch = prebuilt_watch
    with puppet() as one:
        watch.on(one.pid)
        subprocess.run([sys.executable, "-c", ""], check=True)
        one.do("os.kill(os.getpid(), 0)")
        watch.look()
        assert watch.events == []


def test_exec(watch: Watch) -> None:
    """A new program in the same process is told, and its switches are counted on."""
    with puppet() as one:
        watch.on(one.pid)
        one.do(f"script = {SCRIPT!r}")
        one.tell("os.execv(sys.executable, [sys.executable, '-c', script])")
        event = watch.event()
        assert (event.happened, event.pid) == (Happened.EXEC, one.pid)
        assert watch.changed == 1
        one._hear("ready")
        until(one.asleep)
        watch.look()
        one.do("pass")
        watch.look()
        before, first = one.switches(), watch.running[one.pid]
        one.do("[time.sleep(0.005) for _ in range(31)]")
        watch.look()
        last = watch.running[one.pid]
        assert last.voluntary - first.voluntary == one.switches()[0] - before[0] >= 31


def test_a_pid_used_again(prebuilt_watch: Watch) -> None:
    """Of a process that has the pid and not the start of the watched one nothing is told."""
    watch = prebuilt_watch
    with puppet() as one:
        (target,) = scan([Selector(By.PID, str(one.pid))], network_of()).targets
        watch.probe.watch(Watched(targets=(replace(target, start=target.start - 1),)))
        watch.look()
        assert watch.running == {}
        watch.on(one.pid)
        assert watch.running[one.pid].who.start == target.start


def test_counts_begin_anew(prebuilt_watch: Watch) -> None:
    """A process that is let go of and watched again counts from zero."""
    watch = prebuilt_watch
    with puppet() as one:
        watch.on(one.pid)
        one.do("[time.sleep(0.001) for _ in range(53)]")
        watch.look()
        assert watch.running[one.pid].voluntary >= 53
        watch.probe.watch(Watched())
        watch.on(one.pid)
        assert watch.running[one.pid].voluntary == 0


def test_ends_while_it_is_attached(prebuilt_watch: Watch) -> None:
    """A process that has ended before its threads are listed is no failure of the probe."""
    watch = prebuilt_watch
    with puppet() as one:
        targets = scan([Selector(By.PID, str(one.pid))], network_of()).targets
        one.process.kill()
        one.process.wait()
        watch.probe.watch(Watched(targets=targets))
        watch.look()
        assert watch.running == {}
        covered = watch.covered()
        assert (covered.parts, covered.absence) == (0, Absence.CLOSED)


def test_pids_are_pairs(watch: Watch) -> None:
    """A process with a pid namespace of its own is told with both pids, and the first one's."""
    with puppet(prefix=("unshare", "--pid", "--fork", "--kill-child")) as outer:
        (pid,) = children(outer.pid)
        (target,) = watch.on(pid)
        outer.tell("time.sleep(0.001)")
        until(lambda: watch.look() and watch.running[pid].who.host_pid)
        assert watch.running[pid].who.ns_pid == target.ns_pid == 1
        assert watch.running[pid].who.pid == pid != 1
        outer.tell("os._exit(13)")
        event = watch.event()
        assert (event.exit_code, event.pid, event.ns_pid) == (13, pid, 1)


def children(pid: int) -> list[int]:
    """The processes that a process has made."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory control group of 32 MiB."""
    group = MEMORY / f"model-probe-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(32 << 20))
    except OSError as error:
        pytest.skip(f"no control group can be made in {MEMORY}: {error.strerror}")
    yield group
    until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


@pytest.mark.parametrize("watched", [True, False])
def test_oom_kill(watch: Watch, small_group: Path, watched: bool) -> None:
    """An OOM kill is told with pid and command, whether its victim is watched or not."""
    with puppet() as one, puppet() as other:
        watch.on(one.pid if watched else other.pid)
        (small_group / "cgroup.procs").write_text(str(one.pid))
        one.tell("block = bytearray(101 << 20)")
        until(lambda: watch.look() and watch.events)
        assert one.process.wait() == -signal.SIGKILL
        event = watch.events[0]
        assert (event.happened, event.comm[:6]) == (Happened.OOM_KILL, "python")
        if watched:
            assert (event.pid, bool(event.label)) == (one.pid, True)
            until(lambda: watch.look() and len(watch.events) == 2)
            assert watch.events[1].signal == signal.SIGKILL
        else:
            assert (event.pid, event.label) == (0, "")
            assert event.host_pid > 0


def test_nothing_stays(watch: Watch) -> None:
    """Of a process that ended, and then is let go of, no entry stays in the program's tables."""
    with puppet() as one:
        watch.on(one.pid)
        one.do("pass")
        one.process.kill()
        watch.event()
    watch.probe.watch(Watched())
    for name in ("tgids", "names"):
        entries = sum(count for *_, count in watch.probe._slots._maps[name].batches(256))
        assert entries == 0
    assert len(watch.probe._slots._free) == 128
