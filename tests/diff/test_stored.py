"""What is read of a period: slots where there are some, else whole hours, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.alarms.states import Unusable
from sidecar.analyst.door import Nothing
from sidecar.diff import stored
from sidecar.diff.asked import Period, Where
from sidecar.diff.sides import leg_of, side
from sidecar.evaluation import Series
from sidecar.signals import Leg
from tests.diff.recorded import NOW, deploy, kept, slots

HOUR = 3_600.0
ONE = Series("ttft", "upstream", "10.0.0.1:8000")


def test_slots_of_the_last_two_hours(tmp_path: Path) -> None:
    """Whole five minutes of the period, requests of all servers together or of one."""
    path = kept(tmp_path / "a.db", slots(2, each=10))
    found = stored.read(path, Period(NOW - HOUR - 100, NOW))
    assert [piece.slots for piece in found.pieces] == [1] * 12
    assert not found.notes
    assert side(found, Where(), "upstream", "").signals["ttft"].n == 240
    assert side(found, Where("10.0.0.1:8000"), "upstream", "").signals["itl"].n == 12_000


def test_hours_of_earlier_days(tmp_path: Path) -> None:
    """Where there is no slot any more, hours that lie wholly within; the rest is left out."""
    path = kept(tmp_path / "a.db", slots(5.75, each=4))  # from 15:00 on
    found = stored.read(path, Period(NOW - 5.25 * HOUR, NOW - 2.75 * HOUR))  # 15:30 to 18:00
    assert [piece.slots for piece in found.pieces] == [12, 12]
    assert "2 whole hours and 0 slots of 5 min" in found.notes
    assert "120 of its 150 min are known" in found.notes
    assert any("left out: from 2026-05-28 15:00 UTC" in note for note in found.notes)


def test_hours_and_slots_never_count_twice(tmp_path: Path) -> None:
    """An hour of which some slots are there too counts once."""
    path = kept(tmp_path / "a.db", slots(4.75, each=4))
    found = stored.read(path, Period(NOW - 4.75 * HOUR, NOW))
    assert sum(piece.slots for piece in found.pieces) == 57
    assert side(found, Where(), "upstream", "").signals["ttft"].n == 57 * 8


def test_what_an_alarm_kept_out_of_hours_is_said(tmp_path: Path) -> None:
    """The hour of a series whose alarm fired lacks its worst part."""
    path = kept(tmp_path / "a.db", slots(5.75, each=4), frozenset({ONE}))
    found = stored.read(path, Period(NOW - 5.75 * HOUR, NOW - 3.75 * HOUR))
    one = side(found, Where("10.0.0.1:8000"), "upstream", "")
    assert one.alarmed == 24
    assert "ttft" not in one.signals
    assert side(found, Where("10.0.0.2:8000"), "upstream", "").alarmed == 0


def test_marks_in_the_period_are_said(tmp_path: Path) -> None:
    """And what they keep out of hours."""
    path = tmp_path / "a.db"
    kept(path, [])
    deploy(path, NOW - 4.7 * HOUR, NOW - 4.6 * HOUR)
    kept(path, slots(5.75, each=4))
    found = stored.read(path, Period(NOW - 5.75 * HOUR, NOW - 3.75 * HOUR))
    assert "a mark lies in it: deploy by ci" in found.notes
    assert any(note.startswith("10 min of its stored hours are left out") for note in found.notes)


def test_the_leg_that_both_have(tmp_path: Path) -> None:
    """A request seen on both legs counts once: downstream where both sides have it."""
    both = stored.read(kept(tmp_path / "a.db", slots(1, each=4)), Period(NOW - HOUR, NOW))
    down = slots(1, each=4, leg=Leg.DOWNSTREAM)
    one = stored.read(kept(tmp_path / "b.db", down), Period(NOW - HOUR, NOW))
    assert leg_of(both, both, (Where(), Where())) == ("upstream", "upstream")
    assert leg_of(one, one, (Where(), Where())) == ("downstream", "downstream")
    assert leg_of(both, one, (Where(), Where())) == ("upstream", "downstream")
    assert leg_of(both, both, (Where(leg="downstream"), Where())) == ("downstream", "upstream")


def test_a_damaged_record_is_left_out_and_said(tmp_path: Path) -> None:
    """The others still count."""
    import sqlite3

    path = kept(tmp_path / "a.db", slots(1, each=4))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE drift_slots SET record = x'00' WHERE key & 1048575 = 1")
    found = stored.read(path, Period(NOW - HOUR, NOW))
    assert any("12 records of it" in note for note in found.notes)
    assert sum(len(piece.records) for piece in found.pieces) == 12 * 5


def test_no_file_and_no_file_of_ours(tmp_path: Path) -> None:
    """Each is named, with a remedy."""
    with pytest.raises(Nothing, match="there is no such file"):
        stored.read(tmp_path / "none.db", Period(0, HOUR))
    other = tmp_path / "other.db"
    other.write_text("no database" * 100)
    with pytest.raises(Unusable):
        stored.read(other, Period(0, HOUR))


def test_the_last_deploy(tmp_path: Path) -> None:
    """The one that ended last; one that goes on has not."""
    path = kept(tmp_path / "a.db", [])
    assert stored.deploy(path, NOW) is None
    deploy(path, NOW - 2 * HOUR, NOW - 1.5 * HOUR)
    deploy(path, NOW - 3 * HOUR, NOW - 2.5 * HOUR)
    deploy(path, NOW - 60, NOW + 60)
    mark = stored.deploy(path, NOW)
    assert mark is not None
    assert mark.end == NOW - 1.5 * HOUR
