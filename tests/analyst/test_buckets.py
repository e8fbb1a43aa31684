"""What is remembered of engines' own buckets, and what an analyst without a tap concludes."""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.alarms.states import StoreState
from sidecar.analyst import rows
from sidecar.analyst.analysis import Analysis
from sidecar.analyst.bucket_pages import Row, left_out, pack, unpack
from sidecar.analyst.buckets import Buckets
from sidecar.analyst.calendar import DAY, HOUR, SECONDS, Calendar
from sidecar.analyst.file import File
from sidecar.bucketed import Bucketed
from sidecar.drift.bucketed_rule import Hours
from sidecar.drift.options import Options
from sidecar.evaluation import ENGINE, Evaluation, Series, Standing
from sidecar.recorder import Slot
from sidecar.verdicts import Mark, MarkKind
from tests.analyst.made import A, Line, slot
from tests.drift.engines import TTFT, VLLM_TTFT, hour, lognormal

ITL = Series("itl", ENGINE, "r0/m")
ONE = Bucketed((0.1, 0.5), (3, 2, 0), 1.25)
FIRST = 6_000_000  # a slot
COUNT = st.integers(0, 2**40)


def buckets(days: int = 7, max_series: int = 9) -> Buckets:
    return Buckets(Calendar(UTC), days, max_series, Counter())


def hours(memory: Buckets, end: int, series: Series = TTFT) -> Hours:
    return memory.hours(end * SECONDS)[series]


@given(st.lists(COUNT, min_size=3, max_size=3), st.floats(0, 1e12), st.booleans(), st.text())
def test_a_page_comes_back(counts: list[int], total: float, frozen: bool, name: str) -> None:
    """Whatever engines call their models."""
    row = Row(frozen, Bucketed((0.1, 0.5), tuple(counts), total))
    page = {TTFT: Row(False, ONE), Series("itl", ENGINE, name): row}
    assert unpack(pack(page)) == page


WHOLE = pack({TTFT: Row(False, ONE)})
TORN = st.builds(lambda at, more: WHOLE[:at] + more, st.integers(0, 40), st.binary(max_size=7))


@given(st.binary(max_size=40) | TORN)
def test_other_bytes_are_no_page(data: bytes) -> None:
    """Nor are torn ones."""
    with pytest.raises(ValueError, match=r"."):
        unpack(data)


@pytest.mark.parametrize(
    "text",
    [
        '[[[0.1]], [["ttft", "r0", false, 0, [1, -2], 0.5]]]',
        '[[[0.1]], [["ttft", "r0", false, 0, [1, 2.5], 0.5]]]',
        '[[[0.1]], [["ttft", "r0", false, 1, [1, 2], 0.5]]]',
        '[[[0.1]], [["ttft", 7, false, 0, [1, 2], 0.5]]]',
        '[[[0.2, 0.1]], [["ttft", "r0", false, 0, [1, 2, 3], 0.5]]]',
        '[[[0.1]], [["ttft", "r0", false, 0, [1, 2], NaN]]]',
        "[[], 7]",
        "{}",
    ],
)
def test_rows_that_make_no_sense_are_no_page(text: str) -> None:
    """What was not counted is not used."""
    with pytest.raises(ValueError, match=r"."):
        unpack(zlib.compress(text.encode()))


def test_the_same_hour_is_its_twelve_slots() -> None:
    """Unweighted, and the clock hour likewise."""
    memory = buckets()
    for number in range(FIRST, FIRST + 2 * DAY):
        memory.take(number, {TTFT: Bucketed((0.1,), (number - FIRST, 1), 1.0)}, ())
    end = FIRST + DAY + 30
    found = hours(memory, end)
    assert [one.counts[0] for one in found.hour] == list(range(DAY + 18, DAY + 30))
    (day,) = found.days.values()
    assert [one.counts[0] for one in day] == list(range(18, 30))
    start = memory.calendar.hour(end) - HOUR
    assert [one.counts[0] + FIRST for one in found.whole] == list(range(start, start + HOUR))


def test_the_same_hour_is_by_the_clock_on_the_wall() -> None:
    """On the day on which clocks are put forward, the day before lies 23 hours back."""
    memory = Buckets(Calendar(ZoneInfo("Europe/Berlin")), 7, 9, Counter())
    noon = 1_774_778_400 // SECONDS  # 2026-03-29 12:00 there, in summer time since 02:00
    memory.take(noon - 23 * HOUR - 1, {TTFT: ONE}, ())
    assert list(hours(memory, noon).days) == ["2026-03-28"]


def test_what_is_marked_is_left_out() -> None:
    """Five minutes at a time, and a day of which nothing is left is said."""
    memory = buckets()
    for number in (FIRST, FIRST + 1, FIRST + DAY):
        memory.take(number, {TTFT: ONE}, ())
    end = FIRST + DAY + 2
    for slots, kept in ((1, 1), (2, 0)):
        start = FIRST * SECONDS
        memory.marks = (Mark(MarkKind.DEPLOY, "ops", start, start + slots * SECONDS),)
        found = hours(memory, end)
        assert sum(len(day) for day in found.days.values()) == kept
    assert [why for _, why in found.left] == ["deploy by ops"]


