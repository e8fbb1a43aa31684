"""Tests of the states of sidecar.alarms.store that the file itself is the reason for."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.alarms import schema
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from tests.alarms.files import damage, made, state_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alarms.db"


def test_no_path_is_disabled() -> None:
    """Without a configured file nothing is kept, and that is said."""
    assert state_of(None, "no file for alarms is configured") is StoreState.DISABLED


def test_an_absent_folder_is_not_made(tmp_path: Path) -> None:
    """A folder that is missing, or is a file, is named."""
    assert state_of(tmp_path / "no" / "alarms.db", f"{tmp_path}/no") is StoreState.ABSENT_FOLDER
    (tmp_path / "file").touch()
    assert state_of(tmp_path / "file" / "alarms.db") is StoreState.ABSENT_FOLDER
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"\x7fELF" + b"\0" * 4096,
        b"SQLite format 3\0",
        b"\0" * 8192,
        b"[general]\nkey=1\n" * 99,
    ],
)
def test_what_is_no_database_is_foreign_and_untouched(path: Path, content: bytes) -> None:
    """A file of another kind keeps every byte and its mode, and gets no companions."""
    path.write_bytes(content)
    path.chmod(0o644)
    assert state_of(path, str(path), "name another file") is StoreState.FOREIGN
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("number", [0, 0x0F05_5112])
def test_another_application_s_database_is_foreign(path: Path, number: int) -> None:
    """A database with other tables, numbered or not, stays as it is."""
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA application_id = {number}")
        other.execute("CREATE TABLE alarms (key TEXT)")
        other.commit()
    before = path.read_bytes()
    assert state_of(path, "another application") is StoreState.FOREIGN
    assert path.read_bytes() == before


def test_a_later_version_s_database_is_left_alone(path: Path) -> None:
    """After a downgrade the newer file is not touched; the reason names both versions."""
    made(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    assert state_of(path, "version 99", f"knows {len(schema.MIGRATIONS)}") is StoreState.NEWER
    assert path.read_bytes() == before


def test_an_empty_file_is_taken(path: Path) -> None:
    """Nothing is in it to lose."""
    path.touch()
    assert state_of(path) is StoreState.OK


def test_another_live_sidecar_locks_it(path: Path) -> None:
    """The second one is told who has it; a killed holder frees it."""
    command = [sys.executable, "-m", "tests.alarms.inside", str(path), "open", "hold"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert json.loads(holder.stdout.readline())["state"] == "ok"
        assert state_of(path, f"process {holder.pid}", str(path)) is StoreState.LOCKED
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert state_of(path) is StoreState.OK


def test_a_second_store_in_one_process_is_locked_out(path: Path) -> None:
    """The lock belongs to the store, not to the process."""
    first = Store()
    first.open(path)
    assert state_of(path) is StoreState.LOCKED
    assert first.write(Change()) is StoreState.OK
    first.close()


def test_a_write_lock_held_for_long_is_locked_and_passes(path: Path) -> None:
    """Somebody's open transaction delays a write; the file stays open for the next try."""
    made(path)
    store = Store(busy_seconds=0.05)
    store.open(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store.write(Change()) is StoreState.LOCKED
        assert "another process has been writing" in store.reason
        other.execute("ROLLBACK")
    assert (store.write(Change()), store.reason) == (StoreState.OK, "")
    store.close()


def test_a_damaged_file_of_ours_is_set_aside(path: Path) -> None:
    """It is renamed with its date, not deleted; a new one takes its place, and that is said."""
    made(path)
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    store = Store(wall=lambda: 1_750_000_000.0)
    assert store.open(path) is StoreState.OK
    assert "alarms.db.corrupt-20250615T150640" in store.reason
    assert store.restored == ()
    assert (path.parent / "alarms.db.corrupt-20250615T150640").read_bytes() == content
    assert store.write(Change()) is StoreState.OK
    store.close()


def test_a_disk_that_damages_again_and_again_is_corrupt(path: Path) -> None:
    """After three damaged files the fourth stays where it is."""
    for _ in range(3):
        damage(path)
        assert state_of(path, "was damaged") is StoreState.OK
    damage(path)
    assert state_of(path, "3 times", "look at the disk") is StoreState.CORRUPT
    assert len([name for name in os.listdir(path.parent) if ".corrupt-" in name]) == 3


def test_missing_tables_are_damage(path: Path) -> None:
    """Our number on a file without our tables."""
    made(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE transitions")
    assert state_of(path, "was damaged") is StoreState.OK
