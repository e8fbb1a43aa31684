"""What is left behind is healed once, told, and keeps new faults away until then."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.entries import By, Noted, Step
from chaos.healing import blocked, heal_run, recover, write_off
from chaos.injector_lock import InjectorLock
from chaos.journal import NAME, Clocks, Journal
from chaos.processes import Process
from chaos.undo.disarm import Disarm
from chaos.undo.restart import Restart
from chaos.undo.resume import Resume
from chaos.vocabulary import Ending
from tests.chaos.plans import plan, steps
from tests.chaos.victims import me, sleeper, stop

DEAD = replace(me(), start_ticks=1)
TARGET = "port:8081"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A new one."""
    return Journal(tmp_path / "state")


def _at(journal: Journal, boottime: float, unix: float = 0.0) -> Journal:
    return Journal(journal.folder, Clocks(boottime=lambda: boottime, unix=lambda: unix))


def test_dead(journal: Journal) -> None:
    """What a dead injector left is healed at the next start, and only once."""
    with sleeper() as child:
        planned = journal.plan(plan("one", Resume.of([Process.from_pid(child.pid)]), session=DEAD))
        stop(child)
        [(entry, healing)] = recover(journal)
        assert (entry, healing.ending) == (planned, Ending.HEALED)
        assert steps(journal) == ["one planned", "one healing recover", "one healed recover"]
        assert recover(journal) == []


def test_living(journal: Journal) -> None:
    """A living injector heals for itself, until its time is over."""
    journal.plan(plan("one", heal_by=100.0))
    assert recover(_at(journal, 99.0)) == []
    assert len(recover(_at(journal, 100.0))) == 1


def test_late(journal: Journal) -> None:
    """How late it was healed is told, counted from when it should have been."""
    with sleeper() as child:
        undo = Resume.of([Process.from_pid(child.pid)])
        journal.plan(plan("one", undo, session=DEAD, heal_by=100.0))
        stop(child)
        [(_, healing)] = recover(_at(journal, 118.0))
        assert healing.text.startswith("reverted late (by 18.0 s): ")
        last = journal.read().entries[-1]
        assert isinstance(last, Noted)
        assert last.late_seconds == 18.0


def test_late_across_boots(journal: Journal) -> None:
    """After a reboot the date tells how late it was."""
    before = _at(journal, 1_000.0, unix=50_000.0)
    before.plan(plan("one", session=replace(me(), boot_id="former"), heal_by=1_030.0))
    [(_, healing)] = recover(_at(journal, 7.0, unix=50_100.0))
    last = journal.read().entries[-1]
    assert isinstance(last, Noted)
    assert (healing.ending, last.late_seconds) == (Ending.MOOT, 70.0)


def test_elsewhere(journal: Journal) -> None:
    """An injector that cannot be seen from here lives as long as its lock is held."""
    other = replace(me(), namespace=me().namespace + 1)
    journal.plan(plan("one", session=other))
    with InjectorLock(journal.folder, other):
        assert recover(journal) == []
    assert len(recover(journal)) == 1


def test_each(journal: Journal) -> None:
    """All that is outstanding is healed, whatever became of the one before."""
    journal.plan(plan("one", Disarm(journal.folder), session=DEAD))
    journal.plan(plan("two", session=DEAD))
    endings = {entry.run: healing.ending for entry, healing in recover(journal)}
    assert endings == {"one": Ending.FAILED, "two": Ending.MOOT}


def test_blocked(journal: Journal) -> None:
    """Nothing is injected into a target that could not be healed, until it is; others are free."""
    journal.plan(plan("one", Disarm(journal.folder), session=DEAD))
    recover(journal)
    told = blocked(journal.read().entries, TARGET)
    assert told is not None
    assert f"target {TARGET} is not healed: run one of pause: page {journal.folder}" in told
    assert "model-probe chaos recover" in told
    assert blocked(journal.read().entries, "port:9") is None
    assert [healing.ending for _, healing in recover(journal)] == [Ending.FAILED]
    write_off(journal, "one", "looked: nothing is left")
    assert blocked(journal.read().entries, TARGET) is None
    assert steps(journal)[-1] == "one moot person"


def test_blocked_while_outstanding(journal: Journal) -> None:
    """Nor into one with a fault that nobody has tried to undo yet."""
    journal.plan(plan("one", session=DEAD))
    assert "is outstanding" in (blocked(journal.read().entries, TARGET) or "")
    recover(journal)
    assert blocked(journal.read().entries, TARGET) is None


def test_lost_plan(journal: Journal) -> None:
    """A run whose plan was damaged is told as failed and blocks every target: whose it was is not
    known any more.
    """
    journal.plan(plan("one", session=DEAD))
    journal.note("one", Step.INJECTED, By.INJECTOR)
    path = journal.folder / NAME
    path.write_bytes(path.read_bytes().replace(b"sigstop", b"sigstoP"))
    [(entry, healing)] = recover(journal)
    assert (entry.run, healing.ending) == ("one", Ending.FAILED)
    assert "its plan cannot be read" in healing.text
    assert "run one" in (blocked(journal.read().entries, "port:9") or "")
    write_off(journal, "one", "looked: nothing is left")
    assert recover(journal) == []
    assert blocked(journal.read().entries, "port:9") is None


def test_write_off_unknown(journal: Journal) -> None:
    """Only what is outstanding can be written off."""
    with pytest.raises(ValueError, match="two is not outstanding"):
        write_off(journal, "two", "no")


def test_unwritable(journal: Journal) -> None:
    """That the journal cannot be written does not keep a victim stopped, and is told."""
    with sleeper() as child:
        process = Process.from_pid(child.pid)
        planned = journal.plan(plan("one", Resume.of([process]), session=DEAD))
        stop(child)
        shutil.rmtree(journal.folder)
        journal.folder.write_text("in its place")
        healing = heal_run(journal, planned, By.INJECTOR)
        assert healing.ending is Ending.HEALED
        assert "the journal missed it" in healing.text
        assert process.state() != "T"


def test_lesser_undo(journal: Journal) -> None:
    """An injector that knows that nobody was hurt spares the target what it had planned."""
    with sleeper() as child:
        planned = journal.plan(plan("one", Restart(Process.from_pid(child.pid))))
        assert heal_run(journal, planned, By.INJECTOR, undo=Resume(())).ending is Ending.MOOT
        assert child.poll() is None
        assert steps(journal)[-1] == "one moot injector"


def test_again(journal: Journal) -> None:
    """Another try is noted only if it tells something new."""
    with sleeper() as child:
        planned = journal.plan(plan("one", Resume.of([Process.from_pid(child.pid)])))
        count = len(steps(journal))
        for before in (Ending.HEALED, Ending.MOOT):
            heal_run(journal, planned, By.GUARDIAN, before=before)
        assert len(steps(journal)) == count
        stop(child)
        heal_run(journal, planned, By.GUARDIAN, before=Ending.MOOT)
        assert steps(journal)[count:] == ["one healed guardian"]
        heal_run(journal, planned, By.GUARDIAN, before=Ending.FAILED)
        assert steps(journal)[count + 1 :] == ["one moot guardian"]
