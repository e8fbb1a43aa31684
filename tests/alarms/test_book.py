"""Tests of sidecar.alarms.book: how verdicts become alarms."""

from __future__ import annotations

import pytest

from sidecar.verdicts import Outcome
from tests.alarms.samples import (
    FAIL,
    FIRING,
    INACTIVE,
    NOON,
    PASS,
    PENDING,
    RESOLVED,
    UNKNOWN,
    Timeline,
    verdict,
)


def test_an_alarm_fires_when_it_has_held() -> None:
    """FAIL at 1, 2, 3 and 4 s holds for 3 s: pending at the first, firing at the fourth."""
    line = Timeline()
    assert line.rounds(3, FAIL) == [PENDING]
    assert (line.only.state, line.only.held_seconds) == (PENDING, 2.0)
    assert line.rounds(1, FAIL) == [FIRING]
    assert (line.only.since, line.only.fired, line.only.held_seconds) == (NOON + 1, NOON + 4, 3.0)
    assert [transition.before for transition in line.log] == [INACTIVE, PENDING]


@pytest.mark.parametrize("hold", [0.0, -1.0, float("nan")])
def test_nothing_to_hold_fires_at_once(hold: float) -> None:
    """A hold of 0 fires with the first FAIL, in one transition; so does one that makes no sense."""
    line = Timeline()
    assert line.rounds(3, FAIL, hold=hold) == [FIRING]
    assert (line.log[0].before, line.log[0].firings) == (INACTIVE, 1)


def test_pass_ends_a_pending_alarm_silently() -> None:
    """Pending and then PASS: nothing is left, nothing is reported, and FAIL starts from nothing."""
    line = Timeline()
    line.rounds(3, FAIL)
    assert line.rounds(1, PASS) == []
    assert line.book.alarms() == ()
    assert line.rounds(3, FAIL) == [PENDING]


def test_an_alarm_resolves_when_it_has_passed_for_long_enough() -> None:
    """PASS has to last for clear_seconds, and FAIL in between starts that anew."""
    line = Timeline()
    line.rounds(4, FAIL)
    assert line.rounds(2, PASS) == []
    assert line.rounds(1, FAIL) == []
    assert line.rounds(2, PASS) == []
    assert line.only.state is FIRING
    assert line.rounds(1, PASS) == [RESOLVED]
    assert line.only.resolved == line.wall


def test_a_clear_time_that_makes_no_sense_never_resolves() -> None:
    """In doubt an alarm stays."""
    line = Timeline()
    line.rounds(4, FAIL)
    assert line.rounds(100, PASS, clear=float("nan")) == []


@pytest.mark.parametrize("given", [True, False], ids=["unknown", "absent"])
def test_what_is_not_known_changes_nothing(given: bool) -> None:
    """UNKNOWN, or no verdict, neither advances nor resolves nor forgets: known is False, clocks
    stand still, and the seconds next to it count on neither side.
    """
    line = Timeline()

    def blind(rounds: int) -> None:
        for _ in range(rounds):
            assert line.round(*([verdict(UNKNOWN)] if given else [])) == []

    line.rounds(3, FAIL)
    blind(1_000)
    assert (line.only.state, line.only.held_seconds, line.only.known) == (PENDING, 2.0, False)
    assert line.rounds(1, FAIL) == []
    assert (line.only.held_seconds, line.only.known) == (2.0, True)
    assert line.rounds(1, FAIL) == [FIRING]
    blind(1_000)
    assert (line.only.state, line.only.known) == (FIRING, False)
    line.rounds(2, PASS)
    blind(10)
    assert line.rounds(1, PASS) == []  # the clock stood at 1 of 2 s
    assert line.rounds(1, PASS) == [RESOLVED]


def test_unknown_begins_nothing() -> None:
    """Only FAIL makes an alarm."""
    line = Timeline()
    line.rounds(10, UNKNOWN)
    line.rounds(10, PASS)
    assert line.book.alarms() == ()


def test_an_alarm_that_comes_back_is_a_new_firing() -> None:
    """A resolved alarm that fails again has to hold again, fires at a new time, and is counted."""
    line = Timeline()
    line.rounds(4, FAIL)
    first = line.only.fired
    line.rounds(3, PASS)
    assert line.rounds(4, FAIL) == [PENDING, FIRING]
    assert first is not None
    assert line.only.fired == first + 7
    assert line.only.resolved is None
    assert [t.firings for t in line.log if t.alarm.state is FIRING] == [1, 2]
    assert line.book.standings()[0].firings == 2


def test_unknown_beside_pass_does_not_resolve() -> None:
    """Of two verdicts about one alarm, the one that could not be judged counts."""
    line = Timeline()
    line.rounds(4, FAIL)
    for _ in range(10):
        assert line.round(verdict(PASS), verdict(UNKNOWN)) == []


@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_book_publishes_what_it_knows(outcome: Outcome) -> None:
    """What alarms() returned is never changed afterwards."""
    line = Timeline()
    line.rounds(4, FAIL)
    before = line.book.alarms()
    kept = repr(before)
    line.rounds(5, outcome)
    assert repr(before) == kept
