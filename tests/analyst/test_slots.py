"""Tests of sidecar.analyst.slots: what goes in, and what comes out."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from sidecar.alarms import marks
from sidecar.analyst import reading
from sidecar.analyst.pages import total as sum_of
from sidecar.analyst.slots import SURE_SLOTS
from sidecar.evaluation import Series
from sidecar.record import Record
from sidecar.verdicts import Mark, MarkKind
from tests.analyst.made import DAY, NOON, A, B, Line, record, slot, total


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alarms.db"


def deploy(path: Path, start: float, minutes: float) -> None:
    """Somebody declares a deploy."""
    marks.add(path, Mark(MarkKind.DEPLOY, "ci", start, start + 60 * minutes, ""))


def test_the_last_hour_slides() -> None:
    """It is the sum of the twelve slots that have ended, whatever their series."""
    line = Line()
    for n in range(1, 15):
        line.put(n=n)
    found = line.slots.current(A, line.at)
    assert (found.record.hist.total, found.slots) == (sum(range(3, 15)), 12)
    assert (found.start, found.end) == (line.at - 3_600, line.at)
    assert line.slots.current(B, line.at).record == Record()
    assert line.slots.current(B, line.at).slots == 12


def test_a_gap_is_no_zero() -> None:
    """The window says how many of its slots anybody watched."""
    line = Line()
    line.put(3)
    line.at += 600
    line.put(2)
    assert line.slots.current(A, line.at).slots == 5


def test_boundaries_may_be_a_second_off() -> None:
    """A slot is told by its middle, and one that ends early has ended."""
    line = Line(at=NOON + 1.2)
    line.put(12)
    line.at = NOON + 3_598.7
    assert line.slots.current(A, line.at).slots == 12
    line.at = NOON + 3_600 + 2
    line.slots.put(slot(NOON + 3_598.7, n=5))
    assert line.slots.clock_hour(A, line.at + 300).record.hist.total == 12


def test_the_last_whole_hour_of_the_clock() -> None:
    """It stands until the next one has ended, 55 minutes later."""
    line = Line()
    line.put(12, n=2)
    first = line.slots.clock_hour(A, line.at)
    assert (first.start, first.slots, first.record.hist.total) == (NOON, 12, 24)
    line.put(11)
    assert line.slots.clock_hour(A, line.at) == first
    line.put()
    assert line.slots.clock_hour(A, line.at).record.hist.total == 12


def test_a_sliding_hour_has_two_weighted_parts(path: Path) -> None:
    """Two thirds of the one hour of yesterday, one third of the other."""
    line = Line(path)
    line.put(12, n=3)
    line.put(13, n=6)
    at = NOON + DAY + 4_800
    line.at = at
    for one in (line, line.again()):
        [day] = one.slots.days(A, at, 1)
        assert (day.date, day.share, day.dropped, day.left) == ("2026-06-15", 1.0, "", ())
        assert [part.start for part in day.parts] == [NOON, NOON + 3_600]
        assert [part.weight for part in day.parts] == pytest.approx([2 / 3, 1 / 3])
        assert total(day) == pytest.approx(24 + 24)


def test_an_hour_is_the_sum_of_its_slots(path: Path) -> None:
    """To the last cell, block and square, also after a restart."""
    line = Line(path)
    records = [record(*[0.001 * k * n for k in range(1, 20)]) for n in range(1, 14)]
    for one in records:
        line.put(records={A: one, B: record(7.0)})
    [day] = line.again().slots.days(A, NOON + DAY + 3_600, 1)
    [part] = day.parts
    whole = sum_of(records[:12])
    assert (part.weight, part.record.hist, part.record.blocks) == (1.0, whole.hist, 12)
    assert part.record.strata == whole.strata
    assert list(part.record.squares) == pytest.approx(list(whole.squares), rel=1e-6)


def test_a_zone_with_half_an_hour_has_hours_of_its_own() -> None:
    """An hour of the clock in Kolkata is one part, though it begins at half past by UTC."""
    line = Line(zone=ZoneInfo("Asia/Kolkata"), at=NOON + 1_800)
    line.put(13)
    [day] = line.slots.days(A, NOON + 1_800 + DAY + 3_600, 1)
    assert [(part.start, part.weight) for part in day.parts] == [(NOON + 1_800, 1.0)]


def test_a_zone_that_was_changed_finds_what_there_is(path: Path) -> None:
    """Hours stored by another clock are cut by slots all the same."""
    line = Line(path)
    line.put(25, n=3)
    line.slots.close()
    moved = Line(path, zone=ZoneInfo("Asia/Kolkata"), at=line.at)
    [day] = moved.slots.days(A, NOON + DAY + 5_400, 1)
    assert [part.weight for part in day.parts] == [0.5, 0.5]
    assert total(day) == 36


def test_the_days_of_a_change_to_winter_time() -> None:
    """In Berlin the hour before 03:00 on 25 October came twice; the first of the two is used."""
    line = Line(zone=ZoneInfo("Europe/Berlin"), at=NOON + 132 * DAY - 12 * 3_600)
    line.put(12, n=3)
    line.put(13, n=5)
    [day] = line.slots.days(A, line.at - 300 + DAY, 1)  # 03:00 CET, a day later
    assert (day.date, total(day), day.share) == ("2026-10-25", 36.0, 1.0)


def test_the_hour_that_spring_leaves_out_is_dropped_with_its_reason() -> None:
    """In Berlin on 29 March there was no 02:30."""
    spring = NOON - 78 * DAY - 12 * 3_600  # 29 March, 00:00 UTC
    line = Line(zone=ZoneInfo("Europe/Berlin"), at=spring)
    line.put(37)
    [day] = line.slots.days(A, spring + DAY + 3_600, 1)
    assert (day.date, day.parts, day.dropped) == ("2026-03-29", (), reading.NO_SUCH_HOUR)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"steady": False}, "unsteady"),
        ({"seconds": 601.0}, "odd_length"),
        ({"seconds": -1.0}, "odd_length"),
        ({"start": NOON + 30}, "ahead"),
        ({"start": NOON - 9 * DAY}, "past"),
        ({"start": NOON - 300}, "repeated"),
        ({"start": NOON - 302}, "repeated"),
        ({"start": NOON - 10_800}, "late"),
        ({"start": float("nan")}, "no_time"),
        ({"start": float("inf")}, "no_time"),
    ],
)
def test_what_cannot_be_used_is_counted_by_why(given: dict[str, float], why: str) -> None:
    """It changes nothing else."""
    line = Line(at=NOON - 10_800)
    line.put(SURE_SLOTS * 3)
    before = line.total()
    assert line.slots.put(slot(**{"start": NOON, "n": 50, **given})) == why
    assert line.slots.status().counted == {why: 1}
    assert line.total() == before


def test_a_restart_loses_nothing_but_the_open_slot(path: Path) -> None:
    """Also in the middle of an hour, and the hour it was in is whole in the end."""
    line = Line(path)
    line.put(7)
    again = line.again()
    assert again.total() == 7
    assert again.slots.watermark == line.at
    again.put(6)
    [day] = again.slots.days(A, NOON + DAY + 3_600, 1)
    assert (day.share, total(day)) == (1.0, 12.0)


def test_an_hour_that_nobody_ended_is_made_at_the_next_start(path: Path) -> None:
    """A sidecar that ended within an hour and came back later."""
    line = Line(path)
    line.put(7)
    again = line.again()
    again.at += 4 * 3_600
    again.put()
    [day] = again.slots.days(A, NOON + DAY + 3_600, 1)
    assert (day.share, total(day)) == (pytest.approx(7 / 12), 7.0)
    assert day.left == ((reading.NOT_RECORDED, 5),)


def test_less_than_half_an_hour_is_no_day() -> None:
    """The rest of it might have been anything."""
    line = Line()
    line.put(5)
    line.at += 3_600
    line.put()
    [day] = line.slots.days(A, NOON + DAY + 3_600, 1)
    assert day.dropped == reading.NOT_RECORDED


def test_no_requests_is_not_nothing_recorded() -> None:
    """A series that was idle while others were not."""
    line = Line()
    line.put(13, records={B: record(1.0)})
    line.put(1)
    idle, missing = line.slots.days(A, NOON + DAY + 3_600, 2)
    assert (idle.dropped, idle.share) == (reading.NO_REQUESTS, 1.0)
    assert (missing.dropped, missing.share) == (reading.NOT_RECORDED, 0.0)


def test_a_mark_leaves_five_minutes_out(path: Path) -> None:
    """Of the hour that is stored, by slots it overlaps; the hour of now has them all."""
    line = Line(path)
    line.put(4, n=1)
    deploy(path, line.at + 10, 6)  # two slots
    line.put(8, n=2)
    assert line.total() == 4 + 16
    line.put()
    [day] = line.again().slots.days(A, NOON + DAY + 3_600, 1)
    assert (day.share, total(day)) == (pytest.approx(10 / 12), 4 + 12)
    assert day.left == (("deploy by ci", 2),)
    assert not day.dropped


def test_a_mark_that_comes_too_late_takes_the_whole_hour(path: Path) -> None:
    """What it covers cannot be told apart from the rest any more."""
    line = Line(path)
    line.put(26)
    deploy(path, NOON + 3_650, 2)
    line.put()
    early, late = (line.slots.days(A, NOON + DAY + 3_600 * n, 1)[0] for n in (1, 2))
    assert (early.dropped, early.share) == ("", 1.0)
    assert (late.dropped, late.share, late.left) == ("deploy by ci", 0.0, (("deploy by ci", 12),))


def test_what_is_recorded_while_the_alarm_fires_is_not_usual() -> None:
    """Of that series alone; it counts for now."""
    line = Line()
    both = {A: record(0.1), B: record(0.1)}
    line.put(3, records=both)
    line.put(9, records=both, frozen={A})
    assert line.total() == 12
    line.put(1, records=both)
    [mine], [other] = (line.slots.days(one, NOON + DAY + 3_600, 1) for one in (A, B))
    assert (mine.dropped, mine.share) == (reading.ALARMED, 0.25)
    assert (other.dropped, other.share) == ("", 1.0)


def test_too_many_series_are_folded_and_counted(path: Path) -> None:
    """Into `other` of their signal and leg, which is kept like any other."""
    line = Line(path, max_series=2)
    crowd = {Series("ttft", "downstream", f"s{n}"): record(0.1) for n in range(5)}
    line.put(13, records=crowd)
    assert [series.server for series in line.slots.series()] == ["s0", "s1", "other"]
    assert line.slots.status().counted == {"folded": 39}
    other = Series("ttft", "downstream", "other")
    assert line.slots.current(other, line.at).record.hist.total == 36
    assert total(line.again().slots.days(other, NOON + DAY + 3_600, 1)[0]) == 36


def test_a_series_that_is_not_seen_for_eight_days_goes(path: Path) -> None:
    """And its hours with it, in the file too; the rest stays."""
    line = Line(path)
    line.put(13, records={A: record(0.1)})
    line.put(1, records={B: record(0.1)})
    line.at = NOON + 8 * DAY
    line.put(SURE_SLOTS - 1, records={B: record(0.1)})
    assert set(line.slots.series()) == {A, B}  # the clock is not believed yet
    line.at = NOON + 8 * DAY + 2 * 3_600
    line.put(SURE_SLOTS, records={B: record(0.1)})
    for one in (line, line.again()):
        assert one.slots.series() == (B,)
        assert not one.slots.hours(A)
    line.put(records={A: record(0.3)})
    assert set(line.slots.series()) == {A, B}


def test_a_clock_that_was_wrong_for_a_moment_costs_nothing() -> None:
    """A month ahead and back again: what was known is still there."""
    line = Line()
    line.put(25)
    line.at += 30 * DAY
    line.put(3, steady=False)
    line.put(SURE_SLOTS - 1)
    line.at = NOON + 25 * 300
    line.put(1, steady=False)
    line.put(11)
    [day] = line.slots.days(A, NOON + DAY + 3_600, 1)
    assert (day.share, total(day)) == (1.0, 12.0)
    assert line.slots.current(A, line.at).slots == 11


def test_slots_that_come_late_but_in_order_make_their_hour() -> None:
    """A sidecar that had to wait for its analyst hands over what it kept."""
    line = Line()
    line.put(5)
    slots = [slot(NOON + 300 * n, n=2) for n in range(5, 20)]
    line.at += 4 * 3_600
    assert [line.slots.put(one) for one in [*slots[9:], *slots[:9]]] == [""] * 15
    assert line.slots.put(slots[3]) == "late"
    line.put()
    [day] = line.slots.days(A, NOON + DAY + 3_600, 1)
    assert (day.share, total(day)) == (1.0, 5 + 14)


def test_what_lies_ahead_goes_once_the_clock_is_sure(path: Path) -> None:
    """After an hour; it is counted, and the place is free again."""
    line = Line(path)
    line.at += DAY
    line.put(25)
    line.at = NOON
    line.put(1, steady=False)
    line.put(SURE_SLOTS)
    assert line.slots.status().counted == {"unsteady": 1, "ahead": 24 + 2}
    line.at = NOON + DAY
    assert line.put(12) == [""] * 12
    assert line.again().total() == 12


def test_marks_of_other_kinds_are_named(path: Path) -> None:
    """The author's words come as they are; whoever shows them has to quote them."""
    line = Line(path)
    marks.add(path, Mark(MarkKind.CHAOS, "\x1b[31mred", NOON, NOON + 3_600, ""))
    line.put(13)
    [day] = line.slots.days(A, NOON + DAY + 3_600, 1)
    assert day.dropped == "chaos by \x1b[31mred"
