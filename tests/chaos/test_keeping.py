"""The journal and the guardian behind a run, both real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.entries import Noted, Planned, Step
from chaos.experiment import Unwatched
from chaos.export import Figures
from chaos.guarding import Guard, GuardianLost
from chaos.healing import blocked
from chaos.journal import Journal
from chaos.keeping import Kept
from chaos.processes import Process
from chaos.target import Refused, Target
from chaos.undo import Undo
from chaos.undo.resume import Resume
from chaos.vocabulary import Effect, Ending, Proof
from tests.chaos.breaking import Breaking, order
from tests.chaos.servers import Chat

TARGET = Target("port:1", "staging")
ORDER = order(lambda _: Breaking(Chat()))


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """Somebody to stop."""
    with subprocess.Popen((sys.executable, "-c", "import time; time.sleep(60)")) as process:
        yield process
        process.kill()


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    """A real one."""
    with Guard(tmp_path / "state", Process.from_pid(os.getpid())) as found:
        yield found


def kept(tmp_path: Path, guard: Guard, figures: Figures | None = None) -> Kept:
    return Kept(Journal(tmp_path / "state"), guard, guard.session, figures)


def undo(victim: subprocess.Popen[bytes]) -> Undo:
    return Resume((Process.from_pid(victim.pid),))


def steps(tmp_path: Path) -> list[Step]:
    entries = Journal(tmp_path / "state").read().entries
    return [Step.PLANNED if isinstance(entry, Planned) else entry.step for entry in entries]


def lost(guard: Guard) -> None:
    """Kills it, and waits until that is known."""
    os.kill(guard.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while guard.alive() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_every_step_is_on_disk(
    tmp_path: Path, guard: Guard, victim: subprocess.Popen[bytes]
) -> None:
    """In its order, from the plan to the healing."""
    keeper = kept(tmp_path, guard)
    keeper.planned(ORDER, TARGET, undo(victim), 5.0)
    os.kill(victim.pid, signal.SIGSTOP)
    keeper.injected(ORDER.id)
    keeper.proven(ORDER.id, Effect(Proof.SEEN, "stopped"))
    assert keeper.heal(ORDER.id, undo(victim)).ending is Ending.HEALED
    assert steps(tmp_path) == [
        Step.PLANNED,
        Step.INJECTED,
        Step.EFFECT,
        Step.HEALING,
        Step.HEALED,
    ]
    assert Process.from_pid(victim.pid).state() != "T"


def test_a_guardian_that_died_is_noticed_and_replaced_for_the_next_run(
    tmp_path: Path, guard: Guard, victim: subprocess.Popen[bytes]
) -> None:
    """In between nothing may be injected."""
    keeper = kept(tmp_path, guard)
    keeper.planned(ORDER, TARGET, undo(victim), 5.0)
    first = guard.pid
    lost(guard)
    with pytest.raises(Unwatched, match="guardian"):
        keeper.check()
    keeper.heal(ORDER.id, undo(victim))
    keeper.planned(replace(ORDER, id="c-0002"), TARGET, undo(victim), 5.0)
    keeper.check()
    assert guard.pid != first


def test_a_plan_that_nobody_watches_does_not_block_its_target(
    tmp_path: Path,
    guard: Guard,
    victim: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing was injected, and that is written down."""

    def refuse(*_: object) -> None:
        raise GuardianLost("gone in this very moment")

    monkeypatch.setattr(guard, "watch", refuse)
    keeper = kept(tmp_path, guard)
    with pytest.raises(Unwatched, match="very moment"):
        keeper.planned(ORDER, TARGET, undo(victim), 5.0)
    entries = Journal(tmp_path / "state").read().entries
    assert blocked(entries, TARGET.name) is None
    assert isinstance(entries[-1], Noted)


def test_a_target_that_is_not_healed_gets_no_further_fault(
    tmp_path: Path, guard: Guard, victim: subprocess.Popen[bytes]
) -> None:
    """Until somebody has looked."""
    keeper = kept(tmp_path, guard)
    keeper.planned(ORDER, TARGET, undo(victim), 5.0)
    with pytest.raises(Refused, match="not healed"):
        keeper.planned(replace(ORDER, id="c-0002"), TARGET, undo(victim), 5.0)


def test_what_is_loose_shows_in_the_metrics(
    tmp_path: Path, guard: Guard, victim: subprocess.Popen[bytes]
) -> None:
    """1 while it is, 0 after."""
    figures = Figures()
    keeper = kept(tmp_path, guard, figures)
    labels = {"fault": "made_up", "method": "hook"}
    keeper.planned(ORDER, TARGET, undo(victim), 5.0)
    keeper.injected(ORDER.id)
    assert figures.registry.get_sample_value("modelprobe_chaos_active", labels) == 1.0
    keeper.heal(ORDER.id, undo(victim))
    assert figures.registry.get_sample_value("modelprobe_chaos_active", labels) == 0.0
