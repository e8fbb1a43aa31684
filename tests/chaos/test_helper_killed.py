"""FC-42: five runs: one injector is killed, one loses its target, one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.entries import By, Noted, Step
from chaos.healing import blocked, recover
from chaos.journal import Journal, Unwritable
from chaos.processes import Process
from chaos.undo.end import VARIABLE, End
from chaos.unended import outstanding
from chaos.vocabulary import Ending
from tests.alarms.waiting import until
from tests.chaos.injector_program import TARGET
from tests.chaos.injectors import scene
from tests.chaos.plans import plan
from tests.chaos.victims import me, sleeper


def _ending(journal: Journal, run: str) -> Noted:
    entries = [entry for entry in journal.read().entries if entry.run == run]
    last = entries[-1]
    assert isinstance(last, Noted)
    return last


def test_five_runs(tmp_path: Path) -> None:
    """Two in time, one late, one moot, one never injected: two of three, nothing left behind."""
    folder = tmp_path / "state"
    journal = Journal(folder)
    with sleeper() as engine:
        process = Process.from_pid(engine.pid)
        for run in ("1", "2"):
            with scene(folder, engine, run=run) as found:
                found.to("locked")
                assert found.to_the_end() == 0
        with scene(folder, engine, run="3", heal_in=0.2) as found:
            found.to("watched")
            found.go_on()
            until(lambda: process.state() == "T")
            found.kill_guardian()  # with its injector: the node took the whole pod
            found.kill()
        _third(journal, process)
        with scene(folder, engine, run="4") as found:
            found.to("injected")
            engine.kill()
            engine.wait()
            with sleeper() as successor:
                assert found.to_the_end() == 0
                assert successor.poll() is None
    with sleeper() as engine:
        with pytest.raises(Unwritable, match="No such file"):
            Journal(tmp_path / "none/state").plan(plan("5"))
        assert Process.from_pid(engine.pid).state() != "T"
    endings = [(str(n.step), str(n.by)) for n in (_ending(journal, run) for run in "1234")]
    healed = ("healed", "injector")
    assert endings == [healed, healed, ("healed", "recover"), ("moot", "injector")]
    in_time = [run for run in "123" if not _ending(journal, run).late_seconds]
    assert in_time == ["1", "2"]
    assert outstanding(journal.read().entries) == []


def _third(journal: Journal, process: Process) -> None:
    """Found at the next start: refused until reverted, and late by so much."""
    [planned] = outstanding(journal.read().entries)
    until(lambda: journal.clocks.boottime() > planned.plan.heal_by)
    assert process.state() == "T"
    assert "run 3" in (blocked(journal.read().entries, TARGET) or "")
    [(_, healing)] = recover(journal)
    assert healing.ending is Ending.HEALED
    assert healing.text.startswith("reverted late (by ")
    late = journal.clocks.boottime() - planned.plan.heal_by
    assert 0 < _ending(journal, "3").late_seconds <= late
    assert process.state() != "T"
    assert blocked(journal.read().entries, TARGET) is None


def test_memory_hog(tmp_path: Path) -> None:
    """A hog whose injector was killed is on no process list after the next start."""
    journal = Journal(tmp_path / "state")
    with sleeper() as injector:
        session = Process.from_pid(injector.pid)
    token = "f00dfeedf00dfeed"  # noqa: S105  # no password
    journal.plan(plan("3", End(token, namespace=me().namespace), session=session))
    with sleeper({VARIABLE: token}) as hog:
        journal.note("3", Step.INJECTED, By.INJECTOR)
        assert [healing.ending for _, healing in recover(journal)] == [Ending.HEALED]
        assert hog.wait() == -15
    assert _ending(journal, "3").by is By.RECOVER
