"""Tests of sidecar.analyst.calendar: the same time of day, where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from sidecar.analyst.calendar import HOUR, SECONDS, Calendar, Same, ended, number

BERLIN, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")


def at(text: str, zone: tzinfo = UTC) -> int:
    """The slot that begins at a time."""
    return number(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


def same(zone: tzinfo, end: str, days: int = 1) -> Same:
    """The last of the days before the hour that ends at a local time."""
    return list(Calendar(zone).same(at(end, zone), days))[-1]


def utc(slots: tuple[int, ...]) -> list[str]:
    return [datetime.fromtimestamp(one * SECONDS, UTC).strftime("%dT%H:%M") for one in slots]


def test_a_slot_that_ends_a_little_early_has_ended() -> None:
    """Two seconds, no more."""
    assert ended(600.0) == ended(598.5) == 2
    assert ended(597.0) == 1


@pytest.mark.parametrize(
    ("zone", "slot", "hour"),
    [
        (UTC, "2026-06-15T12:55", "2026-06-15T12:00"),
        (BERLIN, "2026-06-15T12:00", "2026-06-15T12:00"),
        (KOLKATA, "2026-06-15T12:25", "2026-06-15T11:30"),
        (KOLKATA, "2026-06-15T12:30", "2026-06-15T12:30"),
        # The clock went back from 02:00 to 01:30 at 15:00 UTC: that hour would have begun at 14:30.
        (LORD_HOWE, "2026-04-04T14:55", "2026-04-04T14:00"),
        (LORD_HOWE, "2026-04-04T15:05", "2026-04-04T14:30"),
    ],
)
def test_hours_are_those_of_the_local_clock(zone: tzinfo, slot: str, hour: str) -> None:
    """Also where it is half an hour off UTC, or changes by half an hour."""
    assert Calendar(zone).hour(at(slot)) == at(hour)


def test_an_ordinary_day_is_24_hours_before() -> None:
    """Twelve slots, and the date is that of the last one by the local clock."""
    found = same(KOLKATA, "2026-06-15T00:25", 7)
    end = at("2026-06-08T00:25", KOLKATA)
    assert found == Same("2026-06-08", tuple(range(end - HOUR, end)), 0)


def test_over_a_change_to_summer_time_the_wall_clock_counts() -> None:
    """10 o'clock is 10 o'clock, 23 hours apart over the change in spring."""
    assert utc(same(BERLIN, "2026-03-29T10:00").slots)[0] == "28T08:00"
    assert utc(same(BERLIN, "2026-03-28T10:00").slots)[0] == "27T08:00"
    assert utc(same(BERLIN, "2026-03-30T10:00").slots)[0] == "29T07:00"


def test_the_hour_that_is_left_out_in_spring_has_no_slots() -> None:
    """Berlin, 29 March 2026: 02:00 to 03:00 did not exist, so that day knows nothing of it."""
    assert same(BERLIN, "2026-03-30T03:00") == Same("2026-03-29", (), 12)
    half = same(BERLIN, "2026-03-30T03:30")
    assert half.missing == 6
    assert utc(half.slots) == [
        "29T01:00",
        "29T01:05",
        "29T01:10",
        "29T01:15",
        "29T01:20",
        "29T01:25",
    ]


def test_of_the_hour_that_comes_twice_in_autumn_the_first_is_taken() -> None:
    """Berlin, 25 October 2026: 02:00 to 03:00 was from 00:00 and from 01:00 UTC."""
    found = same(BERLIN, "2026-10-26T03:00")
    assert utc(found.slots)[0] == "25T00:00"
    assert (len(found.slots), found.missing) == (12, 0)
    assert utc(same(BERLIN, "2026-10-26T03:30").slots)[5:7] == ["25T00:55", "25T02:00"]


def test_an_hour_across_the_change_asks_for_what_the_clock_showed() -> None:
    """At 03:30 after the change in spring the last hour was 01:30 to 02:00 and 03:00 to 03:30."""
    found = utc(same(BERLIN, "2026-03-29T03:30").slots)
    assert (found[0], found[5], found[6], found[11]) == (
        "28T00:30",
        "28T00:55",
        "28T02:00",
        "28T02:25",
    )


def test_a_change_of_half_an_hour() -> None:
    """Lord Howe, 4 October 2026: 02:00 to 02:30 did not exist."""
    assert same(LORD_HOWE, "2026-10-05T03:00").missing == 6
