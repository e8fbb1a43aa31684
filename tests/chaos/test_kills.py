"""kill -9 at any moment, to anybody: the victim runs again, and the journal knows."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from chaos.healing import recover
from chaos.injector_lock import Busy, InjectorLock
from chaos.unended import outstanding
from chaos.vocabulary import Ending
from tests.alarms.waiting import until
from tests.chaos.injector_program import STEPS
from tests.chaos.injectors import Scene, scene
from tests.chaos.plans import steps
from tests.chaos.victims import me

SEED = 20_261_130
FEW = range(11)
MANY = range(200)
WITHIN_SECONDS = 1.0


def _well(found: Scene) -> None:
    """The victim runs within a second, and nothing is left over once the guardian is done."""
    killed = time.monotonic()
    until(found.runs, WITHIN_SECONDS)
    assert time.monotonic() - killed < WITHIN_SECONDS
    found.guardian_ends()
    reading = found.journal.read()
    assert outstanding(reading.entries) == []
    assert reading.corrupt == 0
    assert recover(found.journal) == []
    assert found.runs()


@pytest.mark.parametrize("step", STEPS)
def test_injector(tmp_path: Path, step: str) -> None:
    """The injector is killed at a step: its guardian heals what it had begun."""
    with scene(tmp_path / "state") as found:
        found.to(step)
        stopped = step in ("stopped", "injected", "seen")
        until(lambda: found.runs() is not stopped)
        found.kill()
        _well(found)
        told = steps(found.journal)
        if stopped:
            assert told[-2:] == ["one healing guardian", "one healed guardian"]
        elif step in ("planned", "watched"):
            assert told == ["one planned", "one healing guardian", "one moot guardian"]


def _any_moment(tmp_path: Path, number: int) -> None:
    rng = random.Random(f"{SEED}/{number}")
    with scene(tmp_path / "state", halt=False) as found:
        found.meet_guardian()
        until(lambda: found.journal.read().seq > 0)
        time.sleep(rng.uniform(0.0, 0.15))  # a moment that nobody chose is the point
        found.kill()
        _well(found)


@pytest.mark.parametrize("number", FEW)
def test_any_moment(tmp_path: Path, number: int) -> None:
    """The injector is killed at any moment, one run after the other behind it."""
    _any_moment(tmp_path, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", MANY)
def test_any_moment_often(tmp_path: Path, number: int) -> None:
    """The same, so often that rare moments are hit."""
    _any_moment(tmp_path, len(FEW) + number)


@pytest.mark.parametrize("step", ["guarded", "planned", "watched", "stopped", "seen"])
def test_guardian(tmp_path: Path, step: str) -> None:
    """The guardian is killed at a step: the injector heals by itself, and stops."""
    with scene(tmp_path / "state") as found:
        found.to(step)
        found.kill_guardian()
        assert found.to_the_end() == 3
        assert found.runs()
        assert steps(found.journal)[-1] in ("one healed injector", "one moot injector")
        assert outstanding(found.journal.read().entries) == []


@pytest.mark.parametrize("step", ["planned", "watched", "stopped", "injected", "healed"])
def test_both(tmp_path: Path, step: str) -> None:
    """Both are killed at a step: the next start heals."""
    with scene(tmp_path / "state") as found:
        found.to(step)
        found.kill_guardian()
        found.kill()
        stopped = step in ("stopped", "injected")
        until(lambda: found.runs() is not stopped)
        healed = [healing.ending for _, healing in recover(found.journal)]
        assert healed == ([] if step == "healed" else [Ending.HEALED if stopped else Ending.MOOT])
        _well(found)


@pytest.mark.parametrize("step", ["planned", "injected"])
def test_victim(tmp_path: Path, step: str) -> None:
    """The victim is killed at a step: nothing is left to undo, which is no failure."""
    with scene(tmp_path / "state") as found:
        found.to(step)
        found.child.kill()
        found.child.wait()
        assert found.to_the_end() == 0
        assert "one moot injector" in steps(found.journal)
        assert outstanding(found.journal.read().entries) == []


def test_victim_and_injector(tmp_path: Path) -> None:
    """Both the victim and the injector are killed: the guardian finds nothing left to undo."""
    with scene(tmp_path / "state") as found:
        found.to("injected")
        found.child.kill()
        found.child.wait()
        found.kill()
        found.guardian_ends()
        assert steps(found.journal)[-1] == "one moot guardian"


def test_leaked_pipe(tmp_path: Path) -> None:
    """A child that inherited the guardian's pipe does not hide the injector's death."""
    with scene(tmp_path / "state", leak=True) as found:
        assert found.line() == "locked"
        found.go_on()
        leak = found.meet_process()
        try:
            found.meet_guardian()
            found.to("injected")
            found.kill()
            _well(found)
            assert leak.alive()
        finally:
            leak.signal(signal.SIGKILL)


def test_second_injector(tmp_path: Path) -> None:
    """While one lives another is refused, and heals nothing of the first."""
    with scene(tmp_path / "state") as first:
        first.to("injected")
        assert recover(first.journal) == []
        with (
            pytest.raises(Busy, match=f"process {first.injector.pid},"),
            InjectorLock(tmp_path / "state", me()),
        ):
            pytest.fail("it came in")
        assert not first.runs()
        assert first.to_the_end() == 0
        assert first.runs()
