"""Tests of sidecar.ledger."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.ledger import Key, Ledger, Span, Tally, seen
from sidecar.signals import Leg

X: Key = ("x_total", ())
Y: Key = ("y_total", (("reason", "stop"),))
UP = Leg.UPSTREAM


def wire(ended: int) -> Mapping[Leg, Tally]:
    return {UP: Tally(ended=ended, answered=ended)}


def noted(*notes: tuple[float, Mapping[Key, float], int | None]) -> Ledger:
    """A ledger after these scrapes; None while the tap is blind."""
    ledger = Ledger()
    for at, counters, ended in notes:
        ledger.note(at, counters, None if ended is None else wire(ended))
    return ledger


def span(ledger: Ledger) -> Span:
    found = ledger.span()
    assert found is not None
    return found


def test_a_tally_since_another_is_what_was_counted_in_between() -> None:
    """Field by field."""
    later = Tally(ended=31, answered=23, failed=5, cancelled=3, token_events=1_009)
    earlier = Tally(ended=11, answered=7, failed=2, cancelled=1, token_events=503)
    assert later.since(earlier) == Tally(20, 16, 3, cancelled=2, token_events=506)


def test_there_is_no_span_before_four_scrapes() -> None:
    """Two ends and two inside."""
    for number in range(4):
        assert noted(*((5.0 * i, {X: i}, i) for i in range(number))).span() is None
    assert span(noted(*((5.0 * i, {X: i}, i) for i in range(4)))).seconds == 15


def test_a_span_holds_increases() -> None:
    """Of each counter; one that appears in between began at nothing."""
    counters: list[Mapping[Key, float]] = [{X: 3}, {X: 5}, {X: 7, Y: 2}, {X: 20, Y: 13}]
    found = span(noted(*((5.0 * i, c, i) for i, c in enumerate(counters))))
    assert dict(found.whole) == {X: 17, Y: 13}


@pytest.mark.parametrize("interval", [0.5, 5.0, 17.0, 30.0, 120.0])
def test_a_span_is_about_a_minute(interval: float) -> None:
    """As long as scrapes come often; where they are rare it is four of them."""
    ledger = noted(*((interval * i, {X: i}, i) for i in range(int(400 / interval) + 5)))
    assert 60 <= span(ledger).seconds <= max(60 + interval, 3 * interval)


@given(st.lists(st.floats(0.1, 50), min_size=4, max_size=60))
def test_the_minute_slides(pauses: list[float]) -> None:
    """Its first scrape is the latest that is a minute old, if four are left."""
    ledger, at, ats = Ledger(), 0.0, []
    for number, pause in enumerate(pauses):
        at += pause
        ats.append(at)
        ledger.note(at, {X: number}, wire(number))
    old = [number for number, then in enumerate(ats) if then <= at - 60]
    first = min(max(old, default=0), len(ats) - 4)
    assert span(ledger).start == ats[first]
    assert span(ledger).whole[X] == len(ats) - 1 - first


@pytest.mark.parametrize(
    "counters",
    [
        pytest.param({X: 2, Y: 100}, id="a counter goes back"),
        pytest.param({Y: 100}, id="a counter goes away"),
        pytest.param({}, id="all of them go"),
    ],
)
def test_a_restart_inside_starts_anew(counters: Mapping[Key, float]) -> None:
    """What the dead process had counted is compared with nothing, nor taken off."""
    before = [(5.0 * i, {X: 1_009 + i, Y: 3 + i}, i) for i in range(7)]
    after = [(35.0 + 5 * i, {X: 5 + i, Y: 101 + i}, 7 + i) for i in range(3)]
    ledger = noted(*before, (30.0, counters, 7), *after)
    assert span(ledger).start == 30
    assert all(value >= 0 for value in span(ledger).whole.values())


def test_a_tap_that_loses_sight_starts_anew() -> None:
    """And again when it sees."""
    notes = [(5.0 * i, {X: i}, None if 3 <= i < 9 else i) for i in range(13)]
    assert span(noted(*notes[:8])).start == 15
    assert span(noted(*notes[:8])).wire == ()
    assert span(noted(*notes)).start == 45


def test_what_the_wire_saw_inside_leaves_out_the_edges() -> None:
    """Of tallies 0, 10, 20, … every five seconds: those of the scrapes in between."""
    found = span(noted(*((5.0 * i, {X: i}, 10 * i) for i in range(7))))
    for edge, ended in ((0.0, 60), (2.0, 40), (5.0, 40), (6.0, 20)):
        tally = seen([found], UP, edge)
        assert tally is not None
        assert tally.ended == ended


def test_what_the_wire_saw_while_both_spans_lasted() -> None:
    """Another target was met later: what ended before is not compared with it."""
    old = span(noted(*((5.0 * i, {X: i}, 10 * i) for i in range(13))))
    young = span(noted(*((41.0 + 5 * i, {X: i}, 82 + 10 * i) for i in range(4))))
    for spans in ([old, young], [young, old]):
        tally = seen(spans, UP, 5.0)
        assert tally is not None
        assert tally.ended == 102 - 92  # of 46 s and 51 s; what lies beyond 55 s is edge


def test_where_the_tap_was_blind_nothing_was_seen() -> None:
    """Of one of the targets is enough; so is a leg that it did not speak of yet."""
    sighted = span(noted(*((5.0 * i, {X: i}, i) for i in range(7))))
    blind = span(noted(*((5.0 * i, {X: i}, None) for i in range(7))))
    assert seen([sighted], UP) is not None
    assert seen([sighted, blind], UP) is None
    assert seen([blind], UP) is None
    assert seen([sighted], Leg.DOWNSTREAM) is None


def test_too_short_a_time_shows_nothing() -> None:
    """Fewer than two scrapes inside."""
    found = span(noted(*((1.0 * i, {X: i}, i) for i in range(4))))
    assert seen([found], UP, 2.0) is None
