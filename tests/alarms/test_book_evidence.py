"""Tests of sidecar.alarms.book: what an alarm carries."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from sidecar.alarms import codec
from sidecar.verdicts import Mark, MarkKind, Severity
from tests.alarms.samples import (
    FAIL,
    FIRING,
    NOON,
    PASS,
    PENDING,
    RESOLVED,
    UNKNOWN,
    Timeline,
    verdict,
)


def test_what_amends_a_firing_alarm_changes_its_words_alone() -> None:
    """Nobody can judge it now, and somebody knows why: text is new, figures and clocks are not."""
    line = Timeline()
    amends = {"amends": True, "text": "on old evidence", "evidence": (("x", 2.0),), "hold": 0.0}
    line.round(verdict(hold=0.0, text="bad", evidence=(("x", 1.0),)))
    line.round(verdict(UNKNOWN, hold=0.0, text="cannot say"))
    assert line.only.text == "bad"
    line.round(verdict(UNKNOWN, **amends))
    assert (line.only.text, line.only.known) == ("on old evidence", False)
    assert (line.only.state, line.only.evidence) == (FIRING, (("x", 1.0),))
    line.round(verdict(PASS, clear=0.0, **{**amends, "text": "given up"}))
    assert (line.only.state, line.only.text) == (RESOLVED, "given up")
    line.round(verdict(UNKNOWN, **amends))
    assert line.only.text == "given up"


def test_a_pending_alarm_is_not_amended() -> None:
    """It has not been told yet."""
    line = Timeline()
    line.round(verdict(text="bad"))
    line.round(verdict(UNKNOWN, amends=True, text="on old evidence"))
    assert (line.only.state, line.only.text) == (PENDING, "bad")


def test_the_order_of_verdicts_is_no_matter() -> None:
    """A duplicate counts once, the worst of contradictory ones counts, labels have no order."""
    swapped = (("b", "2"), ("a", "1"))
    plain = (("a", "1"), ("b", "2"))
    verdicts = [
        verdict(PASS, labels=plain),
        verdict(FAIL, labels=swapped, severity=Severity.PAGE, text="worst"),
        verdict(FAIL, labels=plain, text="bad"),
        verdict(UNKNOWN, labels=plain),
        verdict(FAIL, labels=swapped, severity=Severity.PAGE, text="worst"),
        verdict(FAIL, rule="Other"),
    ]
    books = []
    for order in (verdicts, verdicts[::-1], sorted(verdicts, key=repr)):
        line = Timeline()
        line.round(*order)
        line.round(*order)
        books.append(line.book.standings())
    assert books[0] == books[1] == books[2]
    alarm = books[0][-1].alarm if books[0][0].alarm.rule == "Other" else books[0][0].alarm
    assert (alarm.labels, alarm.text, alarm.held_seconds) == (plain, "worst", 1.0)


def test_text_evidence_and_severity_are_those_of_the_latest_fail() -> None:
    """They follow FAIL, also while firing, and outlast UNKNOWN and PASS."""
    line = Timeline()
    for number in range(5):
        severity = Severity.PAGE if number == 4 else Severity.TICKET
        line.round(
            verdict(text=f"at {number}", evidence=(("rate", 40.0 - number),), severity=severity)
        )
    line.rounds(1, UNKNOWN, text="cannot say")
    line.rounds(1, PASS, text="fine")
    assert (line.only.text, line.only.evidence) == ("at 4", (("rate", 36.0),))
    assert line.only.severity is Severity.PAGE


def test_evidence_that_is_no_number_becomes_a_word() -> None:
    """NaN and infinity do not reach JSON as such, words pass, a flood is cut."""
    odd: tuple[Any, ...] = (
        ("a", float("nan")),
        ("b", float("inf")),
        ("c", float("-inf")),
        ("d", 1e12),
        ("e", "x"),
    )
    odd += (("n", np.float32(1.5)), ("o", None), ("p", 10**400))
    line = Timeline()
    line.round(verdict(evidence=odd + (("f", "y" * 10_000_000),) * 1_000, text="z" * 10_000_000))
    expected = ["NaN", "+Inf", "-Inf", 1e12, "x", 1.5, "None", str(10**400)]
    assert [value for _, value in line.only.evidence[:8]] == expected
    text = json.dumps(codec.to_row(line.book.standings()[0]), allow_nan=False)
    assert len(text) < 200_000


def test_marks_in_force_are_attached_and_mute_nothing() -> None:
    """A mark in force when the alarm became pending or fired is on it; others are not."""
    deploy = Mark(MarkKind.DEPLOY, "ann", NOON - 60, NOON + 2)
    chaos = Mark(MarkKind.CHAOS, "bob", NOON + 3.5, NOON + 60)
    past = Mark(MarkKind.INCIDENT, "eve", NOON - 60, NOON - 1)
    line = Timeline()
    line.marks = (past, deploy, chaos)
    assert line.rounds(1, FAIL) == [PENDING]
    assert line.only.marks == (deploy,)
    assert line.rounds(3, FAIL) == [FIRING]
    assert list(line.only.marks) == [deploy, chaos]
