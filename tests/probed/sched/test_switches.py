"""How threads get their CPUs, against the kernel's own accounts of the same processes."""

from __future__ import annotations

import os

import pytest

from sidecar.probed.probe import Watched
from sidecar.probed.sched import SPARE_FILES
from sidecar.probed.sched_frames import BOUNDS_NS, OffCpu, Running
from sidecar.signals import CollectorState
from tests.probed.sched.puppet import SCRIPT, Puppet, Watch, puppet, spinning, until

pytestmark = pytest.mark.ebpf
SLEEPS = "[time.sleep(0.005) for _ in range(97)]"
THREADS = SCRIPT.replace(
    'print("ready"',
    """
go, never, rested = threading.Semaphore(0), threading.Semaphore(0), []
def rest():
    go.acquire()
    time.sleep(0.2)
    rested.append(1)
    never.acquire()
for _ in range(300):
    threading.Thread(target=rest, daemon=True).start()
print("ready\"""",
)
BURN = "t = time.process_time()\\nwhile time.process_time() - t < {}: pass"


def burn(seconds: float) -> str:
    """A line that uses so much CPU."""
    return f"exec('{BURN.format(seconds)}')"


def at_least(nanoseconds: int) -> int:
    """The first bucket all of whose durations are longer than the bucket's before."""
    return next(i for i, bound in enumerate(BOUNDS_NS) if bound > nanoseconds)


def seen(watch: Watch, one: Puppet) -> tuple[Running, OffCpu]:
    """The figures of a process as they stand."""
    watch.look()
    return watch.running[one.pid], watch.off[one.pid]


def test_sleeps_are_counted(watch: Watch) -> None:
    """97 sleeps of 5 ms are 97 durations of at least 4 ms, asleep and not stopped."""
    with puppet() as one:
        watch.on(one.pid)
        one.do(SLEEPS)
        _, off = seen(watch, one)
        assert sum(off.sleep.counts[at_least(5_000_000) :]) == 97
        assert off.sleep.sum_ns >= 97 * 5_000_000
        assert sum(off.stopped.counts) == 0


def test_the_kernel_counts_the_same(watch: Watch) -> None:
    """Voluntary and involuntary switches are those of /proc, and so is the time waited, to the
    nanosecond.
    """
    with puppet() as one:
        watch.on(one.pid)
        one.do("pass")  # from its first switch on the thread is known
        first, _ = seen(watch, one)
        switches, waited = one.switches(), one.waited_ns()
        one.do(SLEEPS + "; " + burn(0.05))
        last, _ = seen(watch, one)
        voluntary, involuntary = one.switches()
        assert last.voluntary - first.voluntary == voluntary - switches[0] >= 97
        assert last.involuntary - first.involuntary == involuntary - switches[1]
        assert last.waits.sum_ns - first.waits.sum_ns == one.waited_ns() - waited
        assert last.missed == 0
        assert last.waits.count - first.waits.count == sum(one.switches()) - sum(switches)


def test_contention_is_waiting(prebuilt_watch: Watch) -> None:
    """Of a thread that shares its CPU with three others the waiting is longer than half of its
    running, in many turns, each of which is also a preemption.
    """
    watch, cpu = prebuilt_watch, min(os.sched_getaffinity(0))
    with puppet() as one, spinning(cpu, 3):
        watch.on(one.pid)
        one.do(f"os.sched_setaffinity(0, {{{cpu}}})")
        first, before = seen(watch, one)
        one.do(burn(0.2))
        last, after = seen(watch, one)
        used = last.cpu_ns - first.cpu_ns
        assert used >= 200_000_000
        assert last.waits.sum_ns - first.waits.sum_ns > used / 2
        assert after.preempted.count - before.preempted.count >= 7
        assert after.preempted.sum_ns - before.preempted.sum_ns > used / 4


def test_stopped_is_not_asleep(prebuilt_watch: Watch) -> None:
    """A process that is stopped with SIGSTOP and goes on was stopped once."""
    watch = prebuilt_watch
    with puppet() as one:
        watch.on(one.pid)
        one.do("pass")
        one.tell("os.kill(os.getpid(), signal.SIGSTOP)")
        until(lambda: not one.asleep())
        until(lambda: state(one.pid) == "T")
        os.kill(one.pid, 18)
        one._hear("done")
        one.do("pass")
        _, off = seen(watch, one)
        assert off.stopped.count == 1


