"""What was started for a fault is ended, and nobody else."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.processes import Process, tree
from chaos.undo import heal
from chaos.undo.end import OPTION, VARIABLE, End
from chaos.undo.undo import World
from chaos.vocabulary import Ending
from tests.alarms.waiting import until
from tests.chaos.victims import STUBBORN, me, sleeper, started

TOKEN = "0123456789abcdef"  # noqa: S105  # no password


def test_balloon() -> None:
    """The process of the token is seen to be gone; a second time there is nothing to do."""
    with sleeper({VARIABLE: TOKEN}) as child:
        assert heal(End(TOKEN)).ending is Ending.HEALED
        assert child.wait() == -15
        assert heal(End(TOKEN)).ending is Ending.MOOT


def test_another_token() -> None:
    """A process of another run stays."""
    with sleeper({VARIABLE: TOKEN[::-1]}) as child:
        assert heal(End(TOKEN)).ending is Ending.MOOT
        assert child.poll() is None


def test_argument() -> None:
    """An argument names it too, whole only."""
    code = "import time; time.sleep(600)"
    with (
        started(sys.executable, "-c", code, OPTION + TOKEN) as ours,
        started(sys.executable, "-c", code, TOKEN) as other,
    ):
        assert heal(End(TOKEN)).ending is Ending.HEALED
        assert ours.wait() == -15
        assert other.poll() is None


def test_children() -> None:
    """What it started in turn goes with it."""
    with started("sh", "-c", "sleep 600 & wait", environment={VARIABLE: TOKEN}) as child:
        until(lambda: len(tree(child.pid)) == 2)
        below = tree(child.pid)[1]
        assert heal(End(TOKEN)).ending is Ending.HEALED
        assert not below.alive()


def test_stubborn() -> None:
    """One that does not end when asked to is killed."""
    with started(sys.executable, "-c", STUBBORN, environment={VARIABLE: TOKEN}) as child:
        assert child.stdout is not None
        child.stdout.readline()
        healing = heal(End(TOKEN, grace=0.05))
        assert healing.ending is Ending.HEALED
        assert "was killed" in healing.text
        assert child.wait() == -9


def test_never_us() -> None:
    """A healer that inherited the token does not end itself, nor those above it."""
    code = (
        "import os; from chaos.undo import heal; from chaos.undo.end import End;"
        f"print(heal(End({TOKEN!r})).ending)"
    )
    shell = f'{sys.executable} -c "{code}"; echo $?'
    with started("sh", "-c", shell, environment={VARIABLE: TOKEN}) as child:
        assert child.communicate()[0] == b"moot\n0\n"


def test_another_namespace() -> None:
    """From another PID namespace nothing is to be seen, which is not the same as nothing left."""
    assert heal(End(TOKEN, namespace=me().namespace + 1)).ending is Ending.FAILED
    assert heal(End(TOKEN, namespace=me().namespace)).ending is Ending.MOOT


def test_late() -> None:
    """A process that shows its token only a moment later is found at the second look."""
    with ExitStack() as later:

        def pause(_: float) -> None:
            later.enter_context(sleeper({VARIABLE: TOKEN}))
            until(lambda: bool(list(End(TOKEN).owned(World()))))

        assert heal(End(TOKEN), World(pause=pause)).ending is Ending.HEALED


def test_short_token() -> None:
    """A token that something else could have is refused."""
    with pytest.raises(ValueError, match="'token'"):
        End("x" * 15)


def test_what_its_starter_knows_is_waited_for_to_its_end() -> None:
    """Though it shows no token any more: its memory goes before its devices do."""
    with sleeper({}) as child:
        known = Process.from_pid(child.pid)
        assert heal(End(TOKEN, process=known)).ending is Ending.HEALED
        assert not known.alive()
        assert heal(End(TOKEN, process=known)).ending is Ending.MOOT


def test_whoever_is_on_its_way_out_is_waited_for(tmp_path: Path) -> None:
    """It may be the one, and hold a device yet; for so long, and no longer."""
    line = "70 (x) R 1 70 70 0 -1 4 " + "0 " * 12 + "900 "
    (tmp_path / "70").mkdir()
    (tmp_path / "70/stat").write_text(line)
    (tmp_path / "70/environ").write_text("")
    (tmp_path / "70/cmdline").write_text("")
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 1.0:
            (tmp_path / "70/stat").write_text(line.replace(" R ", " Z "))

    world = World(proc=tmp_path, clock=lambda: now[0], pause=pause)
    assert heal(End(TOKEN), world).ending is Ending.MOOT
    assert 1.0 < now[0] < 1.1
