"""The analyst as a real process, where there is no tap and engines' histograms are all there is."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from sidecar.collectors.analyst import Analyst
from sidecar.config import Settings
from sidecar.evaluation import Evaluation, Standing
from sidecar.recorder import Slot
from sidecar.testing import wait_for
from tests.drift.engines import TTFT, hour, lognormal


@pytest.fixture
def analyst() -> Iterator[Analyst]:
    """One without a file, whose child is ended with the test."""
    one = Analyst(Settings())
    yield one
    one.stop()


def test_engines_alone_are_judged(analyst: Analyst) -> None:
    """A week of usual hours, and one that takes four times as long."""
    rng = np.random.default_rng(13)
    start = (time.time() // 3_600 - 2) * 3_600 - 86_400 * 7
    for day in range(8):
        factor = 4.0 if day == 7 else 1.0
        for i, one in enumerate(hour(factor * lognormal(rng, median=0.3))):
            at = start + 86_400 * day + 300.0 * i
            analyst.put(Slot(at, at + 300.0, True, {}, {}, {TTFT: one}))
            wait_for(lambda end=at + 300.0: _evaluated(analyst, end), 30, "the round")  # type: ignore[misc]
    (found,) = analyst.last.evaluations
    assert isinstance(found, Evaluation)
    assert (found.series, found.standing) == (TTFT, Standing.JUDGED)
    assert "tail" in found.firing


def _evaluated(analyst: Analyst, end: float) -> bool:
    return any(one.at == end for one in analyst.exchange().evaluations)