def state(pid: int) -> str:
    """The state letter of a process."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_threads_that_were_there(watch: Watch) -> None:
    """A process of 301 threads is attached whole: a long sleep of each of 300 is seen."""
    with puppet(THREADS) as one:
        watch.on(one.pid)
        covered = watch.covered()
        assert (covered.parts, covered.reason) == (301, "")
        one.do("go.release(300)")
        one.do("exec('while len(rested) < 300: time.sleep(0.01)')")
        # The last to have rested may not have left its CPU again, and only then its sleep is seen.
        until(lambda: sum(seen(watch, one)[1].sleep.counts[at_least(200_000_000) :]) >= 300)
        last, off = seen(watch, one)
        assert sum(off.sleep.counts[at_least(200_000_000) :]) == 300
        assert (last.threads, last.missed) == (301, 0)


def test_threads_begun_later(watch: Watch) -> None:
    """53 threads that begin after the process was attached are seen: one long sleep of each."""
    with puppet() as one:
        watch.on(one.pid)
        one.do("rest = lambda: (time.sleep(0.2), time.sleep(0.001))")  # the last one is not seen
        one.do("for _ in range(53): threading.Thread(target=rest).start()")
        one.do("exec('while threading.active_count() > 1: time.sleep(0.01)')")
        _, off = seen(watch, one)
        assert sum(off.sleep.counts[at_least(200_000_000) :]) == 53
        assert watch.covered().parts == 1


def test_threads_that_run_once(watch: Watch) -> None:
    """Of 53 threads that end before they ever leave their CPU each has waited for it once."""
    with puppet() as one:
        watch.on(one.pid)
        one.do("pass")
        switches, (first, _) = sum(one.switches()), seen(watch, one)
        one.do("for _ in range(53): one = threading.Thread(target=int); one.start(); one.join()")
        last, _ = seen(watch, one)
        main = sum(one.switches()) - switches
        assert last.waits.count - first.waits.count >= 53 + main
        others = last.voluntary + last.involuntary - first.voluntary - first.involuntary - main
        assert last.waits.count - first.waits.count == 53 + main + others


def test_child_processes_are_not_charged(prebuilt_watch: Watch) -> None:
    """What a child process does is not its parent's."""
    watch = prebuilt_watch
    with puppet() as one:
        watch.on(one.pid)
        one.do("child = subprocess.Popen([sys.executable, '-c', 'import time; " + SLEEPS + "'])")
        one.do("child.wait()")
        _, off = seen(watch, one)
        assert off.sleep.count < 97


def test_a_second_event_counts_once(prebuilt_watch: Watch) -> None:
    """A thread that is attached twice is counted once."""
    watch = prebuilt_watch
    with puppet() as one:
        watch.on(one.pid)
        (followed,) = watch.probe._followed.values()
        assert followed.threads
        followed.threads.again()
        followed.threads._old, kept = [], followed.threads._old
        until(lambda: watch.look() and followed.threads and followed.threads.done)
        one.do("pass")
        before, (first, _) = one.switches(), seen(watch, one)
        one.do(SLEEPS)
        last, _ = seen(watch, one)
        assert last.voluntary - first.voluntary == one.switches()[0] - before[0]
        assert last.missed == 0
        for fd in kept:
            os.close(fd)


def test_both_loaders_say_the_same(watches: tuple[Watch, Watch]) -> None:
    """Watching the same process, both loaders' programs give the same counts and waits."""
    with puppet() as one:
        for watch in watches:
            watch.on(one.pid)
        one.do(SLEEPS + "; " + burn(0.05))
        (ours, off), (theirs, other_off) = (seen(watch, one) for watch in watches)
        assert ours.voluntary == theirs.voluntary >= 97
        assert (ours.involuntary, ours.missed) == (theirs.involuntary, theirs.missed)
        assert ours.waits == theirs.waits
        assert off.preempted == other_off.preempted
        assert off.sleep.count == other_off.sleep.count


def test_open_files_are_spared(prebuilt_watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """When few open files are left threads are left out, counted and named, and nothing leaks."""
    watch, held = prebuilt_watch, len(os.listdir("/proc/self/fd"))
    with puppet(THREADS) as one:
        monkeypatch.setattr(watch.probe, "_most_files", held + SPARE_FILES + 101)
        watch.on(one.pid)
        covered = watch.covered()
        assert 0 < covered.parts < 301
        assert f"{301 - covered.parts} threads are too many" in covered.reason
        assert covered.state is not CollectorState.BLIND
    watch.probe.watch(Watched())
    until(lambda: watch.look() and len(os.listdir("/proc/self/fd")) <= held + 2)


def test_coverage(prebuilt_watch: Watch) -> None:
    """Attached while its process does nothing, firing once it has done something."""
    watch = prebuilt_watch
    with puppet() as one:
        (target,) = watch.on(one.pid)
        covered = watch.covered()
        assert (covered.state, covered.parts) == (CollectorState.ATTACHED, 1)
        assert (covered.process, covered.pid) == (target.label, one.pid)
        one.do("pass")
        watch.look()
        assert watch.covered().state is CollectorState.FIRING


def test_page_faults(prebuilt_watch: Watch) -> None:
    """Each of 101 pages that are touched for the first time is a minor fault."""
    with puppet() as one:
        one.do("import mmap; m = mmap.mmap(-1, 101 * 4096); m.madvise(mmap.MADV_NOHUGEPAGE)")
        prebuilt_watch.on(one.pid)
        first, _ = seen(prebuilt_watch, one)
        one.do("exec('for i in range(101): m[i * 4096] = 1')")
        last, _ = seen(prebuilt_watch, one)
        assert 101 <= last.minor_faults - first.minor_faults < 401
        assert last.major_faults == first.major_faults
