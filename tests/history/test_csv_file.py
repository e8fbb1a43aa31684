"""Tables of rates and of requests, with all that can be wrong in them."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path

import pytest

from sidecar.detect.minutes import Minute, Series
from sidecar.history.csv_file import Table
from sidecar.history.records import Flaw, Served
from sidecar.history.times import zone
from sidecar.signals import Absence, Leg, NoData
from tests.history.made import START, csv, iso, read


def test_rates_by_the_minute(tmp_path: Path) -> None:
    """Columns are found by name; concurrency is a bin of half an octave."""
    path = csv(
        tmp_path,
        "Time,Rate,Tokens,Concurrency,Model",
        f"{iso(START)},42.5,900,6,Qwen2-7B",
        f"{START + 60:.0f},41.5,800,9,Qwen2-7B",
    )
    series = Series("wire", "", "Qwen2-7B")
    records, account = read(path)
    assert records == [
        Minute(series, START, 42.5, 900.0, 6),
        Minute(series, START + 60, 41.5, 800.0, 8),
    ]
    assert account.read == 2
    assert not account.flaws


def test_empty_is_idle_and_not_zero(tmp_path: Path) -> None:
    """An empty rate, or fewer than 20 tokens, is a minute without a value."""
    rows = [f"{START},,0", f"{START + 60},40,19", f"{START + 120},0,900"]
    records, _ = read(csv(tmp_path, "time,rate,tokens", *rows))
    assert [record.rate for record in records if isinstance(record, Minute)] == [None, None, 0.0]


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ("NaN", Flaw.NOT_A_NUMBER),
        ("-1", Flaw.NEGATIVE),
        ("1e12", Flaw.BEYOND_RANGE),
        ("+Inf", Flaw.BEYOND_RANGE),
        ("-inf", Flaw.NEGATIVE),
        ("forty", Flaw.MALFORMED),
        ('"40', Flaw.MALFORMED),
        ("3;5", Flaw.MALFORMED),
    ],
)
def test_a_bad_value_costs_its_row_and_is_counted(tmp_path: Path, value: str, flaw: Flaw) -> None:
    """The rows before and after it stay."""
    rows = [f"{START},40", f"{START + 60},{value}", f"{START + 120},41"]
    records, account = read(csv(tmp_path, "time,rate", *rows))
    assert [record.at for record in records] == [START, START + 120]
    assert account.flaws == {flaw: 1}


def test_ten_years_ahead_is_left_out_and_hides_nothing(tmp_path: Path) -> None:
    """One row of a wrong clock does not make the rows after it late."""
    rows = [f"{START},40", f"{START + 315_360_000},40", f"{START + 60},41"]
    records, account = read(csv(tmp_path, "time,rate", *rows))
    assert [record.at for record in records] == [START, START + 60]
    assert account.flaws == {Flaw.AHEAD: 1}


def test_any_order_comes_out_in_order(tmp_path: Path) -> None:
    """An export that is newest first, or shuffled, loses nothing."""
    ats = [START + 60 * n for n in range(500)]
    random.Random(1).shuffle(ats)
    records, account = read(csv(tmp_path, "time,rate", *(f"{at},40" for at in ats)))
    assert [record.at for record in records] == sorted(ats)
    assert account.sorted > 0
    assert not account.flaws


def test_beyond_the_room_what_is_late_is_counted(tmp_path: Path) -> None:
    """With room for three rows, one that is five back has lost its place; the rest stays."""
    ats = [60, 120, 180, 240, 300, 360, 0, 420]
    path = csv(tmp_path, "time,rate", *(f"{START + at},40" for at in ats))
    records, account = read(path, Table(room=3))
    assert [record.at - START for record in records] == [60, 120, 180, 240, 300, 360, 420]
    assert account.flaws == {Flaw.TOO_LATE: 1}


def test_duplicates_count_once(tmp_path: Path) -> None:
    """A second value for one moment of one series is left out; another series' is its own."""
    rows = [f"{START},40,a", f"{START},50,a", f"{START},60,b"]
    records, account = read(csv(tmp_path, "time,rate,model", *rows))
    rates = {r.series.model: r.rate for r in records if isinstance(r, Minute)}
    assert rates == {"a": 40.0, "b": 60.0}
    assert account.flaws == {Flaw.DUPLICATE: 1}


