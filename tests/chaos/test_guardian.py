"""The guardian heals what its injector cannot: hung, late, or gone before it was ever watched."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from chaos.entries import By, Plan, Step
from chaos.guardian import Watch
from chaos.journal import NAME, Clocks, Journal
from chaos.processes import Process
from chaos.undo import World
from chaos.undo.disarm import Disarm
from chaos.undo.resume import Resume
from chaos.unended import outstanding
from tests.alarms.waiting import until
from tests.chaos.plans import plan, steps
from tests.chaos.victims import me, sleeper, stop


@dataclass
class Served:
    """A guardian in a thread, with its pipes and a clock that we turn."""

    journal: Journal
    orders: int
    answers: int
    leave: int
    now: list[float]
    left: list[str] | None = None
    thread: threading.Thread | None = None

    def order(self, line: str) -> None:
        """Tells it something."""
        os.write(self.orders, f"{line}\n".encode())

    def answer(self) -> str:
        """What it says next."""
        return os.read(self.answers, 4_096).decode().strip()

    def over(self) -> list[str]:
        """What it could not heal, once it has ended."""
        assert self.thread is not None
        self.thread.join(20)
        assert self.left is not None, "it goes on"
        return self.left


@contextmanager
def serving(folder: Path, session: Process | None = None) -> Iterator[Served]:
    """It is ready, and has ended afterwards."""
    now = [100.0]
    pipes = [os.pipe() for _ in range(3)]
    (orders, told), (heard, answers), (leave, leaving) = pipes
    clocks = Clocks(boottime=lambda: now[0])
    served = Served(Journal(folder, clocks), told, heard, leaving, now)
    watch = Watch(served.journal, session or me(), World(), again=0.01)

    def serve() -> None:
        served.left = watch.serve(orders, answers, leave)

    served.thread = threading.Thread(target=serve)
    served.thread.start()
    try:
        yield served
    finally:
        os.write(leaving, b"x")
        served.thread.join(20)
        for descriptor in (descriptor for pipe in pipes for descriptor in pipe):
            os.close(descriptor)


def _plan(victim: Process, run: str = "one", heal_by: float = 130.0) -> Plan:
    return plan(run, Resume.of([victim]), heal_by=heal_by)


def test_overdue(tmp_path: Path) -> None:
    """A run whose time is over is healed though its injector lives, and again whenever the hung
    injector comes back and injects after all; the others go on.
    """
    with sleeper() as one, sleeper() as two, serving(tmp_path / "state") as served:
        assert served.answer() == "ready"
        victims = [Process.from_pid(child.pid) for child in (one, two)]
        served.journal.plan(_plan(victims[0]))
        served.journal.plan(_plan(victims[1], "two", heal_by=900.0))
        for run, child in (("one", one), ("two", two)):
            served.order(f"watch {run}")
            assert served.answer() == f"watching {run}"
            stop(child)
        served.now[0] = 148.0
        until(lambda: victims[0].state() != "T")
        until(lambda: "one healed guardian" in steps(served.journal))
        told = [entry for entry in served.journal.read().entries if entry.run == "one"][-1]
        assert getattr(told, "late_seconds", None) == 18.0
        served.journal.note("one", Step.INJECTED, By.INJECTOR)
        stop(one)
        served.now[0] = 160.0
        until(lambda: steps(served.journal).count("one healed guardian") == 2)
        assert victims[0].state() != "T"
        assert victims[1].state() == "T"
        assert [planned.run for planned in outstanding(served.journal.read().entries)] == ["two"]


def test_over_before_it_is_late(tmp_path: Path) -> None:
    """A run that its injector has healed is none of its business any more."""
    with sleeper() as one, sleeper() as two, serving(tmp_path / "state") as served:
        served.answer()
        victims = [Process.from_pid(child.pid) for child in (one, two)]
        for run, victim in zip(("one", "two"), victims, strict=True):
            served.journal.plan(_plan(victim, run))
            served.order(f"watch {run}")
            served.answer()
        served.journal.note("one", Step.HEALED, By.INJECTOR)
        served.order("ended one")
        stop(one)  # by somebody else
        stop(two)
        served.now[0] = 148.0
        until(lambda: victims[1].state() != "T")
        assert victims[0].state() == "T"


@pytest.mark.parametrize("way", ["pipe", "leave"])
def test_end(tmp_path: Path, way: str) -> None:
    """The end of its pipe, or being told to go, makes it heal everything of its session, also what
    it was never told to watch; what is another's it leaves alone.
    """
    with sleeper() as one, sleeper() as two, serving(tmp_path / "state") as served:
        served.answer()
        victims = [Process.from_pid(child.pid) for child in (one, two)]
        served.journal.plan(_plan(victims[0]))
        other = replace(me(), start_ticks=1)
        served.journal.plan(replace(_plan(victims[1], "two"), session=other))
        stop(one)
        stop(two)
        if way == "pipe":
            os.dup2(served.leave, served.orders)  # closes it, and keeps its number in use
        else:
            os.write(served.leave, b"x")
        assert served.over() == []
        assert victims[0].state() in ("R", "S")
        assert victims[1].state() == "T"
        assert steps(served.journal)[-1] == "one healed guardian"


def test_injector_gone(tmp_path: Path) -> None:
    """Started for an injector that is gone already, it heals at once."""
    with sleeper() as injector, sleeper() as victim:
        session, process = Process.from_pid(injector.pid), Process.from_pid(victim.pid)
        injector.kill()
        injector.wait()
        Journal(tmp_path / "state").plan(replace(_plan(process), session=session))
        stop(victim)
        with serving(tmp_path / "state", session) as served:
            assert served.over() == []
        assert process.state() in ("R", "S")


def test_fails(tmp_path: Path) -> None:
    """What cannot be healed is tried three times, noted once, and returned."""
    with serving(tmp_path / "state") as served:
        served.answer()
        served.journal.plan(plan("one", Disarm(tmp_path)))
        os.write(served.leave, b"x")
        [told] = served.over()
        assert told.startswith(f"run one: page {tmp_path} is no regular file")
        assert steps(served.journal) == [
            "one planned",
            "one healing guardian",
            "one failed guardian",
        ]


def test_journal_lost(tmp_path: Path) -> None:
    """With the journal gone it heals what it was told to watch."""
    with sleeper() as victim, serving(tmp_path / "state") as served:
        served.answer()
        process = Process.from_pid(victim.pid)
        served.journal.plan(_plan(process))
        served.order("watch one")
        served.answer()
        stop(victim)
        (tmp_path / "state" / NAME).write_bytes(b"something else\n")
        os.write(served.leave, b"x")
        served.over()
        assert process.state() in ("R", "S")
        assert (tmp_path / "state" / NAME).read_bytes() == b"something else\n"


def test_refuses(tmp_path: Path) -> None:
    """It does not watch what the journal does not hold, nor what is another injector's, nor what
    was healed; and says so.
    """
    with serving(tmp_path / "state") as served:
        served.answer()
        served.journal.plan(replace(plan("two"), session=replace(me(), start_ticks=1)))
        served.journal.plan(plan("three"))
        served.journal.note("three", Step.MOOT, By.RECOVER)
        for run in ("one", "two", "three"):
            served.order(f"watch {run}")
            assert served.answer().startswith(f"refused {run} the journal has no such plan")
        (tmp_path / "state" / NAME).write_bytes(b"something else\n")
        served.order("watch one")
        assert "move it away" in served.answer()


def test_pieces(tmp_path: Path) -> None:
    """Orders may come in pieces, or together, and noise between them changes nothing."""
    with serving(tmp_path / "state") as served:
        served.answer()
        for run in ("one", "two"):
            served.journal.plan(plan(run))
        os.write(served.orders, b"\xff nonsense\n\nwat")
        os.write(served.orders, b"ch one\nwatch two\n")
        said = list[str]()
        while len(said) < 4:
            said += served.answer().split()
        assert said == ["watching", "one", "watching", "two"]
