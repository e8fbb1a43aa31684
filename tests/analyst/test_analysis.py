"""Rounds over days: what fires becomes no part of what is usual, and the specified rule waits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sidecar.alarms import schema
from sidecar.analyst import reading, rows
from sidecar.analyst.file import File, Renewed
from sidecar.drift import unit
from sidecar.drift.stretch import Stretch
from sidecar.evaluation import Series
from tests.analyst.made import A
from tests.analyst.made import Line as Memory
from tests.analyst.test_reset import TTFT, Line
from tests.drift.hours import stretch


def test_minutes_in_which_the_alarm_fired_are_not_usual(tmp_path: Path) -> None:
    """The analysis tells the memory which series those are."""
    line = Line(tmp_path / "alarms.db")
    line.days(4, 0.3)
    assert "tail" in line.days(1, 0.9).firing
    line.days(1, 0.9)
    yesterday = line.slots.days(TTFT, line.now)[0]
    assert dict(yesterday.left)[reading.ALARMED] >= 4


def test_the_specified_rule_waits_for_three_days(tmp_path: Path) -> None:
    """As the others do: two days are no baseline."""
    line = Line(tmp_path / "alarms.db")
    assert line.days(3, 0.3).ks is None
    assert line.days(1, 0.3).ks is not None


def test_an_id_is_free_again_once_the_file_has_forgotten_it() -> None:
    """Else the rows of the one that is gone would be those of the new one."""
    memory = Memory().slots._memory
    memory.number_of(A)
    del memory.series[A]
    memory.unsaved.gone_series.add(1)
    assert memory.number_of(Series("itl", "downstream", "new")) == 2
    memory.unsaved.gone_series.clear()
    assert memory.number_of(Series("ttft", "downstream", "newer")) == 1


def test_what_a_command_changed_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    """Between the look at the file and the writing."""
    path = tmp_path / "alarms.db"
    file = File()
    assert file.open(path) is not None
    connection = schema.connect(path)
    rows.renew(connection)
    connection.close()
    with pytest.raises(Renewed):
        file.write(rows.Change(buckets=((1, b"page"),)))
    file.close()
    connection = schema.connect(path)
    assert rows.buckets(connection) == {}
    connection.close()


def alike(n: int, seconds: float) -> Stretch:
    return stretch(np.full(n, seconds))


@pytest.mark.parametrize(("gap", "fewer"), [(0.039, 2.0), (0.05, None)])
def test_fewer_gaps_excuse_only_what_takes_no_longer_in_all(
    gap: float, fewer: float | None
) -> None:
    """Half as many gaps of twice the length are as long; of two and a half times they are not,
    though a short prefill hides it from the request time.
    """
    found = unit.ratio(alike(5_000, gap), alike(100, 2.5), alike(10_000, 0.02), alike(100, 2.5))
    assert found == (None if fewer is None else pytest.approx(fewer))
