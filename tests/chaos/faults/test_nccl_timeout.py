"""A rank that does not come, on the stand-in libraries; the hook is shown on the rig's engine."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.faults.nccl_timeout import FAULT, chosen, ranks
from chaos.processes import Process, children
from chaos.target import Refused
from chaos.undo import heal
from chaos.vocabulary import Ending, Proof
from tests.chaos.faults.engines import Engine, engine, needs_driver

pytestmark = needs_driver
ATTACH, DETACH, WALL = 16, 17, 0x40000000  # linux/ptrace.h, linux/wait.h
METHODS = {method.name: method for method in FAULT.methods}


def until(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def stopped(process: Process) -> bool:
    """Whether it comes to be, soon."""
    return until(lambda: process.state() == "T")


def rank_of(one: Engine) -> Process:
    """Its other rank."""
    return ranks(one.target)[1]


def test_the_rank_that_is_chosen_is_not_the_one_that_answers(tmp_path: Path) -> None:
    """What shall be seen is the waiting of the others."""
    with engine(tmp_path, ranks=3) as one:
        found = {chosen(one.target, random.Random(seed)).pid for seed in range(20)}
        assert len(found) == 2
        assert one.process.pid not in found


def test_one_process_alone_waits_for_nobody(tmp_path: Path) -> None:
    """It is said before anything is tried."""
    with engine(tmp_path) as one:
        for method in METHODS.values():
            assert any("needs two" in lack for lack in method.preflight(one.target))


def test_stop_stops_a_rank_until_it_is_undone(tmp_path: Path) -> None:
    """The kernel says both."""
    with engine(tmp_path, ranks=2) as one:
        rank = rank_of(one)
        injection = METHODS["stop"].prepare(one.target, random.Random(1), False)
        assert injection.effect().proof is Proof.ABSENT
        injection.inject()
        assert stopped(rank)
        assert injection.effect().proof is Proof.SEEN
        injection.release()
        assert heal(injection.undo).ending is Ending.HEALED
        assert rank.state() != "T"


def test_stop_astray_stops_nobody_of_the_target(tmp_path: Path) -> None:
    """Though somebody is stopped; and that one is ended."""
    with engine(tmp_path, ranks=2) as one:
        injection = METHODS["stop"].prepare(one.target, random.Random(1), True)
        injection.inject()
        assert injection.effect().proof is Proof.ABSENT
        injection.release()
        assert heal(injection.undo).ending is not Ending.FAILED


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """One of our own, empty."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    roots = [line.split()[4] for line in mounts if " - cgroup2 " in line]
    folder = Path(roots[0] if roots else "/nowhere") / f"model-probe-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup of version 2 can be made here: {error}")
    if not (folder / "cgroup.freeze").exists():
        folder.rmdir()
        pytest.skip("this kernel's cgroups cannot be frozen")
    yield folder
    (folder / "cgroup.freeze").write_text("0")
    deadline = time.monotonic() + 5
    while (folder / "cgroup.procs").read_text() and time.monotonic() < deadline:
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.01)
    folder.rmdir()


@pytest.mark.parametrize("astray", [False, True])
def test_freeze_freezes_a_rank_until_it_is_undone(
    tmp_path: Path, cgroup: Path, astray: bool
) -> None:
    """The kernel says both; astray it says neither."""
    with engine(tmp_path, ranks=2) as one:
        (cgroup / "cgroup.procs").write_text(str(rank_of(one).pid))
        assert METHODS["freeze"].preflight(one.target) == []
        injection = METHODS["freeze"].prepare(one.target, random.Random(1), astray)
        injection.inject()
        frozen = until(lambda: injection.effect().proof is Proof.SEEN, 0.3 if astray else 5.0)
        assert frozen is not astray
        injection.release()
        assert heal(injection.undo).ending is (Ending.MOOT if astray else Ending.HEALED)
        assert injection.effect().proof is Proof.ABSENT


def test_freeze_takes_no_cgroup_that_others_are_in(tmp_path: Path, cgroup: Path) -> None:
    """They would be frozen with it."""
    with engine(tmp_path, ranks=2) as one:
        for process in ranks(one.target):
            (cgroup / "cgroup.procs").write_text(str(process.pid))
        (lack,) = METHODS["freeze"].preflight(one.target)
        assert "shares the cgroup" in lack


def test_a_rank_that_somebody_else_stopped_is_left_to_him(tmp_path: Path) -> None:
    """Undoing would wake what we did not stop."""
    with engine(tmp_path, ranks=2) as one:
        rank = rank_of(one)
        os.kill(rank.pid, signal.SIGSTOP)
        assert stopped(rank)
        with pytest.raises(Refused, match="stopped already"):
            METHODS["stop"].prepare(one.target, random.Random(1), False)
        os.kill(rank.pid, signal.SIGCONT)


def test_stop_astray_starts_nobody_before_it_is_injected(tmp_path: Path) -> None:
    """What is only prepared may never be injected, and nobody would end it."""
    with engine(tmp_path, ranks=2) as one:
        before = {process.pid for process in children(os.getpid())}
        METHODS["stop"].prepare(one.target, random.Random(1), True)
        assert {process.pid for process in children(os.getpid())} == before


def test_a_rank_that_is_traced_is_not_stopped_by_us(tmp_path: Path) -> None:
    """A debugger's stop proves nothing of ours."""
    with engine(tmp_path, ranks=2) as one:
        rank = rank_of(one)
        injection = METHODS["stop"].prepare(one.target, random.Random(1), False)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(ATTACH, rank.pid, None, None):
            pytest.skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
        os.waitpid(rank.pid, WALL)
        try:
            assert rank.state() == "t"
            assert injection.effect().proof is Proof.ABSENT
        finally:
            libc.ptrace(DETACH, rank.pid, None, None)
