"""Tests of sidecar.analyst.file: the states of the file, and that memory goes on in each."""

from __future__ import annotations

import os
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.alarms import marks, schema
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.analyst import reading, rows
from sidecar.analyst.calendar import number
from sidecar.verdicts import Mark, MarkKind
from tests.alarms.files import made
from tests.analyst.made import DAY, NOON, A, B, Line, record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alarms.db"


def state(line: Line) -> StoreState:
    return line.slots.status().state


def change(path: Path, statement: str, *values: object) -> int:
    """Another program writes to the file."""
    with closing(sqlite3.connect(path)) as other:
        done = other.execute(statement, values).rowcount
        other.commit()
    return done


def test_without_a_file_all_is_in_memory() -> None:
    """That is a state, and nothing piles up."""
    line = Line()
    line.put(40)
    status = line.slots.status()
    assert (status.state, status.unsaved, line.total()) == (StoreState.DISABLED, 0, 12)


def test_it_shares_the_file_with_the_alarms(path: Path) -> None:
    """Each with a lock of its own; a file of the first version is brought up to date and keeps its
    alarms.
    """
    store = Store()
    assert store.open(path) is StoreState.OK
    line = Line(path)
    line.put(13)
    assert state(line) is StoreState.OK
    assert store.open(path) is StoreState.OK
    assert line.again().total() == 12
    store.close()


def test_a_file_of_the_first_version_is_migrated(path: Path) -> None:
    """Its alarms stay."""
    kept = made(path)
    with closing(sqlite3.connect(path)) as other:
        for table in ("drift_series", "drift_slots", "drift_hours", "drift_buckets"):
            other.execute(f"DROP TABLE {table}")
        other.execute("PRAGMA user_version = 1")
        other.commit()
    line = Line(path)
    line.put()
    assert state(line) is StoreState.OK
    store = Store()
    store.open(path)
    assert store.restored == kept.book.standings()
    store.close()


