"""Tests of sidecar.alarms.store: what is kept, and how."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.alarms import history, schema, tables
from sidecar.alarms.book import Book
from sidecar.alarms.standing import Transition
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from sidecar.verdicts import Alarm
from tests.alarms.samples import (
    FIRING,
    INACTIVE,
    NOON,
    PASS,
    PENDING,
    RESOLVED,
    Timeline,
    verdict,
)


def test_the_file_and_its_mode(tmp_path: Path) -> None:
    """It is SQLite in WAL mode with our number and version; nobody else may read any part."""
    path = tmp_path / "alarms.db"
    path.touch(0o644)
    store = Store()
    assert (store.open(path), store.reason) == (StoreState.OK, "")
    assert store.write(Change(transitions=tuple(fired(1)))) is StoreState.OK
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(
        ["alarms.db", "alarms.db-wal", "alarms.db-shm", "alarms.db.lock"], 0o600
    )
    with closing(sqlite3.connect(path)) as reader:
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert reader.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
        assert reader.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
    store.close()
    assert path.read_bytes()[68:72] == b"MPAL"


def test_clocks_and_counts_outlive_the_process(tmp_path: Path) -> None:
    """Pending, clearing and coming-back alarms go on from the file as they would have in memory."""
    line = Timeline()
    for _ in range(4):
        line.round(verdict(), verdict(rule="Clearing"), verdict(rule="Back", hold=0.0))
    line.round(verdict(rule="Clearing", outcome=PASS), verdict(rule="Back", outcome=PASS, clear=0))
    line.round(verdict(rule="Clearing", outcome=PASS), verdict(rule="Back"), verdict(rule="New"))
    store = Store()
    store.open(tmp_path / "alarms.db")
    store.write(Change(standings=line.book.standings()))
    store.open(tmp_path / "alarms.db")
    assert sorted(store.restored, key=repr) == sorted(line.book.standings(), key=repr)
    by_rule = {standing.alarm.rule: standing for standing in store.restored}
    assert by_rule["Clearing"].passed_seconds == 1.0
    assert by_rule["Back"].earlier is not None
    assert (by_rule["Back"].alarm.state, by_rule["Back"].firings) == (PENDING, 1)
    again = Timeline(Book(store.restored), wall=line.wall)
    again.round(verdict(rule="Clearing", outcome=PASS), verdict(rule="Back", outcome=PASS))
    again.round(verdict(rule="Clearing", outcome=PASS))
    states = {alarm.rule: alarm.state for alarm in again.book.alarms()}
    assert (states["Clearing"], states["Back"], states["New"]) == (RESOLVED, RESOLVED, PENDING)
    store.close()


def test_history_is_bounded_and_noise_does_not_push_firings_out(tmp_path: Path) -> None:
    """Each kind of transition has its own share of the history, the latest of it."""
    path = tmp_path / "alarms.db"
    store = Store()
    store.open(path)
    store.write(Change(transitions=tuple(fired(3))))
    noise = tuple(
        Transition(NOON + number, INACTIVE, pending(f"R{number}"), 0) for number in range(2_500)
    )
    store.write(Change(transitions=noise[:1_300]))
    store.write(Change(transitions=noise[1_300:]))
    found = history.latest(path, 20_000)
    store.close()
    kinds = [transition.alarm.state for transition in found]
    assert (kinds.count(PENDING), kinds.count(FIRING)) == (tables.HISTORY["pending"], 3)
    assert found[0] == noise[-1]


def test_levels_are_kept_the_least_renewed_give_way(tmp_path: Path) -> None:
    """A level is the latest of its key; beyond the limit the one longest not renewed goes."""
    clock = [NOON]
    store = Store(wall=lambda: clock[0])
    store.open(tmp_path / "alarms.db")
    store.write(Change(levels=tuple((f"k{n}", f"[{n}]") for n in range(tables.LEVELS))))
    clock[0] += 60
    store.write(Change(levels=tuple((f"k{n}", "[-1]") for n in range(1, tables.LEVELS))))
    clock[0] += 60
    store.write(Change(levels=(("new", "{}"),)))
    store.open(tmp_path / "alarms.db")
    assert len(store.levels) == tables.LEVELS
    assert "k0" not in store.levels
    assert (store.levels["k1"], store.levels["new"]) == ("[-1]", "{}")
    store.close()


def test_a_migration_keeps_what_is_there(tmp_path: Path) -> None:
    """A step to the next version is taken once and keeps rows; half of one leaves nothing."""
    path = tmp_path / "alarms.db"
    line = Timeline()
    line.round(verdict())
    store = Store()
    store.open(path)
    store.write(Change(standings=line.book.standings()))
    store.close()
    add = "ALTER TABLE alarms ADD COLUMN note TEXT"
    with closing(schema.connect(path)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            schema.prepare(connection, path, (*schema.MIGRATIONS, (add, "NONSENSE")))
        assert schema.recognise(connection, path) == len(schema.MIGRATIONS)
        for _ in range(2):
            schema.prepare(connection, path, (*schema.MIGRATIONS, (add,)))
        assert connection.execute("SELECT count(note), count(*) FROM alarms").fetchone() == (0, 1)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS) + 1,)


def test_killed_while_the_file_is_made(tmp_path: Path) -> None:
    """Whatever stage the making of the file was at, the next process finds or makes a good one."""
    rng = random.Random(7)
    for number in range(40):
        path = tmp_path / f"{number}.db"
        child = os.fork()
        if child == 0:
            Store().open(path)
            os._exit(0)
        time.sleep(rng.uniform(0.0, 0.01))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        store = Store()
        assert (store.open(path), store.reason) == (StoreState.OK, "")
        assert store.write(Change()) is StoreState.OK
        store.close()


def pending(rule: str) -> Alarm:
    line = Timeline()
    line.round(verdict(rule=rule))
    return line.only


def fired(count: int) -> list[Transition]:
    line = Timeline()
    for number in range(count):
        line.round(verdict(rule=f"F{number}", hold=0.0))
    return line.log
