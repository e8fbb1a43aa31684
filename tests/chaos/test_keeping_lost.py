"""The journal and the guardian as a run sees them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from chaos.entries import Planned
from chaos.guarding import Guard, GuardianLost
from chaos.journal import Journal
from chaos.keeping import Kept
from chaos.ordering import Unwatched
from chaos.processes import Process
from chaos.target import Refused, Target
from chaos.undo.restart import Restart
from chaos.unended import outstanding
from tests.chaos.breaking import Breaking, order
from tests.chaos.servers import Chat
from tests.chaos.victims import sleeper

TARGET = Target("port:1", "staging")


class Deaf:
    """Stands for a ``Guard`` that lives and does not answer."""

    def alive(self) -> bool:
        return True

    def watch(self, planned: Planned) -> None:
        raise GuardianLost("it does not answer")

    def ended(self, run: str) -> None:
        raise GuardianLost("nor now")


def kept(folder: Path) -> Kept:
    return Kept(Journal(folder), cast(Guard, Deaf()), Process.from_pid(os.getpid()))


def test_what_nobody_watches_is_neither_injected_nor_undone(tmp_path: Path) -> None:
    """Undoing a lost context is to end the process, and this one is well."""
    one = order(lambda _: Breaking(Chat()))
    with sleeper({}) as child:
        with pytest.raises(Unwatched, match="does not answer"):
            kept(tmp_path).planned(one, TARGET, Restart(Process.from_pid(child.pid)), 1.0)
        assert child.poll() is None
    assert outstanding(Journal(tmp_path).read().entries) == []


def test_a_target_that_is_not_healed_is_not_broken_again(tmp_path: Path) -> None:
    """Until somebody has undone what stands there."""
    one = order(lambda _: Breaking(Chat()))
    keeper = Kept(Journal(tmp_path), cast(Guard, Listening()), Process.from_pid(os.getpid()))
    with sleeper({}) as child:
        undo = Restart(Process.from_pid(child.pid))
        keeper.planned(one, TARGET, undo, 1.0)
        with pytest.raises(Refused, match="is not healed"):
            keeper.planned(one, TARGET, undo, 1.0)
        assert child.poll() is None


class Listening(Deaf):
    """One that answers."""

    def watch(self, planned: Planned) -> None:
        return
