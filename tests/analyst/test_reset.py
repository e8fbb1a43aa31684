"""`baseline reset`, the remedy that alarms name: it ends an alarm, and days are learned anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import numpy as np

from sidecar.analyst import carrying
from sidecar.analyst.analysis import Analysis
from sidecar.analyst.file import File
from sidecar.analyst.slots import Slots
from sidecar.drift.options import Options
from sidecar.evaluation import Evaluation, Series, Standing
from sidecar.recorder import Slot
from tests.analyst.test_unit import record

TTFT = Series("ttft", "downstream", "gateway")
DAY = 86_400.0
START = 1_789_002_000.0  # a full hour


class Line:
    """One hour a day, in which a median request takes so long."""

    def __init__(self, path: Path) -> None:
        self.path, self.now, self.day = path, START, 0
        file = File(wall=lambda: self.now)
        self.slots = Slots(UTC, file=file, wall=lambda: self.now)
        self.slots.open(path)
        self.analysis = Analysis(self.slots, Options(), file)
        self.rng = np.random.default_rng(11)

    def days(self, count: int, median: float) -> Evaluation:
        """The last evaluation after so many more days."""
        for _ in range(count):
            for slot in self.hour(median):
                self.now = slot.end
                [found] = self.analysis.take(slot).evaluations
            self.day += 1
        return found

    def hour(self, median: float) -> Iterator[Slot]:
        for i in range(12):
            at = START + DAY * self.day + 300.0 * i
            values = self.rng.lognormal(np.log(median), 0.3, 100)
            yield Slot(at, at + 300.0, True, {TTFT: record(values, 1)})


def test_a_reset_ends_the_alarm_and_the_new_level_becomes_usual(tmp_path: Path) -> None:
    """What fires keeps its minutes from becoming usual: it must not after a reset, or no day would
    ever be known again.
    """
    line = Line(tmp_path / "alarms.db")
    line.days(5, 0.3)
    assert "tail" in line.days(1, 0.9).firing
    carrying.reset(line.path, "UTC", line.now, lambda _: True)
    found = line.days(2, 0.9)
    assert (found.standing, found.firing) == (Standing.WARMING, frozenset())
    found = line.days(3, 0.9)
    assert (found.standing, found.firing) == (Standing.JUDGED, frozenset())
    assert "tail" in line.days(1, 2.7).firing


def test_what_fires_for_most_of_the_days_has_become_usual(tmp_path: Path) -> None:
    """Nobody reset it, and fewer than three days are left to compare with."""
    line = Line(tmp_path / "alarms.db")
    line.days(5, 0.3)
    assert "tail" in line.days(1, 0.9).firing
    standings = [line.days(1, 0.9) for _ in range(9)]
    assert "tail" in standings[0].firing
    assert standings[-1].standing is Standing.JUDGED
    assert standings[-1].firing == frozenset()