@pytest.mark.parametrize("content", [b"x", b"SQLite format 3\0" + b"\1" * 4_096])
def test_what_is_not_ours_is_left_alone(path: Path, content: bytes) -> None:
    """To the last byte, while memory goes on."""
    path.write_bytes(content)
    line = Line(path)
    assert line.put(13) == [""] * 13
    assert state(line) is StoreState.FOREIGN
    assert str(path) in line.slots.status().reason
    assert line.total() == 12
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_a_newer_file_is_left_alone(path: Path) -> None:
    """Its reason names both versions."""
    made(path)
    change(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    line = Line(path)
    line.put(3)
    assert state(line) is StoreState.NEWER
    assert "version 99" in line.slots.status().reason
    assert path.read_bytes() == before


def tear(path: Path) -> None:
    """Garbage from the second page on."""
    content = bytearray(path.read_bytes())
    content[4_096:] = os.urandom(len(content) - 4_096)
    path.write_bytes(content)


def test_a_torn_file_is_set_aside_where_no_sidecar_runs(path: Path) -> None:
    """Renamed, not deleted; a new one takes its place, and that is said."""
    line = Line(path)
    line.put(3)
    line.slots.close()
    tear(path)
    torn = path.read_bytes()
    again = line.again()
    again.put(2)
    assert state(again) is StoreState.OK
    assert "baselines began anew" in again.slots.status().reason
    [aside] = path.parent.glob("alarms.db.corrupt-*[0-9]")
    assert aside.read_bytes() == torn
    assert again.again().total() == 2


def test_a_torn_file_that_a_sidecar_holds_is_the_sidecar_s_to_set_aside(path: Path) -> None:
    """Until then memory goes on; afterwards all of it is in the new file."""
    made(path)
    tear(path)
    holder = os.open(path.with_name("alarms.db.lock"), os.O_RDWR | os.O_CREAT)
    import fcntl

    fcntl.flock(holder, fcntl.LOCK_EX)
    line = Line(path)
    line.put(13)
    assert state(line) is StoreState.CORRUPT
    assert not list(path.parent.glob("*.corrupt-*"))
    os.close(holder)
    line.put()
    assert state(line) is StoreState.OK
    assert line.again().slots.days(A, NOON + DAY + 3_600, 1)[0].share == 1.0


def test_a_file_that_was_exchanged_gets_all_there_is(path: Path) -> None:
    """Also what had been written to the one before."""
    line = Line(path)
    line.put(26)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    line.put()
    assert state(line) is StoreState.OK
    again = line.again()
    assert again.total() == 12
    assert again.slots.hours(A) == 2


def test_a_damaged_row_costs_that_row(path: Path) -> None:
    """It is counted, once, and no number is made of it; other series and hours are as they were."""
    line = Line(path)
    line.put(26, records={A: record(0.1), B: record(0.2)})
    line.slots.close()
    hour = number(NOON) << rows.SHIFT | 1
    for flip in (b"\0" * 40, b"", b"x" * 7):
        with closing(sqlite3.connect(path)) as other:
            (whole,) = other.execute(
                "SELECT record FROM drift_hours WHERE key = ?", (hour,)
            ).fetchone()
        damaged = whole[:9] + flip + whole[9 + len(flip) :] if flip else whole[:-3]
        change(path, "UPDATE drift_hours SET record = ? WHERE key = ?", damaged, hour)
        again = Line(path, at=line.at)
        for _ in range(2):
            first, second = (again.slots.days(A, NOON + DAY + 3_600 * n, 1)[0] for n in (1, 2))
            assert (first.dropped, first.parts) == ("its record is damaged", ())
            assert (second.dropped, second.share) == ("", 1.0)
        assert again.slots.days(B, NOON + DAY + 3_600, 1)[0].share == 1.0
        assert again.slots.status().counted == {"damaged": 1}
        again.slots.close()
        change(path, "UPDATE drift_hours SET record = ? WHERE key = ?", whole, hour)


def earlier(connection: sqlite3.Connection, key: int) -> bytes:
    """A record as the version before wrote it, which had its number in the first byte, too."""
    (whole,) = connection.execute("SELECT record FROM drift_hours WHERE key = ?", (key,)).fetchone()
    return zlib.compress(b"\1" + zlib.decompress(whole)[1:])


def test_what_an_earlier_version_recorded_is_not_used_and_said(path: Path) -> None:
    """Nothing is made of it and it is no damage; what is recorded from now on is used."""
    line = Line(path)
    line.put(26, records={A: record(0.1), B: record(0.2)})
    line.slots.close()
    hour = number(NOON) << rows.SHIFT | 1
    with closing(sqlite3.connect(path)) as other:
        outdated = earlier(other, hour)
    change(path, "UPDATE drift_hours SET record = ? WHERE key = ?", outdated, hour)
    again = Line(path, at=line.at)
    for _ in range(2):
        first, second = (again.slots.days(A, NOON + DAY + 3_600 * n, 1)[0] for n in (1, 2))
        assert (first.dropped, first.parts) == (reading.OUTDATED, ())
        assert (second.dropped, second.share) == ("", 1.0)
    assert again.slots.status().counted == {"outdated": 1}
    assert again.slots.status().state is StoreState.OK


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE drift_hours SET record = 'text' WHERE key & 1048575 = 1",
        "UPDATE drift_hours SET used = 70000 WHERE key & 1048575 = 1",
        "UPDATE drift_hours SET used = 'x' WHERE key & 1048575 = 1",
        "UPDATE drift_hours SET frozen = -1 WHERE key & 1048575 = 1",
        "UPDATE drift_hours SET record = zeroblob(200000) WHERE key & 1048575 = 1",
        "UPDATE drift_hours SET key = key + 500 WHERE key & 1048575 = 1",
        "UPDATE drift_series SET name = 'no json' WHERE id = 1",
        "UPDATE drift_series SET name = '[1, 2, 3]' WHERE id = 1",
        "UPDATE drift_series SET name = x'ff00' WHERE id = 1",
    ],
)
def test_a_row_that_makes_no_sense_is_left_out_and_counted(path: Path, statement: str) -> None:
    """The rest is read."""
    line = Line(path)
    line.put(13, records={A: record(0.1), B: record(0.2)})
    line.slots.close()
    assert change(path, statement)
    again = Line(path, at=line.at)
    status = again.slots.status()
    assert (status.state, status.hours) == (StoreState.OK, 1)
    assert status.counted["strange"] >= 1
    assert "made no sense" in status.reason
    assert again.slots.days(B, NOON + DAY + 3_600, 1)[0].share == 1.0
    assert again.put() == [""]


