"""Tests of sidecar.alarms.writer: files that come late, go, or break under way."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sidecar.alarms import history
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from tests.alarms.running import hand_over, opened, writing
from tests.alarms.samples import FAIL, FIRING, PASS, RESOLVED, Timeline
from tests.alarms.waiting import until


def test_a_file_that_comes_late_brings_its_alarms(tmp_path: Path) -> None:
    """Another sidecar had the file at the start. When it ends, its firing alarms go on here, and
    none of them is deleted before the book has heard of it.
    """
    path = tmp_path / "alarms.db"
    theirs, own = Timeline(), Timeline()
    theirs.rounds(4, FAIL, rule="Theirs")
    first = opened(path)
    first.write(Change(theirs.book.standings()))
    with writing(opened(path)) as writer:
        assert writer.status().state is StoreState.LOCKED
        own.rounds(4, FAIL)
        hand_over(own, writer)
        first.close()

        def adopted() -> bool:
            hand_over(own, writer)
            return len(own.book.alarms()) == 2

        until(adopted)
        hand_over(own, writer)
    assert {alarm.rule: alarm.state for alarm in own.book.alarms()} == {
        "TokenRateOutOfBand": FIRING,
        "Theirs": FIRING,
    }
    store = opened(path)
    assert set(store.restored) == set(own.book.standings())
    store.close()


def test_an_absent_folder_may_come_later(tmp_path: Path) -> None:
    """Every state is looked at again; transitions until then are written."""
    path = tmp_path / "late" / "alarms.db"
    line = Timeline()
    with writing(opened(path)) as writer:
        assert writer.status().state is StoreState.ABSENT_FOLDER
        line.rounds(4, FAIL)
        hand_over(line, writer)
        until(lambda: writer.status().failures > 2)
        path.parent.mkdir()
        until(lambda: writer.status().durable == 1)
    assert history.latest(path)[0].alarm.state is FIRING


def test_a_removed_file_is_made_anew_with_everything_in_it(tmp_path: Path) -> None:
    """An operator who deletes the file takes the history away, not what is firing."""
    path = tmp_path / "alarms.db"
    line = Timeline()
    with writing(opened(path)) as writer:
        line.rounds(4, FAIL)
        hand_over(line, writer)
        until(lambda: writer.status().durable == 1)
        for file in tmp_path.glob("alarms.db*"):
            if not file.name.endswith(".lock"):
                file.unlink()
        until(path.exists)
        until(lambda: writer.status().writes == 2)
    store = opened(path)
    assert store.restored == line.book.standings()
    store.close()


def test_a_file_damaged_under_way_is_set_aside_and_written_anew(tmp_path: Path) -> None:
    """Damage found at a write costs the history, not the alarms, and is said."""
    path = tmp_path / "alarms.db"
    line = Timeline()
    store = opened(path)
    line.rounds(4, FAIL)
    store.write(Change(line.book.standings()))
    store.close()
    store = opened(path)
    with writing(store) as writer:
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA writable_schema = ON")
            other.execute("UPDATE sqlite_master SET rootpage = 999 WHERE name = 'alarms'")
            other.execute("PRAGMA schema_version = 1000")  # has the others read it again
            other.commit()
        line.rounds(3, PASS)
        hand_over(line, writer)
        until(lambda: writer.status().durable == 1)
        assert "was damaged" in writer.status().reason
    store = opened(path)
    assert [standing.alarm.state for standing in store.restored] == [RESOLVED]
    assert list(tmp_path.glob("*.corrupt-*"))
    store.close()


def test_a_mistake_of_ours_does_not_end_the_thread(tmp_path: Path) -> None:
    """A row that cannot be written is counted; the thread goes on."""

    class Broken(Store):
        broken = True

        def write(self, change: Change) -> StoreState:
            if self.broken:
                raise KeyError(change)
            return super().write(change)

    store = Broken()
    store.open(tmp_path / "alarms.db")
    line = Timeline()
    with writing(store) as writer:
        line.rounds(1, FAIL)
        hand_over(line, writer)
        until(lambda: writer.status().failures > 2)
        store.broken = False
        until(lambda: writer.status().durable == 1)
