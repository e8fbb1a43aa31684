"""Tests of sidecar.alarms.outbox."""

from __future__ import annotations

import pytest

from sidecar.alarms.outbox import LEVEL_BYTES, TRANSITIONS, Outbox
from sidecar.alarms.tables import LEVELS, Change
from tests.alarms.samples import FAIL, PASS, Timeline, verdict


def test_only_differences_are_taken() -> None:
    """What the file already holds is not written again; what is gone is named."""
    line, outbox = Timeline(), Outbox()
    assert outbox.take({}) is None
    line.round(verdict(), verdict(rule="Other"))
    outbox.put(line.book.standings(), line.log)
    first = outbox.take({})
    assert first is not None
    assert first.change == Change(line.book.standings(), (), tuple(line.log))
    outbox.done(first)
    written = {standing.alarm.key: standing for standing in first.standings}
    again = outbox.take(written)
    assert again is not None
    assert again.change == Change()
    line.round(verdict(PASS), verdict(rule="Other"))
    outbox.put(line.book.standings(), ())
    second = outbox.take(written)
    assert second is not None
    [gone] = second.change.gone
    assert (second.round, gone[0]) == (2, verdict().rule)
    assert second.change.standings == line.book.standings()


def test_rounds_are_not_queued_but_transitions_are() -> None:
    """The latest round stands for those before it; every transition since is in one change."""
    line, outbox = Timeline(), Outbox()
    for outcome in [FAIL] * 4 + [PASS] * 3:
        entered = len(line.log)
        line.rounds(1, outcome)
        outbox.put(line.book.standings(), line.log[entered:])
    parcel = outbox.take({})
    assert parcel is not None
    assert (parcel.round, parcel.change.standings) == (7, line.book.standings())
    assert parcel.change.transitions == tuple(line.log)
    assert len(line.log) == 3


def test_what_failed_is_taken_again_and_what_came_meanwhile_stays() -> None:
    """Only what was written is forgotten."""
    line, outbox = Timeline(), Outbox()
    line.round(verdict())
    outbox.put(line.book.standings(), line.log)
    outbox.level("k", "1")
    lost = outbox.take({})
    again = outbox.take({})
    assert lost == again
    assert again is not None
    line.round(verdict(), verdict(rule="Later"))
    outbox.put(line.book.standings(), line.log[1:])
    outbox.level("k", "2")
    outbox.done(again)
    left = outbox.take({})
    assert left is not None
    assert left.change.transitions == tuple(line.log[1:])
    assert left.change.levels == (("k", "2"),)


def test_a_disk_that_never_comes_back_costs_bounded_memory() -> None:
    """The oldest transitions go, counted, and so do levels beyond the limit."""
    line, outbox = Timeline(), Outbox()
    for _ in range(TRANSITIONS + 7):
        line.log.clear()
        line.rounds(1, FAIL)
        line.rounds(1, PASS)
        outbox.put(line.book.standings(), line.log)
    parcel = outbox.take({})
    assert parcel is not None
    assert (len(parcel.change.transitions), outbox.dropped_transitions) == (TRANSITIONS, 7)
    assert parcel.change.transitions[-1] == line.log[0]
    kept = [outbox.level(f"k{number}", "[]") for number in range(LEVELS + 3)]
    assert (kept.count(True), outbox.dropped_levels) == (LEVELS, 3)


@pytest.mark.parametrize(
    ("key", "payload"),
    [
        ("k", "NaN"),
        ("k", '{"a": Infinity}'),
        ("k", "{"),
        ("k", ""),
        ("k", '"\udcff"'),
        ("\udcff", "1"),
        ("k", '"' + "x" * LEVEL_BYTES + '"'),
        ("k", "[" * 100_000),
    ],
)
def test_a_level_that_is_no_json_is_refused(key: str, payload: str) -> None:
    """One that no other program could read is counted, not kept."""
    outbox = Outbox()
    assert not outbox.level(key, payload)
    assert outbox.dropped_levels == 1


def test_large_levels_come_in_several_changes() -> None:
    """So that an alarm does not wait for a quarter of a gigabyte."""
    outbox = Outbox()
    outbox.put((), ())
    for number in range(40):
        outbox.level(f"k{number}", '"' + "x" * (LEVEL_BYTES - 2) + '"')
    changes = []
    while (parcel := outbox.take({})) and parcel.change.levels:
        outbox.done(parcel)
        changes.append(len(parcel.change.levels))
    assert (sum(changes), max(changes)) == (40, 16)
