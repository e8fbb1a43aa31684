"""A sidecar that is started on a backfilled file is warm."""

from __future__ import annotations

import json
import sqlite3
from functools import cache
from pathlib import Path

import pytest

from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from sidecar.config import Settings, SloSettings
from sidecar.detect.rate import Rate
from sidecar.detect.slo import Slo
from sidecar.history.backfill import Fate, Filled, Refused, fill, known
from sidecar.history.player import Player
from sidecar.history.records import Served
from sidecar.signals import Leg
from sidecar.verdicts import Outcome
from tests.history.made import DAY, SERIES, START, healthy, minutes, played

LEVEL = "rate/engine/r0/Qwen2-7B/4"


@cache
def history(days: float = 0.5, begin: float = START) -> Player:
    return played(minutes(healthy(int(days * DAY)), begin=begin))


def fates(filled: list[Filled]) -> dict[str, Fate]:
    return {one.key: one.fate for one in filled}


def levels(path: Path) -> dict[str, str]:
    store = Store()
    store.open(path)
    try:
        return dict(store.levels)
    finally:
        store.close()


def test_the_first_minute_is_judged(tmp_path: Path) -> None:
    """A detector that recalls the file needs no hour of its own."""
    path = tmp_path / "alarms.db"
    filled = fill(path, known(history()), force=False)
    [level] = [one for one in filled if one.key == LEVEL]
    assert level.fate is Fate.NEW
    assert level.mean == pytest.approx(42.6, abs=0.5)
    rate = Rate(Settings().rate)
    rate.recall({key: json.loads(text) for key, text in levels(path).items()})
    [minute] = minutes([20.0], begin=START + 2 * 86_400)
    outcomes = {verdict.rule: verdict.outcome for verdict in rate.take(minute)}
    assert outcomes["TokenRateOutOfBand"] is Outcome.PASS  # the first of three
    assert Outcome.UNKNOWN not in outcomes.values()


def test_budgets_are_spent_as_they_were(tmp_path: Path) -> None:
    """What failed in the last three days is in the budget at the start."""
    answers = [
        Served(START + 2 * n, Leg.DOWNSTREAM, "", 500 if n % 10 == 0 else 200, 1.0)
        for n in range(3_600)
    ]
    path = tmp_path / "alarms.db"
    fill(path, known(played(answers)), force=False)
    slo = Slo(SloSettings())
    slo.recall({key: json.loads(text) for key, text in levels(path).items()})
    share = slo._budgets["errors"].over(7_200.0, START + 7_200)
    assert share.bad == pytest.approx(360, abs=15)
    assert share.total == pytest.approx(3_600, abs=130)


def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    """Byte for byte, and when it was written stays."""
    path = tmp_path / "alarms.db"
    fill(path, known(history()), force=False)
    before = levels(path)
    filled = fill(path, known(history()), force=False)
    assert set(fates(filled).values()) == {Fate.UNCHANGED}
    assert levels(path) == before


@pytest.mark.parametrize(
    ("first", "second", "fate"),
    [
        ((0.5, 0), (0.75, 0), Fate.RENEWED),
        ((0.5, 86_400), (0.75, 0), Fate.KEPT_NEWER),
        ((0.5, 0), (0.25, 86_400), Fate.KEPT_LARGER),
    ],
)
def test_what_is_newer_or_larger_stays(
    tmp_path: Path, first: tuple[float, float], second: tuple[float, float], fate: Fate
) -> None:
    """Only what is both older and smaller gives way, unless forced."""
    path = tmp_path / "alarms.db"
    fill(path, known(history(first[0], START + first[1])), force=False)
    before = levels(path)
    memory = known(history(second[0], START + second[1]))
    assert fates(fill(path, memory, force=False))[LEVEL] is fate
    assert (levels(path) == before) == (fate is not Fate.RENEWED)
    if fate is not Fate.RENEWED:
        assert fates(fill(path, memory, force=True))[LEVEL] is Fate.FORCED
        assert json.loads(levels(path)[LEVEL])["entered"] != json.loads(before[LEVEL])["entered"]


def test_a_running_sidecar_keeps_it_out(tmp_path: Path) -> None:
    """The lock of the sidecar holds, and nothing is written."""
    path = tmp_path / "alarms.db"
    running = Store()
    running.open(path)
    try:
        with pytest.raises(Refused, match=r"another sidecar .* has"):
            fill(path, known(history()), force=True)
    finally:
        running.close()
    assert levels(path) == {}


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """It is recognised and not written to."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(Refused, match="database"):
        fill(path, known(history()), force=True)
    assert path.read_bytes() == before


def test_damaged_levels_are_replaced(tmp_path: Path) -> None:
    """A payload that is no state is worth nothing to anybody."""
    path = tmp_path / "alarms.db"
    store = Store()
    store.open(path)
    store.write(Change(levels=((LEVEL, "[1]"),)))
    store.close()
    assert fates(fill(path, known(history()), force=False))[LEVEL] is Fate.RENEWED


def test_too_few_minutes_are_not_written(tmp_path: Path) -> None:
    """59 minutes are no baseline; the file is not even made by a dry run."""
    path = tmp_path / "alarms.db"
    memory = known(played(minutes(healthy(59))))
    assert fill(path, memory, force=False, dry=True) == []
    assert not path.exists()


def test_a_dry_run_says_and_does_nothing(tmp_path: Path) -> None:
    """What it says is what would be done."""
    path = tmp_path / "alarms.db"
    memory = known(history())
    assert fates(fill(path, memory, force=False, dry=True))[LEVEL] is Fate.NEW
    assert not path.exists()
    fill(path, known(history(0.25)), force=False)
    before = levels(path)
    assert fates(fill(path, memory, force=False, dry=True))[LEVEL] is Fate.RENEWED
    assert levels(path) == before


def test_an_alarm_at_the_end_is_not_remembered() -> None:
    """The level of a history that ends in an incident goes on learning when it is over."""
    player = played(minutes([*healthy(300), *healthy(30, mean=20)]))
    assert player.alarms()
    assert known(player)[LEVEL]["alarm"] == "inactive"
    assert SERIES in player.drawn
