"""Stopped processes run again."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from chaos.processes import Process
from chaos.undo import heal
from chaos.undo.resume import Resume
from chaos.undo.undo import World
from chaos.vocabulary import Ending
from tests.alarms.waiting import until
from tests.chaos.victims import sleeper, started, stop

# Its child opens a FIFO before it executes, until when its parent sleeps (vfork(2)).
SPAWNS = """
import os, sys, time
opening = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)
os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[opening])
print("on", flush=True)
time.sleep(600)
"""


def test_runs_again() -> None:
    """A stopped process is seen to run, and a second time there is nothing to do."""
    with sleeper() as child:
        process = Process.from_pid(child.pid)
        undo = Resume.of([process])
        stop(child)
        assert heal(undo).ending is Ending.HEALED
        assert process.state() in ("R", "S")
        assert heal(undo).ending is Ending.MOOT


def test_never_stopped() -> None:
    """Nothing is sent to one that runs."""
    with sleeper() as child:
        assert heal(Resume((Process.from_pid(child.pid),))).ending is Ending.MOOT


def test_on_its_way(tmp_path: Path) -> None:
    """A SIGSTOP that has not been delivered yet never is: the victim was asleep in the kernel."""
    os.mkfifo(tmp_path / "fifo")
    with started(sys.executable, "-c", SPAWNS, str(tmp_path / "fifo")) as child:
        assert child.stdout is not None
        process = Process.from_pid(child.pid)
        until(lambda: process.state() == "D")
        child.send_signal(signal.SIGSTOP)
        assert process.state() == "D"
        assert heal(Resume((process,))).ending is Ending.HEALED
        (tmp_path / "fifo").write_text("")
        assert child.stdout.readline() == b"on\n"


def test_ended() -> None:
    """A victim that is gone has nothing left to undo."""
    with sleeper() as child:
        process = Process.from_pid(child.pid)
        stop(child)
        child.kill()
        child.wait()
        healing = heal(Resume((process,)))
        assert (healing.ending, healing.text) == (Ending.MOOT, f"process {child.pid} has ended")


def test_one_of_two() -> None:
    """That one of two is gone does not keep the other from being resumed."""
    with sleeper() as one, sleeper() as other:
        processes = (Process.from_pid(one.pid), Process.from_pid(other.pid))
        one.kill()
        one.wait()
        stop(other)
        assert heal(Resume(processes)).ending is Ending.HEALED
        assert processes[1].state() in ("R", "S")


def test_stopped_by_somebody_else() -> None:
    """Whoever was stopped before is not listed, so is not resumed."""
    with sleeper() as child:
        stop(child)
        assert Resume.of([Process.from_pid(child.pid)]) == Resume(())


def test_another_namespace() -> None:
    """One that cannot be seen from here is not given up for gone."""
    with sleeper() as child:
        process = Process.from_pid(child.pid)
        healing = heal(Resume((replace(process, namespace=process.namespace + 1),)))
        assert healing.ending is Ending.FAILED
        assert "nsenter" in healing.text


def test_does_not_resume(tmp_path: Path) -> None:
    """One that is still stopped after SIGCONT, as in a frozen cgroup, is a failure."""
    with sleeper() as child:
        process = replace(Process.from_pid(child.pid), namespace=0)
        (tmp_path / "sys/kernel/random").mkdir(parents=True)
        (tmp_path / "sys/kernel/random/boot_id").write_text(process.boot_id)
        (tmp_path / str(child.pid)).mkdir()
        stat = f"{child.pid} (sleep) T {'1 ' * 18}{process.start_ticks} 1"
        (tmp_path / f"{child.pid}/stat").write_text(stat)
        healing = heal(Resume((process,)), World(proc=tmp_path, patience=0.01))
        assert healing.ending is Ending.FAILED
        assert "is its cgroup frozen" in healing.text
