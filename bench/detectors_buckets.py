"""Hours of which only an engine's buckets are known: what the rules of drift say, and refuse.

A part of ``./run bench detectors``, by the analyst's own code. 3,600 requests an hour, log-normal
with σ 0.45; the median of each trial lies anywhere between 0.1 and 1 s, so that the usual P99 lies
anywhere among the bounds. Days, and the hour, differ by factors with σ 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sidecar.bucketed import Bucketed
from sidecar.drift.bucketed_rule import Hours, judge
from sidecar.drift.options import Options
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Floats
from sidecar.evaluation import ENGINE, Series, Standing

# Of vLLM 0.32.0 and SGLang 0.5.23, as tests/drift/engines.py has them from captures.
VLLM = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
SGLANG = (
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0),
    *(200.0, 400.0),
)
FINE = tuple(round(0.02 * i, 2) for i in range(1, 500))
_N, _DAYS, _SLOTS = 3_600, 7, 12
_SERIES = Series("ttft", ENGINE, "r0")
_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Buckets:
    """The hour is ``factor`` times as slow, and ``plus`` seconds more in its slowest ``top``."""

    name: str
    bounds: Sequence[float]
    factor: float = 1.0
    top: float = 0.0
    plus: float = 0.0
    unit: str = "hours"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """One hour, evaluated once."""
        rng = np.random.default_rng(seed)
        median = math.exp(rng.uniform(math.log(0.1), 0.0))
        days = {f"2026-03-0{day + 1}": self._slots(_hour(rng, median)) for day in range(_DAYS)}
        seconds = np.sort(_hour(rng, median)) * self.factor
        seconds[_N - round(self.top * _N) :] += self.plus
        hour = self._slots(rng.permutation(seconds))
        hours = {_SERIES: Hours(hour, days, (), hour, days)}
        (one,) = judge(hours, 0.0, Round(), frozenset(), _OPTIONS)
        yield self.name, "buckets drift", one.tail is not None and one.tail.drifts, None
        yield self.name, "buckets refused", one.standing is Standing.UNRESOLVED, None
        yield self.name, "KS and 120 ms (specified)", one.ks is not None and one.ks.drifts, None

    def _slots(self, seconds: Floats) -> tuple[Bucketed, ...]:
        return tuple(self._counted(part) for part in np.array_split(seconds, _SLOTS))

    def _counted(self, seconds: Floats) -> Bucketed:
        where = np.searchsorted(np.array(self.bounds), seconds, side="left")
        counts = np.bincount(where, minlength=len(self.bounds) + 1)
        return Bucketed(tuple(self.bounds), tuple(map(int, counts)), float(seconds.sum()))


def _hour(rng: np.random.Generator, median: float) -> Floats:
    scale = median * math.exp(0.05 * rng.standard_normal())
    made: Floats = scale * np.exp(0.45 * rng.standard_normal(_N))
    return made


SCENARIOS = tuple(
    Buckets(f"{name}: {what}", bounds, factor, top, plus)
    for name, bounds in (("vLLM", VLLM), ("SGLang", SGLANG), ("every 20 ms", FINE))
    for what, factor, top, plus in (
        ("as usual", 1.0, 0.0, 0.0),
        ("x 1.5", 1.5, 0.0, 0.0),
        ("x 3", 3.0, 0.0, 0.0),
        ("+300 ms on the slowest 5 %", 1.0, 0.05, 0.3),
    )
)
