"""Tests of sidecar.alarms.marks."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sidecar.alarms import marks, schema, tables
from sidecar.alarms.book import Book
from sidecar.alarms.marks import MarkError
from sidecar.alarms.states import StoreState, Unusable
from sidecar.alarms.store import Store
from sidecar.alarms.writer import Writer
from sidecar.verdicts import Mark, MarkKind
from tests.alarms.samples import NOON, verdict
from tests.alarms.waiting import until

ROOT = Path(__file__).parents[2]
START = datetime.fromtimestamp(NOON, UTC)
HOUR = timedelta(hours=1)
ADDING = (
    "import sys; from pathlib import Path; from sidecar.alarms import marks;"
    "from tests.alarms.test_marks import mark\n"
    "for n in range(20): marks.add(Path(sys.argv[1]), mark(text=f'{sys.argv[2]}/{n}'))"
)


def mark(now: float = NOON, **changes: Any) -> Mark:
    """A checked chaos mark of an hour, but for the changes."""
    fields: dict[str, Any] = {
        "kind": "chaos", "author": "ann", "start": START, "end": START + HOUR, "text": "kill r0",
    }  # fmt: skip
    return marks.checked(**{**fields, **changes}, now=now)


def test_a_good_mark() -> None:
    """It is what was asked for, in Unix seconds, without the space around its words."""
    made = mark(author=" ann ", text=" kill r0\n")
    assert made == Mark(MarkKind.CHAOS, "ann", NOON, NOON + 3_600, "kill r0")


@pytest.mark.parametrize(
    ("field", "changes", "says"),
    [
        ("kind", {"kind": "party"}, "one of chaos, deploy, incident, not 'party'"),
        ("author", {"author": "  "}, "required"),
        ("author", {"author": "a" * 101}, "at most 100 characters, not 101"),
        ("author", {"author": "a\x1b[2J"}, "printable"),
        ("text", {"text": "a\nb"}, "one line"),
        ("text", {"text": "\udcff"}, "printable"),
        ("text", {"text": "x" * 1_001}, "at most 1000"),
        ("start", {"start": START.replace(tzinfo=None)}, "with its zone"),
        ("end", {"end": (START + HOUR).replace(tzinfo=None)}, "with its zone"),
        ("start", {"start": START + timedelta(seconds=61)}, "now or earlier, not 61 s"),
        ("start", {"start": START + timedelta(days=3_653)}, "now or earlier"),
        ("end", {"end": START}, "later than start"),
        ("end", {"end": START - HOUR}, "later than start"),
        ("end", {"end": START + 4 * HOUR + timedelta(seconds=1)}, "at most 4 h after start"),
        ("end", {"kind": "incident", "end": START + 25 * HOUR}, "at most 24 h after start, not 25"),
        ("end", {"end": datetime.max.replace(tzinfo=UTC)}, "at most 4 h"),
    ],
)
def test_what_is_not_allowed_is_named(field: str, changes: dict[str, Any], says: str) -> None:
    """The error names the field and what is allowed."""
    with pytest.raises(MarkError, match="^" + field) as caught:
        mark(**changes)
    assert caught.value.field == field
    assert says in str(caught.value)


def test_up_to_a_minute_ahead_is_now() -> None:
    """Two clocks are never the same."""
    assert mark(start=START + timedelta(seconds=60)).start == NOON + 60


def test_the_length_is_real_time_across_summer_time() -> None:
    """From 00:30 to 05:30 on the night the clocks go forward is four hours, not five; on the night
    they go back 00:30 to 04:30 is five, not four.
    """
    berlin = ZoneInfo("Europe/Berlin")
    spring = {"start": datetime(2026, 3, 29, 0, 30, tzinfo=berlin)}
    made = mark(**spring, end=datetime(2026, 3, 29, 5, 30, tzinfo=berlin), now=2e9)
    assert made.end - made.start == 4 * 3_600
    autumn = {"start": datetime(2026, 10, 25, 0, 30, tzinfo=berlin)}
    with pytest.raises(MarkError, match="not 5 h"):
        mark(**autumn, end=datetime(2026, 10, 25, 4, 30, tzinfo=berlin), now=2e9)


def test_offsets_are_understood() -> None:
    """The same moment in another zone is the same mark."""
    odd = timezone(timedelta(hours=5, minutes=45))
    assert mark(start=START.astimezone(odd), end=(START + HOUR).astimezone(odd)) == mark()


def test_marks_are_kept_newest_first(tmp_path: Path) -> None:
    """Without a file there are none; the first makes it; those in force are the current ones."""
    path = tmp_path / "alarms.db"
    assert marks.listed(path) == marks.current(path, NOON) == ()
    assert not path.exists()
    over, now = mark(end=START + timedelta(seconds=1)), mark(author="bob'; DROP TABLE marks; --")
    marks.add(path, over)
    marks.add(path, now)
    assert marks.listed(path) == (now, over)
    assert marks.listed(path, 1) == (now,)
    assert marks.current(path, NOON + 2) == (now,)
    assert path.stat().st_mode & 0o777 == 0o600
    store = Store()
    assert store.open(path) is StoreState.OK
    assert store.marks(NOON) == (now, over)
    store.close()


def test_the_deploy_that_ended_last_is_told_for_ever(tmp_path: Path) -> None:
    """It may have ended while no sidecar ran; marks of other kinds are over when they are over."""
    path = tmp_path / "alarms.db"
    ends = {"first": 30, "last": 60, "later": 600}
    for text, seconds in ends.items():
        marks.add(path, mark(kind="deploy", end=START + timedelta(seconds=seconds), text=text))
    marks.add(path, mark(end=START + timedelta(seconds=70)))
    store = Store()
    assert store.open(path) is StoreState.OK
    assert [m.text for m in store.marks(NOON + 90)] == ["later", "last"]
    assert [m.text for m in store.marks(NOON + 1e6)] == ["later"]
    store.close()


def test_the_oldest_marks_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that adds marks for ever does not fill the disk."""
    monkeypatch.setattr(tables, "MARKS", 3)
    for number in range(5):
        marks.add(tmp_path / "alarms.db", mark(text=f"{number}"))
    assert [m.text for m in marks.listed(tmp_path / "alarms.db")] == ["4", "3", "2"]


