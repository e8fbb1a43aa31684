"""Servers that come and go: what nobody asks any more is not judged, and what fired there ends."""

from __future__ import annotations

import json
import os
from datetime import UTC
from pathlib import Path

import numpy as np
import pytest

from sidecar.alarms import places
from sidecar.analyst.analysis import KEY, Analysis
from sidecar.analyst.file import File
from sidecar.analyst.slots import Slots
from sidecar.bucketed import Bucketed
from sidecar.drift.messages import Report
from sidecar.drift.options import Options
from sidecar.drift.rounds import Memory, Round
from sidecar.evaluation import ENGINE, Series
from sidecar.recorder import Slot
from tests.analyst.test_unit import record

STAYS = Series("ttft", "downstream", "gateway")
GOES = Series("ttft", "upstream", "10.0.0.7:8000")
REPLICA = Series("ttft", ENGINE, "r7")
HOUR = 3_600.0
RECORD = record(np.full(10, 0.2), 1)
FIRES = Round({(one, "tail"): Memory([True, True], True) for one in (STAYS, GOES, REPLICA)})


class Line:
    """An analysis whose file says that three series fire, as time goes by."""

    def __init__(self, path: Path) -> None:
        self.now = 1_789_000_200.0
        self.file = File(wall=lambda: self.now)
        self.slots = Slots(UTC, file=self.file, wall=lambda: self.now)
        self.slots.open(path)
        self.analysis = Analysis(self.slots, Options(), self.file)

    def slot(self, *series: Series) -> Slot:
        """The one that ends now, in which these had requests."""
        wire = {one: RECORD for one in series if one.leg != ENGINE}
        engines = {one: Bucketed((0.1,), (3, 4), 1.0) for one in series if one.leg == ENGINE}
        return Slot(self.now - 300.0, self.now, True, wire, {}, engines)

    def take(self, hours: float, *series: Series) -> Report:
        """The round so much later."""
        self.now += hours * HOUR
        return self.analysis.take(self.slot(*series))

    def fires(self) -> set[str]:
        return {row[2] for row in self.analysis.rounds.to_json()["memories"]}  # type: ignore[attr-defined]


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """A new one, after a restart."""
    path = tmp_path / "alarms.db"
    with_state = Line(path)
    with_state.file.note(KEY, json.dumps(FIRES.to_json()))
    with_state.slots.close()
    return Line(path)


def test_what_fires_is_recalled_once_the_file_can_be_read(line: Line) -> None:
    """It was locked at the start by something else."""
    path = line.file.path
    assert path is not None
    line.slots.put(line.slot(STAYS, GOES))
    line.slots.close()
    hold = places.hold(path, places.ANALYST_LOCK)
    again = Line(path)
    assert again.fires() == set()
    os.close(hold)
    again.take(24, STAYS)
    assert GOES.server in again.fires()


def evaluated(found: Report) -> set[Series]:
    return {one.series for one in found.evaluations}


def test_a_server_without_a_request_for_a_day_is_not_judged(line: Line) -> None:
    """It is a pod that is gone: its alarm, which nothing would ever clear, is let go of."""
    line.slots.put(line.slot(STAYS, GOES, REPLICA))
    assert evaluated(line.take(24, STAYS)) == {STAYS, GOES, REPLICA}
    assert line.fires() == {GOES.server, REPLICA.server}
    assert evaluated(line.take(2, STAYS)) == {STAYS}
    assert line.fires() == set()


def test_what_is_known_of_it_is_kept(line: Line) -> None:
    """A server that is back is compared with its days."""
    line.take(0, STAYS, GOES)
    line.take(30, STAYS)
    assert GOES in line.slots.series()
    assert evaluated(line.take(1, STAYS, GOES)) == {STAYS, GOES}


def test_what_went_while_nobody_watched_does_not_fire(line: Line) -> None:
    """The memory of rounds is read from the file with series that never come again."""
    line.take(0, STAYS)
    assert line.fires() == set()
