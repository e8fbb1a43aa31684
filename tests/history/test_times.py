"""Times as files have them, and the two odd hours of a year."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sidecar.config import ConfigError
from sidecar.history.records import Account, Flaw, Left
from sidecar.history.times import Clock, duration, since, written, zone
from tests.history.made import NOW, START

BERLIN = zone("Europe/Berlin")


def read(text: str, clock: Clock | None = None) -> float:
    return (clock or Clock(None, NOW)).read(text, Account())


def flaw(text: str, clock: Clock | None = None) -> Flaw:
    with pytest.raises(Left) as caught:
        read(text, clock)
    return caught.value.flaw


@pytest.mark.parametrize(
    "text",
    ["1750032000", "1750032000.0", "2025-06-16T00:00:00Z", "2025-06-16 00:00:00 UTC",
     "2025-06-16T02:00:00+02:00", "20250616T000000Z", "2025-06-16T00:00:00.000000000Z"],
)  # fmt: skip
def test_one_moment_in_every_writing(text: str) -> None:
    """Unix seconds and ISO 8601 with a zone are the same moment."""
    assert read(text) == START


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Flaw.NO_TIME),
        ("NaN", Flaw.NOT_A_NUMBER),
        ("inf", Flaw.NOT_A_NUMBER),
        ("yesterday", Flaw.MALFORMED),
        ("2025-02-30T00:00:00Z", Flaw.MALFORMED),
        ("1e12", Flaw.AHEAD),
        ("2035-06-16T00:00:00Z", Flaw.AHEAD),
        ("-5", Flaw.BEFORE),
        ("0", Flaw.BEFORE),
        ("2025-06-16 00:00:00", Flaw.NO_ZONE),
    ],
)
def test_what_is_no_time_says_how(text: str, expected: Flaw) -> None:
    """Each way of not being a time is a state of its own; none becomes a moment."""
    assert flaw(text) is expected


def test_a_local_time_is_of_the_zone_given() -> None:
    """02:00 in Berlin in June is midnight UTC."""
    assert read("2025-06-16 02:00:00", Clock(BERLIN, NOW)) == START


def test_the_skipped_hour_is_no_time() -> None:
    """2025-03-30 02:30 never was in Berlin."""
    assert flaw("2025-03-30 02:30:00", Clock(BERLIN, NOW)) is Flaw.NONEXISTENT


def test_the_hour_that_comes_twice_is_told_apart_by_order() -> None:
    """Local minutes from 01:00 to 04:00 on the night of the change are four hours of real ones."""
    clock, account = Clock(BERLIN, NOW + 1e7 * 10), Account()
    begin = datetime(2025, 10, 25, 23, 0, tzinfo=UTC).timestamp()
    real = [begin + 60 * n for n in range(240)]
    local = [datetime.fromtimestamp(at, BERLIN).strftime("%Y-%m-%d %H:%M:%S") for at in real]
    assert len(set(local)) == 180
    assert [clock.read(text, account) for text in local] == real
    assert account.ambiguous == 120


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("7d", 604_800), ("1d12h", 129_600)])
def test_durations(text: str, seconds: float) -> None:
    """A number and a unit, or several."""
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "7 days", "-1d", "1h-"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ConfigError):
        duration(text)


def test_since_takes_both() -> None:
    """A duration counts back from now; a moment is itself, and needs its zone."""
    assert since("1d", NOW) == NOW - 86_400
    assert since("2025-06-16T00:00:00Z", NOW) == START
    with pytest.raises(ConfigError):
        since("2025-06-16", NOW)


@pytest.mark.parametrize("name", ["Mars/Olympus", "../../etc/passwd", ""])
def test_a_zone_that_is_none_is_refused(name: str) -> None:
    """Only names of the IANA database are zones."""
    with pytest.raises(ConfigError):
        zone(name)


def test_written_in_utc() -> None:
    """Times are shown in UTC, to the minute."""
    assert written(START) == "2025-06-16 00:00"