def test_a_write_lock_held_for_long_delays_and_loses_nothing(path: Path) -> None:
    """The slots wait in memory and are all written once it has gone."""
    line = Line(path)
    line.put(3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        line.put(3)
        assert state(line) is StoreState.LOCKED
        assert line.slots.status().unsaved == 3
        other.execute("ROLLBACK")
    line.put()
    assert (state(line), line.slots.status().unsaved) == (StoreState.OK, 0)
    assert line.again().total() == 7


def test_a_full_disk_delays_and_loses_nothing(path: Path) -> None:
    """Full is a state; nothing of a change is in the file by halves."""
    line = Line(path)
    line.put(3)
    connection = line.slots._file._connection
    assert connection is not None
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    many = {A: record(*[0.1] * 9), B: record(*[0.001 * 1.013**k for k in range(900)])}
    line.put(12, records=many)
    assert state(line) is StoreState.FULL
    assert line.slots.status().unsaved > 0
    connection.execute("PRAGMA max_page_count = 100000")
    line.put(1)
    assert (state(line), line.slots.status().unsaved) == (StoreState.OK, 0)
    assert line.again().slots.current(A, line.at).record.hist.total == 11 * 9 + 1


def test_another_analyst_is_locked_out(path: Path) -> None:
    """Two would write each other's slots."""
    line = Line(path)
    line.put(1)
    other = Line(path, at=line.at)
    other.put(2)
    assert state(other) is StoreState.LOCKED
    line.slots.close()
    other.put()
    assert state(other) is StoreState.OK
    assert other.total() == 4


def test_an_immutable_file_is_read(path: Path) -> None:
    """What is known is used, and new slots stay in memory."""
    line = Line(path)
    line.put(13)
    line.slots.close()
    chattr = shutil.which("chattr")
    if chattr is None or os.system(f"{chattr} +i '{path}' 2>/dev/null"):  # noqa: S605
        pytest.skip("needs chattr(1), root and a file system that knows it")
    try:
        again = Line(path, at=line.at)
        again.put(2)
        assert state(again) is StoreState.READ_ONLY
        assert again.total() == 12
        assert again.slots.hours(A) == 1
    finally:
        os.system(f"{chattr} -i '{path}'")  # noqa: S605


def test_a_command_that_changed_rows_is_heard_before_the_next_write(path: Path) -> None:
    """All is read anew; what the file had not been told yet stays."""
    line = Line(path)
    line.put(40)
    with closing(schema.connect(path)) as other:
        other.execute("DELETE FROM drift_hours WHERE key >> 20 = ?", (number(NOON),))
        rows.renew(other)
    line.put()
    for one in (line, line.again()):
        first, second = (one.slots.days(A, NOON + DAY + 3_600 * n, 1)[0] for n in (1, 2))
        assert (first.share, second.share) == (0.0, 1.0)
        assert one.total() == 12


def test_marks_are_read_where_they_matter(path: Path) -> None:
    """Long past ones are not."""
    line = Line(path)
    marks.add(path, Mark(MarkKind.DEPLOY, "old", NOON - 40 * DAY, NOON - 39 * DAY, ""))
    marks.add(path, Mark(MarkKind.DEPLOY, "new", NOON - 60, NOON + 60, ""))
    line.put(1)
    assert [mark.author for mark in line.slots._file.marks] == ["new"]
