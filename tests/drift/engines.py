"""Durations as engines' own histograms count them, with the bounds that engines really have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from sidecar.bucketed import Bucketed
from sidecar.drift.bucketed_rule import Hours, judge
from sidecar.drift.options import Options
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Floats
from sidecar.engines.translation import Translation, translate
from sidecar.evaluation import ENGINE, Evaluation, Series
from sidecar.signals import Histogram, Labels
from tests.engines.reading import KNOWN, read

SHARED = Path(__file__).parents[2].parent / "shared/samples"
FIXTURES = Path(__file__).parents[1] / "fixtures/engines"
# As in the captures, which test_bucketed_captures.py holds them to.
VLLM_TTFT = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
SGLANG_TTFT = (
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0),
    *(200.0, 400.0),
)
TGI_DURATION = (0.01, 0.05, 0.1, 0.5, 1.0)
REAL = (VLLM_TTFT, SGLANG_TTFT, TGI_DURATION)
FINE = tuple(round(0.02 * i, 2) for i in range(1, 200))  # that somebody configured
TTFT = Series("ttft", ENGINE, "r0")
OPTIONS = Options()
TTFT_METRIC = "modelprobe_engine_time_to_first_token_seconds"


def bucketed(seconds: Iterable[float], bounds: Sequence[float]) -> Bucketed:
    """So many durations, counted."""
    values = np.array(list(seconds), dtype=np.float64)
    where = np.searchsorted(np.array(bounds), values, side="left")
    counts = np.bincount(where, minlength=len(bounds) + 1)
    return Bucketed(tuple(bounds), tuple(map(int, counts)), math.fsum(values))


def cumulative(
    seconds: Iterable[float],
    bounds: Sequence[float],
    metric: str = TTFT_METRIC,
    labels: Labels = (("engine", "e"), ("replica", "r0")),
) -> Histogram:
    """The same as an engine shows it."""
    one = bucketed(seconds, bounds)
    counts = tuple(accumulate(one.counts))
    return Histogram(metric, (*one.bounds, math.inf), counts, one.sum, labels)


def hour(seconds: Floats, bounds: Sequence[float] = VLLM_TTFT) -> tuple[Bucketed, ...]:
    """Twelve slots that these lie evenly in."""
    return tuple(bucketed(part, bounds) for part in np.array_split(seconds, 12))


def lognormal(rng: np.random.Generator, n: int = 3_600, median: float = 0.35) -> Floats:
    """Durations with a P99 of 2.85 medians: 997 ms."""
    return median * np.exp(0.45 * rng.standard_normal(n))


def known(
    now: tuple[Bucketed, ...],
    rng: np.random.Generator,
    bounds: Sequence[float] = VLLM_TTFT,
    median: float = 0.35,
) -> Hours:
    """An hour, and seven usual days; the last whole hour of the clock is the same one."""
    days = {f"2026-03-0{i}": hour(lognormal(rng, 3_600, median), bounds) for i in range(1, 8)}
    return Hours(hour=now, days=days, whole=now, whole_days=days)


def judged(
    hours: Hours,
    rounds: Round | None = None,
    covered: frozenset[str] = frozenset(),
    series: Series = TTFT,
) -> Evaluation:
    """One series in a round of its own."""
    return judge({series: hours}, 0.0, rounds or Round(), covered, OPTIONS)[0]


def translated(path: Path) -> Translation:
    """What a capture says, by our names."""
    return translate(read(path.read_bytes()), KNOWN, "r0")