def test_a_file_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    """The state and its remedy are those of the store; a foreign file keeps bytes and mode."""
    with pytest.raises(Unusable, match="no folder") as caught:
        marks.add(tmp_path / "no" / "alarms.db", mark())
    assert caught.value.state is StoreState.ABSENT_FOLDER
    foreign = tmp_path / "notes.txt"
    foreign.write_bytes(b"notes" * 1_000)
    foreign.chmod(0o644)
    with pytest.raises(Unusable) as caught:
        marks.add(foreign, mark())
    assert caught.value.state is StoreState.FOREIGN
    assert foreign.read_bytes() == b"notes" * 1_000
    assert foreign.stat().st_mode & 0o777 == 0o644
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "target.db")
    with pytest.raises(Unusable, match="symbolic link"):
        marks.add(link, mark())


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    """A command of an older version does not write where a newer sidecar does."""
    path = tmp_path / "alarms.db"
    marks.add(path, mark())
    connection = schema.connect(path)
    connection.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(Unusable) as caught:
        marks.add(path, mark())
    assert caught.value.state is StoreState.NEWER


def test_another_process_adds_marks_while_the_sidecar_writes(tmp_path: Path) -> None:
    """Commands add marks while the writer writes without pause; it sees them and loses nothing."""
    path = tmp_path / "alarms.db"
    store, book = Store(), Book()
    store.open(path)
    writer = Writer(store, rest_seconds=0.0, poll_seconds=0.05, wall=lambda: NOON + 1)
    writer.start()
    commands = [
        subprocess.Popen([sys.executable, "-c", ADDING, str(path), name], cwd=ROOT) for name in "ab"
    ]
    rounds = 0

    def all_seen() -> bool:
        nonlocal rounds
        rounds += 1
        happened = book.update([verdict(hold=1e9)], NOON + rounds, float(rounds), writer.marks())
        writer.exchange(book.standings(), happened)
        return len(writer.marks()) == 40

    until(all_seen)
    assert [command.wait() for command in commands] == [0, 0]
    assert writer.stop()
    status = writer.status()
    assert (status.state, status.failures) == (StoreState.OK, 0)
    assert status.rounds == status.durable
    store.open(path)
    assert store.restored == book.standings()
    store.close()
