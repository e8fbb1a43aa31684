"""The injector knows whether it has a guardian, and what kind of process that is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.guarding import LOG, Guard, GuardianLost
from chaos.journal import Journal
from chaos.processes import Process, environ
from chaos.undo.resume import Resume
from tests.alarms.waiting import until
from tests.chaos.plans import plan, steps
from tests.chaos.victims import me, sleeper, stop

MOST_BYTES = 25 * 10**6


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A new one."""
    return Journal(tmp_path / "state")


@pytest.fixture
def guard(journal: Journal) -> Iterator[Guard]:
    """A guardian of ours."""
    with Guard(journal.folder, me(), patience=5.0) as guard:
        yield guard


def test_apart(guard: Guard) -> None:
    """It has a session of its own, no preload, and no descriptor of ours but its pipes and log."""
    assert os.getsid(guard.pid) == guard.pid
    assert not {"LD_PRELOAD", "LD_AUDIT"} & environ(guard.pid).keys()
    folder = Path(f"/proc/{guard.pid}/fd")
    found = sorted(os.readlink(entry).split(":")[0] for entry in folder.iterdir())
    log = [name for name in found if name.endswith(LOG)]
    assert (len(log), found.count("pipe")) == (1, 4)  # in, out, and its own wake-up
    assert len(found) == 6  # and a descriptor of its injector


def test_no_preload(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is preloaded into us is not into it."""
    monkeypatch.setenv("LD_PRELOAD", "libc.so.6")
    with Guard(journal.folder, me()) as guard:
        assert "LD_PRELOAD" not in environ(guard.pid)


def test_small(guard: Guard) -> None:
    """It takes little memory."""
    lines = Path(f"/proc/{guard.pid}/smaps_rollup").read_text().splitlines()
    [pss] = [int(line.split()[1]) * 1_024 for line in lines if line.startswith("Pss:")]
    assert 10**6 < pss < MOST_BYTES


def test_imports() -> None:
    """It imports of ours what it needs, and of others nothing but the standard library."""
    code = (
        "import sys; had = set(sys.modules); import chaos.guardian; print(*set(sys.modules) - had)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    names = set(said.stdout.split())
    ours = {name for name in names if name.startswith("chaos.")}
    assert ours <= {
        *(f"chaos.{name}" for name in ("entries", "fields", "folder", "guardian", "healing")),
        *(
            f"chaos.{name}"
            for name in ("injector_lock", "journal", "processes", "procfs", "unended")
        ),
        *(f"chaos.{name}" for name in ("undo", "undo.undo", "vocabulary")),
    }
    tops = {name.partition(".")[0] for name in names} - {"chaos"}
    assert tops <= sys.stdlib_module_names
    assert not tops & {"asyncio", "subprocess", "ssl", "argparse", "logging", "typer"}


def test_leaving(guard: Guard, journal: Journal) -> None:
    """Leaving with something outstanding heals it."""
    with sleeper() as child:
        process = Process.from_pid(child.pid)
        with Guard(journal.folder, me()) as second:
            planned = journal.plan(plan("one", Resume.of([process])))
            second.watch(planned)
            stop(child)
        assert process.state() in ("R", "S")
        assert steps(journal)[-1] == "one healed guardian"
        assert not second.alive()


def test_killed(guard: Guard, journal: Journal) -> None:
    """Its death is seen, at once and by the next word to it; another can be started."""
    planned = journal.plan(plan("one"))
    assert guard.alive()
    os.kill(guard.pid, signal.SIGKILL)
    until(lambda: not guard.alive())
    with pytest.raises(GuardianLost, match=f"has ended .*{LOG}"):
        guard.watch(planned)
    with pytest.raises(GuardianLost):
        guard.ended("one")
    guard.renew()
    guard.watch(planned)


def test_hung(journal: Journal) -> None:
    """One that is there and does not answer is as good as gone."""
    with Guard(journal.folder, me(), patience=0.05) as guard:
        planned = journal.plan(plan("one"))
        os.kill(guard.pid, signal.SIGSTOP)
        with pytest.raises(GuardianLost, match="does not answer"):
            guard.watch(planned)
        assert guard.alive()
        os.kill(guard.pid, signal.SIGCONT)


def test_late_answer(journal: Journal, tmp_path: Path) -> None:
    """An answer that comes too late is not taken for that to the next question."""
    with Guard(journal.folder, me(), patience=0.05) as guard:
        first, second = journal.plan(plan("one")), journal.plan(plan("two"))
        os.kill(guard.pid, signal.SIGSTOP)
        with pytest.raises(GuardianLost):
            guard.watch(first)
        with pytest.raises(GuardianLost):
            guard.watch(second)
        os.kill(guard.pid, signal.SIGCONT)
        third = Journal(tmp_path / "other").plan(plan("three"))
        guard._patience = 5.0
        with pytest.raises(GuardianLost, match="does not watch run three"):
            guard.watch(third)


def test_no_plan(guard: Guard, tmp_path: Path) -> None:
    """A plan that is not in its journal is not watched."""
    planned = Journal(tmp_path / "other").plan(plan("one"))
    with pytest.raises(GuardianLost, match="does not watch run one: the journal has no such plan"):
        guard.watch(planned)


def test_signals(guard: Guard, journal: Journal) -> None:
    """What a terminal sends its injector does not end it; SIGTERM makes it heal and go."""
    with sleeper() as child:
        process = Process.from_pid(child.pid)
        for number in (signal.SIGINT, signal.SIGHUP):
            os.kill(guard.pid, number)
        guard.watch(journal.plan(plan("one", Resume.of([process]))))
        stop(child)
        os.kill(guard.pid, signal.SIGTERM)
        until(lambda: not guard.alive())
        assert process.state() in ("R", "S")
        assert steps(journal)[-1] == "one healed guardian"


def test_cannot_start(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot start is told, with where to look."""
    for program, told in (("/bin/false", f"status 1.*{LOG}"), ("/none", "cannot be started")):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(GuardianLost, match=told), Guard(journal.folder, me()):
            pytest.fail("it started")


def test_none() -> None:
    """Without one nothing can be watched."""
    with pytest.raises(GuardianLost, match="no guardian was started"):
        Guard(Path("/"), me()).ended("one")
