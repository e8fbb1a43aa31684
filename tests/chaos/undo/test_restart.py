"""The old process of the target is ended, and only that one."""

from __future__ import annotations

from dataclasses import replace

from chaos.processes import Process
from chaos.undo import heal
from chaos.undo.restart import Restart
from chaos.vocabulary import Ending
from tests.chaos.victims import sleeper, stop, stubborn


def test_ends() -> None:
    """It ends when asked to."""
    with sleeper() as child:
        undo = Restart(Process.from_pid(child.pid))
        assert heal(undo).ending is Ending.HEALED
        assert child.wait() == -15
        assert heal(undo).ending is Ending.MOOT


def test_stubborn() -> None:
    """One that hangs is killed after its grace."""
    with stubborn() as child:
        assert heal(Restart(Process.from_pid(child.pid), grace=0.05)).ending is Ending.HEALED
        assert child.wait() == -9


def test_stopped() -> None:
    """One that is stopped cannot end when asked to, and is killed."""
    with sleeper() as child:
        stop(child)
        assert heal(Restart(Process.from_pid(child.pid), grace=0.05)).ending is Ending.HEALED
        assert child.wait() == -9


def test_new_one() -> None:
    """The new process of the target, with the same number even, is left alone."""
    with sleeper() as child:
        former = replace(Process.from_pid(child.pid), start_ticks=1)
        assert heal(Restart(former)).ending is Ending.MOOT
        assert child.poll() is None


def test_another_namespace() -> None:
    """One that cannot be seen from here is not given up for gone."""
    with sleeper() as child:
        process = Process.from_pid(child.pid)
        other = replace(process, namespace=process.namespace + 1)
        assert heal(Restart(other)).ending is Ending.FAILED
        assert child.poll() is None
