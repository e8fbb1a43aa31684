"""Tests of sidecar.alarms.book: which alarms stay when there is no room for all."""

from __future__ import annotations

import time

from sidecar.alarms.book import Book
from sidecar.verdicts import Severity, Verdict
from tests.alarms.samples import FIRING, PASS, PENDING, RESOLVED, Timeline, states, verdict


def about(name: str, **fields: object) -> Verdict:
    return verdict(labels=(("engine", name),), **fields)  # type: ignore[arg-type]


def test_no_more_alarms_than_allowed() -> None:
    """What finds no room is counted, in each round; what is there keeps its clock."""
    line = Timeline(Book(max_alarms=10))
    many = [about(f"{number:02}") for number in range(13)]
    line.round(*many)
    line.round(*reversed(many))
    assert len(line.book.alarms()) == 10
    assert {alarm.held_seconds for alarm in line.book.alarms()} == {1.0}
    assert (line.book.refused, line.book.evicted) == (6, 0)


def test_firing_comes_before_pending_and_pending_before_resolved() -> None:
    """A hard alarm takes the place of a resolved one first, then of a pending one, and a pending
    one never that of a firing one.
    """
    line = Timeline(Book(max_alarms=3))
    line.round(about("old", hold=0.0))
    line.round(about("old", outcome=PASS, clear=0.0), about("slow"))
    line.round(about("slow"), about("slower"))
    assert states(line.book.alarms()) == {"old": RESOLVED, "slow": PENDING, "slower": PENDING}
    line.round(about("slow", hold=9.0), about("slower", hold=9.0), about("hard1", hold=0.0))
    assert "old" not in states(line.book.alarms())
    line.round(about("slow", hold=9.0), about("slower", hold=9.0), about("hard2", hold=0.0))
    assert states(line.book.alarms()) == {"slow": PENDING, "hard1": FIRING, "hard2": FIRING}
    line.round(*(about(f"hard{number}", hold=0.0) for number in range(3, 6)))
    assert states(line.book.alarms()) == {"hard1": FIRING, "hard2": FIRING, "hard3": FIRING}
    assert (line.book.evicted, line.book.refused) == (3, 2)


def test_a_pending_alarm_nobody_judges_gives_way_to_one_that_fails() -> None:
    """A pending alarm without verdicts is kept for ever, but not at the cost of a live one."""
    line = Timeline(Book(max_alarms=2))
    line.round(about("a"), about("b"))
    line.round(about("a"), about("c"))
    assert set(states(line.book.alarms())) == {"a", "c"}


def test_a_page_comes_before_a_ticket() -> None:
    """Where there is room for one, the more severe has it."""
    line = Timeline(Book(max_alarms=1))
    line.round(about("a"), about("z", severity=Severity.PAGE))
    assert set(states(line.book.alarms())) == {"z"}


def test_a_flood_costs_little() -> None:
    """20,000 failing things, 500 of them in the book: one round stays well below a second."""
    line = Timeline()
    flood = [about(f"{number}", hold=60.0) for number in range(20_000)]
    line.round(*flood)
    began = time.process_time()
    line.round(*flood, *(about(f"hard{number}", hold=0.0) for number in range(1_000)))
    assert time.process_time() - began < 1.0
    assert {alarm.state for alarm in line.book.alarms()} == {FIRING}


def test_adopting_takes_what_counts_more() -> None:
    """Of two standings of one alarm firing counts before pending, and the longer held one."""
    file, own = Timeline(), Timeline()
    for _ in range(3):
        file.round(about("both"), about("file"), about("fires", hold=0.0), about("less", hold=99.0))
    for _ in range(2):
        own.round(about("both"), about("fires"))
    for _ in range(9):
        own.round(about("less", hold=99.0))
    own.book.adopt(file.book.standings())
    alarms = {alarm.labels[0][1]: alarm for alarm in own.book.alarms()}
    assert alarms["fires"].state is FIRING
    assert alarms["both"].held_seconds == 2.0
    assert alarms["file"].held_seconds == 2.0
    assert alarms["less"].held_seconds == 8.0


def test_restoring_too_many_keeps_the_weightiest() -> None:
    """A file with more alarms than there is room for gives up pending ones."""
    line = Timeline()
    line.round(*(about(f"p{n}") for n in range(8)), *(about(f"f{n}", hold=0.0) for n in range(4)))
    book = Book(line.book.standings(), max_alarms=5)
    assert sum(alarm.state is FIRING for alarm in book.alarms()) == 4
    assert len(book.alarms()) == 5
