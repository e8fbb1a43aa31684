"""Tests of sidecar.alarms.codec and tables: whatever an alarm holds survives the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.alarms import codec, history, schema, tables
from sidecar.alarms.standing import Standing
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from sidecar.verdicts import Alarm, Mark, MarkKind, Severity
from tests.alarms.samples import (
    FAIL,
    FIRING,
    PENDING,
    RESOLVED,
    Timeline,
    verdict,
)

HOSTILE = (
    "'; DROP TABLE alarms; --",
    '"); DELETE FROM marks; --',
    "${jndi:ldap://localhost}",
    "../../../../etc/passwd",
    "{'method': 'prefill'}",
    "a\0b",
    "\x1b[31m\r\n",
    "\udcff\ud800",  # bytes that are no UTF-8, as file names bring them
    "\U0001f600 ٠ Ω",
    "%s {} ?1 :a",
    "x" * 100_000,
    "",
)
texts = st.text(st.characters(exclude_categories=()), max_size=20)
times = st.floats(-1e12, 1e12)
marks = st.builds(Mark, st.sampled_from(MarkKind), texts, times, times, texts)
evidence = st.lists(st.tuples(texts, st.floats(allow_nan=False, allow_infinity=False) | texts))
durations = st.floats(0, 1e9)


@st.composite
def alarms(draw: st.DrawFn, key: tuple[str, tuple[tuple[str, str], ...]] | None = None) -> Alarm:
    """Any alarm the book can hold."""
    state = draw(st.sampled_from([PENDING, FIRING, RESOLVED]))
    rule, labels = key or (draw(texts), tuple(sorted(draw(st.lists(st.tuples(texts, texts))))))
    return Alarm(
        rule=rule,
        labels=labels,
        state=state,
        severity=draw(st.sampled_from(Severity)),
        since=draw(times),
        held_seconds=draw(durations),
        fired=None if state is PENDING else draw(times),
        resolved=draw(times) if state is RESOLVED else None,
        text=draw(texts),
        evidence=tuple(draw(evidence)),
        marks=tuple(draw(st.lists(marks, max_size=3))),
        known=draw(st.booleans()),
    )


@given(alarm=alarms(), earlier=st.none() | alarms(), passed=durations, data=st.data())
@settings(deadline=None)
def test_a_row_comes_back_as_it_was(
    alarm: Alarm, earlier: Alarm | None, passed: float, data: st.DataObject
) -> None:
    """Any standing survives the file, whatever characters it holds."""
    standing = Standing(alarm, passed, data.draw(st.integers(0, 2**40)), earlier)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(schema.MIGRATIONS[0][1])
        connection.execute(
            "INSERT INTO alarms VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", codec.to_row(standing)
        )
        assert tables.standings(connection) == ((standing,), 0)


@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_are_only_words(tmp_path: Path, word: str) -> None:
    """Whatever a label, text or evidence says comes back as it was and does nothing else."""
    line = Timeline()
    line.rounds(4, FAIL, labels=((word, word),), text=word[:99], evidence=((word[:99], word[:99]),))
    store = Store()
    store.open(tmp_path / "alarms.db")
    change = Change(standings=line.book.standings(), transitions=tuple(line.log))
    assert store.write(change) is StoreState.OK
    assert history.latest(tmp_path / "alarms.db") == tuple(reversed(line.log))
    store.close()
    assert store.open(tmp_path / "alarms.db") is StoreState.OK
    assert store.restored == line.book.standings()
    gone = Change(gone=(store.restored[0].alarm.key,))
    assert store.write(gone) is StoreState.OK
    store.open(tmp_path / "alarms.db")
    assert store.restored == ()
    store.close()


def test_a_row_without_sense_is_left_out_and_said(tmp_path: Path) -> None:
    """What somebody else put into a row is not guessed at; the other rows are used."""
    line = Timeline()
    line.round(*(verdict(rule=f"R{number}") for number in range(7)))
    path = tmp_path / "alarms.db"
    store = Store()
    store.open(path)
    store.write(Change(standings=line.book.standings()))
    store.close()
    damage = [
        "held_seconds = 9e999", "held_seconds = -1", "state = 'odd'", "details = '{}'",
        "details = x'ff'", "since = 'noon'",
    ]  # fmt: skip
    with closing(sqlite3.connect(path)) as other:
        for number, change in enumerate(damage):
            other.execute(f"UPDATE alarms SET {change} WHERE key LIKE '[\"R{number}\"%'")  # noqa: S608
        other.commit()
    assert store.open(path) is StoreState.OK
    assert [standing.alarm.rule for standing in store.restored] == ["R6"]
    assert store.reason == f"6 alarms in {path} made no sense and are left out"
    store.close()