def test_finer_rows_become_minutes(tmp_path: Path) -> None:
    """Six rows of ten seconds are one minute: tokens over decode seconds, not a mean of rates."""
    rows = [f"{START + 10 * n},{10 if n % 2 else 40},{400}" for n in range(12)]
    records, _ = read(csv(tmp_path, "time,rate,tokens", *rows))
    found = [(record.at - START, record.rate) for record in records if isinstance(record, Minute)]
    assert [at for at, _ in found] == [0.0, 60.0]
    assert [rate for _, rate in found] == pytest.approx([16.0, 16.0])


def test_minutes_that_come_a_little_early_stay_apart(tmp_path: Path) -> None:
    """Stamps of a sidecar drift by fractions of a second."""
    ats = [START + 59.6 * n for n in range(30)]
    records, _ = read(csv(tmp_path, "time,rate", *(f"{at},40" for at in ats)))
    assert len(records) == 30


def test_the_change_from_summer_time_loses_no_minute(tmp_path: Path) -> None:
    """Local stamps of the night in which an hour comes twice are all kept, in order."""
    berlin = zone("Europe/Berlin")
    begin = 1_761_429_600.0  # 2025-10-25 22:00 UTC
    local = [datetime.fromtimestamp(begin + 60 * n, berlin).isoformat()[:19] for n in range(300)]
    path = csv(tmp_path, "time,rate", *(f"{text},40" for text in local))
    records, account = read(path, Table(zone=berlin), now=begin + 1e6)
    assert [record.at for record in records] == [begin + 60 * n for n in range(300)]
    assert account.ambiguous == 120
    assert not account.flaws


def test_requests_and_the_rates_that_they_make(tmp_path: Path) -> None:
    """Rows of requests are served ones; with tokens and TTFT they make a rate by the minute."""
    rows = [f"{START + n},200,2.5,0.5,81,m" for n in range(60)]
    path = csv(tmp_path, "time,status,duration,ttft,tokens,model", *rows)
    records, _ = read(path, Table(leg=Leg.UPSTREAM))
    served = [record for record in records if isinstance(record, Served)]
    [minute] = [record for record in records if isinstance(record, Minute)]
    assert len(served) == 60
    assert served[0] == Served(START, Leg.UPSTREAM, "m", 200, 2.5, 0.5)
    assert minute == Minute(Series("wire", "", "m"), START + 60, 40.0, 4_800.0, 3)


def test_milliseconds_have_columns_of_their_own(tmp_path: Path) -> None:
    """A unit is said, never guessed."""
    row = f"{START * 1000:.0f},1500,250,503"
    records, _ = read(csv(tmp_path, "time_ms,duration_ms,ttft_ms,status", row))
    assert records == [Served(START, Leg.DOWNSTREAM, "", 503, 1.5, 0.25)]


def test_a_request_seen_before_counts_once(tmp_path: Path) -> None:
    """Where rows have ids, the second of one id is left out; without ids two alike are two."""
    row = f"{START},200"
    assert len(read(csv(tmp_path, "time,status", row, row))[0]) == 2
    records, account = read(csv(tmp_path, "time,status,id", f"{row},x", f"{row},x"))
    assert len(records) == 1
    assert account.flaws == {Flaw.DUPLICATE: 1}


def test_columns_can_be_named(tmp_path: Path) -> None:
    """Other tables are read by telling which column is what; the rest is named as not used."""
    path = csv(tmp_path, "TimeStamp;Value;Label", f"{iso(START)};40,5;0", f"{iso(START)};40.5;0")
    records, account = read(path, Table(columns={"rate": "Value"}))
    assert [record.rate for record in records if isinstance(record, Minute)] == [40.5]
    assert account.flaws == {Flaw.MALFORMED: 1}
    assert account.notes == ["columns not used: Label"]


@pytest.mark.parametrize("header", ["a,b", "time,model", "rate", "time"])
def test_a_table_of_something_else_says_what_is_needed(tmp_path: Path, header: str) -> None:
    """A header without a time and a value is refused, and named."""
    with pytest.raises(NoData, match="first row has to name") as caught:
        read(csv(tmp_path, header, "1,2"))
    assert caught.value.absence is Absence.NO_SIGNAL


def test_a_stray_quote_costs_one_line(tmp_path: Path) -> None:
    """It does not swallow the rest of the file."""
    rows = [f'{START},40,"a', f"{START + 60},41,b", f"{START + 120},42,b"]
    records, account = read(csv(tmp_path, "time,rate,model", *rows))
    assert len(records) == 2
    assert account.flaws == {Flaw.MALFORMED: 1}
