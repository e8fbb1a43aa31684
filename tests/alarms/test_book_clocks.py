"""Tests of sidecar.alarms.book: what time counts, over which gaps, steps and restarts."""

from __future__ import annotations

import pytest

from sidecar.alarms.book import Book
from tests.alarms.samples import (
    FAIL,
    FIRING,
    PASS,
    PENDING,
    RESOLVED,
    UNKNOWN,
    Timeline,
    verdict,
)


def test_a_resolved_alarm_is_forgotten_after_a_while() -> None:
    """It is kept for keep_resolved_seconds of the monotonic clock."""
    line = Timeline(Book(keep_resolved_seconds=10.0))
    line.rounds(4, FAIL)
    line.rounds(3, PASS)
    line.rounds(9, PASS)
    assert line.only.state is RESOLVED
    line.rounds(1, PASS)
    assert line.book.alarms() == ()


def test_a_brief_return_leaves_the_resolved_alarm_as_it_was() -> None:
    """A resolved alarm that fails for too short a time is the same resolved alarm afterwards, is
    forgotten when it would have been, and neither step is reported.
    """
    line = Timeline(Book(keep_resolved_seconds=10.0))
    line.rounds(4, FAIL)
    line.rounds(3, PASS)
    before = line.only
    assert line.rounds(2, FAIL) == [PENDING]
    assert line.rounds(1, PASS) == []
    assert line.only == before
    line.rounds(6, PASS)
    assert line.only == before
    line.rounds(1, PASS)
    assert line.book.alarms() == ()


@pytest.mark.parametrize("seconds", [5.1, 3_600.0, 0.0, -1.0, -1e9, float("nan"), float("inf")])
def test_a_step_nobody_watched_does_not_count(seconds: float) -> None:
    """A stopped process, a sleeping machine or a clock that went back add nothing."""
    line = Timeline()
    line.rounds(2, FAIL)
    before = line.clock
    line.book.update([verdict()], line.wall, before + seconds)
    assert line.only.held_seconds == 1.0
    assert line.only.state is PENDING


def test_the_longest_step_counts() -> None:
    """Rounds may come as slowly as every 5 s."""
    line = Timeline()
    line.round(verdict(hold=9.0))
    line.round(verdict(hold=9.0), seconds=5.0)
    assert line.round(verdict(hold=9.0), seconds=5.0) == [FIRING]


@pytest.mark.parametrize("jump", [315_576_000.0, -315_576_000.0, 3_600.0, -3_600.0])
def test_the_wall_clock_moves_no_alarm(jump: float) -> None:
    """Ten years ahead or back, or summer time taken for a clock: no alarm fires, resolves or is
    forgotten a round sooner or later.
    """
    plain, jumped = Timeline(Book((), 20.0)), Timeline(Book((), 20.0))
    script = [FAIL] * 6 + [PASS] * 5 + [FAIL] * 2 + [PASS] * 30
    for number, outcome in enumerate(script):
        jumped.wall += jump if number % 4 == 2 else 0.0
        assert plain.round(verdict(outcome)) == jumped.round(verdict(outcome))
        assert len(plain.book.alarms()) == len(jumped.book.alarms())


def test_restored_alarms_go_on_where_they_were() -> None:
    """A new process adds to the pending clock but not the time in between; firing stays firing
    until PASS is judged; a resolved one is kept until its age, by the wall clock.
    """
    line = Timeline(Book(keep_resolved_seconds=100.0))
    gone, kept = (("engine", "gone"),), (("engine", "kept"),)
    for labels in (gone, kept):
        line.rounds(4, FAIL, labels=labels)
        line.rounds(3, PASS, labels=labels)
        line.wall += 40
    line.rounds(4, FAIL, rule="Firing")
    line.rounds(3, FAIL)
    later = Timeline(Book(line.book.standings(), 100.0), wall=line.wall + 50, clock=5.0)
    later.round(verdict(), verdict(UNKNOWN, rule="Firing"))
    alarms = {alarm.rule: alarm for alarm in later.book.alarms() if alarm.labels != kept}
    assert alarms["Firing"].state is FIRING
    assert alarms["TokenRateOutOfBand"].held_seconds == 2.0
    assert {alarm.labels for alarm in later.book.alarms() if alarm.state is RESOLVED} == {kept}
    assert later.round(verdict()) == [FIRING]
    assert later.log[-1].at == later.wall
