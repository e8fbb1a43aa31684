"""Files of alarms in all conditions."""

from __future__ import annotations

from pathlib import Path

from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from tests.alarms.samples import FAIL, Timeline


def made(path: Path) -> Timeline:
    """Makes a file with one firing alarm in it."""
    line = Timeline()
    line.rounds(4, FAIL)
    store = Store()
    assert store.open(path) is StoreState.OK
    assert store.write(Change(line.book.standings(), (), tuple(line.log))) is StoreState.OK
    store.close()
    return line


def state_of(path: Path | None, *words: str) -> StoreState:
    """The state of a file; its reason must have these words, and nothing may be left open."""
    store = Store()
    state = store.open(path)
    for word in words:
        assert word in store.reason
    assert "\n" not in store.reason
    if state is not StoreState.OK:
        assert store.write(Change()) is state
        assert not store.usable()
    store.close()
    return state


def damage(path: Path) -> None:
    """A file of ours whose second page, the table of tables' first leaf, is garbage."""
    made(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
