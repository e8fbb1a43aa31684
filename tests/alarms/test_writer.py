"""Tests of sidecar.alarms.writer."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from sidecar.alarms import history
from sidecar.alarms.book import Book
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from tests.alarms.running import hand_over, opened, writing
from tests.alarms.samples import FAIL, PASS, RESOLVED, Timeline, verdict
from tests.alarms.waiting import until


def test_rounds_reach_the_file(tmp_path: Path) -> None:
    """Handed over, alarms and transitions are in the file soon after; unchanged cost no write."""
    line = Timeline()
    with writing(opened(tmp_path / "alarms.db")) as writer:
        line.rounds(4, FAIL)
        hand_over(line, writer)
        until(lambda: writer.status().durable == 1)
        for _ in range(20):
            hand_over(line, writer)
        until(lambda: writer.status().durable == 21)
        assert writer.status().writes == 1
        [firing, _] = history.latest(tmp_path / "alarms.db")
        assert firing.alarm == line.only
    store = opened(tmp_path / "alarms.db")
    assert store.restored == line.book.standings()
    store.close()


def test_stopping_writes_what_waits(tmp_path: Path) -> None:
    """The last round before a stop is in the file, however long the writer's rest."""
    line = Timeline()
    line.rounds(2, FAIL)
    with writing(opened(tmp_path / "alarms.db"), rest_seconds=0.2, poll_seconds=60.0) as writer:
        hand_over(line, writer)
    store = opened(tmp_path / "alarms.db")
    assert store.restored == line.book.standings()
    store.close()


def test_a_slow_disk_holds_nobody_up(tmp_path: Path) -> None:
    """While one write hangs, rounds are taken at once; the status says for how long it has hung."""
    hung, go_on = threading.Event(), threading.Event()

    class Slow(Store):
        def write(self, change: Change) -> StoreState:
            hung.set()
            go_on.wait(20)
            return super().write(change)

    store = Slow()
    store.open(tmp_path / "alarms.db")
    line = Timeline()
    with writing(store) as writer:
        line.rounds(1, FAIL)
        hand_over(line, writer)
        assert hung.wait(20)
        began = time.monotonic()
        for _ in range(2_000):
            line.rounds(1, PASS)
            line.rounds(1, FAIL)
            hand_over(line, writer)
        assert time.monotonic() - began < 5.0
        until(lambda: writer.status().busy_seconds > 0.05)
        assert (writer.status().durable, writer.status().dropped_transitions) == (0, 1)
        go_on.set()
        until(lambda: writer.status().durable == writer.status().rounds)
        assert writer.status().writes == 2


def test_without_a_file_nothing_is_kept_and_nothing_grows() -> None:
    """Disabled: no thread, no queue."""
    line = Timeline()
    with writing(opened(None)) as writer:
        line.rounds(4, FAIL)
        hand_over(line, writer)
        assert not writer.level("k", "1")
        assert (writer.status().state, writer.status().rounds) == (StoreState.DISABLED, 0)
        assert writer.marks() == ()


def test_restored_alarms_are_not_found_again(tmp_path: Path) -> None:
    """What the book got at the start is not handed over once more when the file is reopened."""
    path = tmp_path / "alarms.db"
    line = Timeline()
    line.rounds(4, FAIL)
    store = opened(path)
    store.write(Change(line.book.standings()))
    store.open(path)
    later = Timeline(Book(store.restored))
    with writing(store) as writer:
        later.round(verdict(PASS, clear=0.0))
        path.rename(path.with_name("moved"))
        for _ in range(3):
            assert writer.exchange(later.book.standings(), ()) == ()
        until(lambda: writer.status().writes > 0)
    assert later.only.state is RESOLVED
