"""Longer gaps that are only fewer ones, from slots to the evaluation (field case 33 B)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC

import numpy as np
import pytest

from sidecar.analyst.analysis import Analysis
from sidecar.analyst.file import File
from sidecar.analyst.slots import Slots
from sidecar.drift.options import Options
from sidecar.evaluation import Evaluation, Series, Standing
from sidecar.record import STEP, Record
from sidecar.recorder import Slot

ITL = Series("itl", "downstream", "gateway")
DURATION = Series("duration", "downstream", "gateway")
REQUESTS = 60  # a slot of five minutes


def record(values: np.ndarray, stratum: int = 0) -> Record:
    """What a slot holds of these durations, in two blocks that are alike."""
    found = Record()
    found.hist.add_many(values)
    for cell, count in found.hist.filled():
        found.strata[stratum][cell // STEP] += count
    above = np.cumsum(np.array([*found.strata.values()]).sum(axis=0)[::-1])[::-1]
    found.squares[:] = type(found.squares)("d", (above**2 / max(1, len(values))).tolist())
    found.blocks = 2
    return found


def slots(gap: float, gaps: int, request: float) -> Iterator[Slot]:
    """Seven days with 100 gaps of 22 ms and 2.2 s a request, and one with what is given."""
    rng = np.random.default_rng(33)
    start = (time.time() // 3_600 - 2) * 3_600 - 86_400 * 7
    for day in range(8):
        median, many, seconds = (gap, gaps, request) if day == 7 else (0.022, 100, 2.2)
        for i in range(12):
            at = start + 86_400 * day + 300.0 * i
            between = rng.lognormal(np.log(median), 0.3, REQUESTS * many)
            lengths = rng.lognormal(np.log(seconds), 0.2, REQUESTS)
            records = {ITL: record(between), DURATION: record(lengths, 3)}
            yield Slot(at, at + 300.0, True, records)


def last(gap: float, gaps: int, request: float) -> dict[str, Evaluation]:
    """The evaluations after the last slot, by signal."""
    file = File()
    memory = Slots(UTC, file=file)
    analysis = Analysis(memory, Options(), file)
    for slot in slots(gap, gaps, request):
        found = analysis.take(slot)
    return {one.series.signal: one for one in found.evaluations}


def test_fewer_events_in_no_more_time_are_no_regression() -> None:
    """Speculative decoding is switched on: gaps of 48 ms, 40 of them, and 1.92 s a request."""
    found = last(gap=0.048, gaps=40, request=1.92)
    assert found["itl"].standing is Standing.UNIT
    assert found["itl"].fewer == pytest.approx(2.5)
    assert found["itl"].firing == frozenset()
    assert "the definition or the mode has changed" in found["itl"].text
    assert found["duration"].firing == frozenset()


@pytest.mark.parametrize(
    ("gap", "gaps", "request_seconds"),
    [
        pytest.param(0.048, 100, 4.8, id="as many gaps, twice as long"),
        pytest.param(0.080, 40, 3.2, id="fewer, and the request takes longer"),
    ],
)
def test_a_real_regression_is_one(gap: float, gaps: int, request_seconds: float) -> None:
    """Requests take longer: whatever an event carries, users wait."""
    found = last(gap=gap, gaps=gaps, request=request_seconds)
    assert "tail" in found["itl"].firing
