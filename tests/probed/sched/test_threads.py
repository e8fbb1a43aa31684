"""Attaching a process thread by thread, on a made-up /proc with a kernel that says no."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.probed import sched_threads
from sidecar.probed.sched_threads import Threads
from sidecar.signals import Absence

PID = 100


class Kernel:
    """Opens a descriptor for each thread, or fails with ``refuses`` of it."""

    def __init__(self, refuses: Callable[[int], int] = lambda tid: 0) -> None:
        self.opened: list[int] = []
        self.fds: list[int] = []
        self._refuses = refuses

    def open(self, tid: int, program: int) -> int:
        if code := self._refuses(tid):
            raise OSError(code, os.strerror(code))
        self.opened.append(tid)
        self.fds.append(os.open(os.devnull, os.O_RDONLY))
        return self.fds[-1]

    def still_open(self) -> int:
        return sum(os.path.exists(f"/proc/self/fd/{fd}") for fd in self.fds)


def process(proc: Path, *tids: int) -> None:
    """Adds threads to the made-up process."""
    for tid in tids:
        (proc / str(PID) / "task" / str(tid)).mkdir(parents=True)


def attach(proc: Path, kernel: Kernel) -> Threads:
    """Attaches as far as it goes without a deadline."""
    threads = Threads(PID, 7, kernel.open, proc)
    threads.step(1.0, lambda: 0.0)
    return threads


def test_every_thread_once(tmp_path: Path) -> None:
    """Each of 13 threads gets one event, the first listed first."""
    process(tmp_path, *range(PID, PID + 13))
    kernel = Kernel()
    threads = attach(tmp_path, kernel)
    assert kernel.opened == list(range(PID, PID + 13))
    assert (threads.attached, threads.done, threads.failure) == (13, True, None)
    threads.close()
    assert kernel.still_open() == 0


def test_threads_begun_meanwhile(tmp_path: Path) -> None:
    """A thread that appears while others are attached is found by the next listing."""
    process(tmp_path, PID)
    kernel = Kernel()

    def begins(tid: int) -> int:
        if tid == PID:
            process(tmp_path, PID + 1)
        return 0

    kernel._refuses = begins
    assert attach(tmp_path, kernel).attached == 2


def test_always_more_threads(tmp_path: Path) -> None:
    """A process that makes threads as fast as they are listed does not keep us for ever: what it
    makes after that inherits its events.
    """
    process(tmp_path, PID)
    kernel = Kernel()

    def begins(tid: int) -> int:
        process(tmp_path, tid + 1)
        return 0

    kernel._refuses = begins
    assert attach(tmp_path, kernel).done


def test_stops_at_the_deadline(tmp_path: Path) -> None:
    """Past its deadline it stops after the thread at hand, and goes on at the next call."""
    process(tmp_path, *range(PID, PID + 7))
    kernel, now = Kernel(), 0.0

    def clock() -> float:
        nonlocal now
        now += 0.01
        return now

    threads = Threads(PID, 7, kernel.open, tmp_path)
    threads.step(0.045, clock)
    assert 0 < threads.attached < 7
    assert not threads.done
    threads.step(10.0, clock)
    assert (threads.attached, threads.done) == (7, True)


def test_a_thread_that_ended(tmp_path: Path) -> None:
    """A thread that ends before it is attached is passed over."""
    process(tmp_path, *range(PID, PID + 5))
    kernel = Kernel(lambda tid: errno.ESRCH if tid == PID + 2 else 0)
    threads = attach(tmp_path, kernel)
    assert (threads.attached, threads.failure, threads.left_out) == (4, None, 0)


def test_a_process_that_ended(tmp_path: Path) -> None:
    """A process without an entry in /proc is done with nothing attached."""
    threads = attach(tmp_path, Kernel())
    assert (threads.attached, threads.done, threads.failure) == (0, True, None)


@pytest.mark.parametrize(
    ("code", "absence", "words"),
    [
        (errno.EPERM, Absence.NO_PERMISSION, "CAP_PERFMON"),
        (errno.EACCES, Absence.NO_PERMISSION, "CAP_PERFMON"),
        (errno.EMFILE, Absence.TOO_LARGE, "nofile"),
        (errno.ENOSYS, Absence.UNSUPPORTED, "kernel"),
    ],
)
def test_refused(tmp_path: Path, code: int, absence: Absence, words: str) -> None:
    """Each refusal has its name and its remedy, and the kernel is not asked again."""
    process(tmp_path, PID, PID + 1)
    asked: list[int] = []
    threads = attach(tmp_path, Kernel(lambda tid: asked.append(tid) or code))
    assert threads.failure is not None
    assert threads.failure.absence is absence
    assert words in threads.failure.reason
    assert (asked, threads.done) == ([PID], True)


def test_out_of_descriptors(tmp_path: Path) -> None:
    """When open files run out those attached stay, and the others are counted as left out."""
    process(tmp_path, *range(PID, PID + 11))
    kernel = Kernel(lambda tid: errno.EMFILE if tid >= PID + 4 else 0)
    threads = attach(tmp_path, kernel)
    assert (threads.attached, threads.left_out, threads.failure) == (4, 7, None)
    assert kernel.still_open() == 4


def test_too_many_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the cap threads are left out and counted."""
    monkeypatch.setattr(sched_threads, "MAX_THREADS", 3)
    process(tmp_path, *range(PID, PID + 8))
    threads = attach(tmp_path, Kernel())
    assert (threads.attached, threads.left_out) == (3, 5)


def test_again_keeps_the_old_until_the_new(tmp_path: Path) -> None:
    """Attaching anew closes the earlier events only when the new ones are there."""
    process(tmp_path, PID, PID + 1)
    kernel = Kernel()
    threads = attach(tmp_path, kernel)
    threads.again()
    assert kernel.still_open() == 2
    threads.step(1.0, lambda: 0.0)
    assert (len(kernel.opened), kernel.still_open()) == (4, 2)


def test_letting_go_is_bounded(tmp_path: Path) -> None:
    """Past its deadline it stops, and the rest is closed at later calls."""
    process(tmp_path, *range(PID, PID + 7))
    kernel, now = Kernel(), 0.0
    threads = attach(tmp_path, kernel)

    def clock() -> float:
        nonlocal now
        now += 0.01
        return now

    assert not threads.let_go(0.045, clock)
    assert 0 < kernel.still_open() < 7
    assert threads.let_go(10.0, clock)
    assert kernel.still_open() == 0


@pytest.mark.parametrize(
    ("code", "absence"), [(errno.EMFILE, Absence.TOO_LARGE), (errno.EIO, Absence.ERROR)]
)
def test_a_listing_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, absence: Absence
) -> None:
    """Threads that could not be listed are no process that has ended: it is blind, and says why."""

    def fails(folder: object) -> list[str]:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "listdir", fails)
    threads = attach(tmp_path, Kernel())
    assert threads.done
    assert threads.failure is not None
    assert threads.failure.absence is absence