@pytest.mark.parametrize("firing", [TTFT, Series("ttft", "downstream", "gateway:80")])
def test_what_was_counted_while_an_alarm_fired_is_left_out(firing: Series) -> None:
    """Its own, and the wire's of that signal: the same slow requests. Now it counts."""
    memory = buckets()
    memory.take(FIRST, {TTFT: ONE, ITL: ONE}, {firing})
    assert (hours(memory, FIRST + 1).hour, hours(memory, FIRST + DAY + 1).days) == ((ONE,), {})
    assert hours(memory, FIRST + DAY + 1, ITL).days


def test_another_engines_alarm_leaves_nothing_out() -> None:
    """It is about that one alone."""
    memory = buckets()
    memory.take(FIRST, {TTFT: ONE}, {Series("ttft", ENGINE, "r7")})
    assert hours(memory, FIRST + DAY + 1).days


def test_too_many_series_share_one() -> None:
    """And it is counted."""
    memory = buckets(max_series=2)
    memory.take(FIRST, {Series("ttft", ENGINE, f"r{i}"): ONE for i in range(4)}, ())
    assert {one.server for one in memory.seen} == {"r0", "r1", "other"}
    assert memory.counted["folded"] == 2
    assert hours(memory, FIRST + 1, Series("ttft", ENGINE, "other")).hour == (ONE.merge(ONE),)


def test_old_slots_are_let_go_of() -> None:
    """And series of which nothing is left."""
    memory = buckets(days=2)
    memory.take(FIRST, {TTFT: ONE}, ())
    memory.saved()
    memory.forget(FIRST + 3 * DAY, sure=False)
    assert (memory.gone, set(memory.seen)) == (set(), {TTFT})
    memory.forget(FIRST + 3 * DAY + 1, sure=False)
    assert (memory.gone, set(memory.seen)) == ({FIRST}, set())


def test_a_damaged_page_is_counted_once_and_replaced() -> None:
    """The others are good."""
    memory = buckets()
    memory.adopt({FIRST: b"x", FIRST + 1: pack({TTFT: Row(False, ONE)})}, whole=True)
    assert len(hours(memory, FIRST + 2).hour) == 1
    assert (memory.counted["damaged"], memory.gone) == (1, {FIRST})


def told(line: Line, held: dict[Series, Bucketed], count: int = 1) -> None:
    for _ in range(count):
        start = line.at
        line.at += 300.0
        assert not line.slots.put(replace(slot(start), buckets=held))


def test_a_restart_keeps_them(tmp_path: Path) -> None:
    """They are in the file of alarms."""
    line = Line(tmp_path / "alarms.db")
    told(line, {TTFT: ONE, ITL: ONE}, 7)
    again = line.again()
    assert again.slots.buckets.hours(line.at) == line.slots.buckets.hours(line.at)
    assert len(hours(again.slots.buckets, int(line.at) // SECONDS).hour) == 7
    assert again.slots.status().series == 3


def test_what_a_command_changed_is_read_anew(tmp_path: Path) -> None:
    """So that a series begins anew while the analyst runs."""
    path = tmp_path / "alarms.db"
    line = Line(path)
    told(line, {TTFT: ONE, ITL: ONE})
    with sqlite3.connect(path) as other:
        for number, data in rows.buckets(other).items():
            page = left_out(data, lambda series: series == TTFT)
            other.execute("UPDATE drift_buckets SET page = ? WHERE slot = ?", (page, number))
        rows.renew(other)
    told(line, {TTFT: ONE})
    assert line.slots.status().state is StoreState.OK
    line.at += 86_400.0
    memory = line.slots.buckets
    end = int(line.at) // SECONDS
    assert sum(map(len, hours(memory, end).days.values())) == 1  # the one since
    assert sum(map(len, hours(memory, end, ITL).days.values())) == 1
    assert left_out(pack({ITL: Row(False, ONE)}), lambda series: series == TTFT) is None


def test_without_a_file_nothing_is_waiting_to_be_written() -> None:
    """It is in memory, and that is all that is wanted."""
    line = Line()
    told(line, {TTFT: ONE}, 3)
    assert (line.slots.buckets.unsaved, line.slots.buckets.gone) == (set(), set())


def latest(analysis: Analysis, line: Line, factor: float, rng: np.random.Generator) -> Evaluation:
    """After an hour of engine's requests, and none on the wire."""
    for one in hour(factor * lognormal(rng, median=0.3), VLLM_TTFT):
        start = line.at
        line.at += 300.0
        found = analysis.take(Slot(start, line.at, True, {}, {}, {TTFT: one}))
    (said,) = found.evaluations
    return said


def test_an_engine_without_a_tap_is_judged_against_its_days(tmp_path: Path) -> None:
    """From slots to what fires."""
    line, rng = Line(tmp_path / "alarms.db"), np.random.default_rng(11)
    analysis = Analysis(line.slots, Options(), File())
    for _ in range(7):
        said = latest(analysis, line, 1.0, rng)
        line.at += 82_800.0
    assert said.standing is Standing.UNRESOLVED
    said = latest(analysis, line, 4.0, rng)
    assert (said.standing, said.firing) == (Standing.JUDGED, frozenset({"ks", "tail"}))
    assert analysis.rounds.firing(TTFT) == {"ks", "tail"}


def test_a_series_of_the_wire_is_judged_beside_it() -> None:
    """Each by its name."""
    line = Line()
    analysis = Analysis(line.slots, Options(), File())
    line.at += 300.0
    records = slot(line.at - 300.0).records
    found = analysis.take(Slot(line.at - 300.0, line.at, True, records, {}, {TTFT: ONE}))
    assert [one.series for one in found.evaluations] == [A, TTFT]
