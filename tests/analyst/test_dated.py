"""An upgrade within an hour: what got worse, since when, and what got better (case 33 A)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import numpy as np

from sidecar.alarms import schema, tables
from sidecar.analyst.analysis import Analysis
from sidecar.analyst.file import File
from sidecar.analyst.slots import Slots
from sidecar.drift.options import Options
from sidecar.evaluation import Evaluation, Series
from sidecar.recorder import Slot
from sidecar.verdicts import Mark, MarkKind
from tests.analyst.test_unit import record

TTFT = Series("ttft", "downstream", "gateway")
DURATION = Series("duration", "downstream", "gateway")
REQUESTS = 100  # a slot of five minutes, so 600 of the hour after the change
START = (time.time() // 3_600 - 2) * 3_600 - 86_400 * 7
CHANGE = START + 86_400 * 7 + 1_800


def slots() -> Iterator[Slot]:
    """Seven days, and an hour in whose middle TTFT triples and requests become shorter."""
    rng = np.random.default_rng(33)
    for day in range(8):
        for i in range(12):
            at = START + 86_400 * day + 300.0 * i
            new = at >= CHANGE
            first = rng.lognormal(np.log(0.36 if new else 0.12), 0.25, REQUESTS)
            whole = rng.lognormal(np.log(2.3 if new else 2.6), 0.2, REQUESTS)
            yield Slot(at, at + 300.0, True, {TTFT: record(first, 1), DURATION: record(whole, 3)})


def evaluated(path: Path) -> dict[str, Evaluation]:
    """The evaluations after the last slot, by signal; the deploy is in the file's marks."""
    file = File()
    memory = Slots(UTC, file=file)
    memory.open(path)
    connection = schema.connect(path)
    tables.add_mark(connection, Mark(MarkKind.DEPLOY, "ci", CHANGE, CHANGE + 60.0, "v2"))
    connection.close()
    analysis = Analysis(memory, Options(), file)
    for slot in slots():
        found = analysis.take(slot)
    return {one.series.signal: one for one in found.evaluations}


def test_an_upgrade_is_named_with_what_it_did(tmp_path: Path) -> None:
    """TTFT drifts from the moment of the deploy on, which is named; the request time does not
    alarm, and that it improved is not hidden.
    """
    found = evaluated(tmp_path / "alarms.db")
    ttft, whole = found["ttft"], found["duration"]
    assert "tail" in ttft.firing
    assert ttft.since is not None
    assert abs(ttft.since - CHANGE) <= 300.0
    assert ttft.text.endswith("when deploy by ci was declared")
    assert whole.firing == frozenset()
    assert whole.since is None
