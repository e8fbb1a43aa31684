"""Hours of latencies against the same hour of seven days: what the rules of drift make of them.

A part of ``./run bench detectors``, by the analyst's own code. 3,600 requests an hour, log-normal
around 350 ms with σ 0.45 (P99 997 ms).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import signal

from sidecar.drift import kolmogorov
from sidecar.drift.baseline import Baseline, pool
from sidecar.drift.dispersion import Prior
from sidecar.drift.evaluating import evaluate
from sidecar.drift.options import Options
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Floats, Stretch, sum_of
from sidecar.evaluation import Evaluation, Series

HOUR, DAYS, BLOCKS = 3_600, 7, 24
_SLIDE, _ROUNDS = HOUR // 12, 3
_LIKE = 15  # series of the same kind, whose dispersion a series is shrunk to
_OPTIONS = Options()
_P = 0.01
Trials = Iterator[tuple[str, str, bool, float | None]]


@dataclass(frozen=True, slots=True)
class Hours:
    """A service whose requests correlate by ``rho`` with the ones before them (the normal variates
    behind the log-normal ones do), and whose days differ by a factor with σ ``jitter``.

    The hour in question is ``factor`` times as slow, and ``plus`` seconds more in its slowest
    ``top``. Of requests of a second kind, twice as slow, there are ``mix`` then and now.
    """

    name: str
    rho: float = 0.0
    jitter: float = 0.0
    factor: float = 1.0
    top: float = 0.0
    plus: float = 0.0
    mix: tuple[float, float] = (0.0, 0.0)
    corrected: bool = True
    unit: str = "hours"

    def trial(self, seed: int) -> Trials:
        """One hour, and what each rule says of it."""
        days, hours = self.made(np.random.default_rng(seed))
        for rule, alarm in _judge(days, hours, _usual(self)):
            yield self.name, rule, alarm, None

    def made(self, rng: np.random.Generator) -> tuple[dict[str, Stretch], list[Stretch]]:
        """The days by date, and the hour as it slides by five minutes, three times."""
        days = {f"2026-03-0{day + 1}": self._day(rng, HOUR, self.mix[0]) for day in range(DAYS)}
        seconds, kinds = self._day(rng, HOUR + _SLIDE * (_ROUNDS - 1), self.mix[1])
        seconds = seconds * self.factor
        if self.top:
            slow = seconds > np.quantile(seconds[:HOUR], 1 - self.top)
            seconds = np.where(slow, seconds + self.plus, seconds)
        parts = [slice(start, start + HOUR) for start in range(0, _SLIDE * _ROUNDS, _SLIDE)]
        hours = [self._stretch(seconds[part], kinds[part]) for part in parts]
        return {date: self._stretch(*day) for date, day in days.items()}, hours

    def _day(
        self, rng: np.random.Generator, n: int, share: float
    ) -> tuple[Floats, np.typing.NDArray[np.bool_]]:
        z = rng.standard_normal(n)
        if self.rho:
            z[1:] *= math.sqrt(1 - self.rho**2)
            z = signal.lfilter([1.0], [1.0, -self.rho], z)
        kinds = rng.random(n) < share
        scale = math.exp(self.jitter * rng.standard_normal())
        return 0.35 * scale * np.exp(0.45 * z) * np.where(kinds, 2.0, 1.0), kinds

    def _stretch(self, seconds: Floats, kinds: np.typing.NDArray[np.bool_]) -> Stretch:
        kind = np.where(kinds, 3 if self.corrected else 0, 0)
        return Stretch.sampled(seconds, np.arange(len(seconds)) * BLOCKS // len(seconds), kind)


@lru_cache(maxsize=64)
def _usual(like: Hours) -> Mapping[float, Prior]:
    """The dispersion of a room of such series."""
    rng = np.random.default_rng(0)
    return pool(_baseline(like.made(rng)[0]) for _ in range(_LIKE))


def _baseline(days: dict[str, Stretch]) -> Baseline:
    found = Baseline.of(days, _OPTIONS)
    assert isinstance(found, Baseline)
    return found


def _evaluate(
    number: int, hours: list[Stretch], baseline: Baseline, usual: Mapping[float, Prior]
) -> list[Evaluation]:
    series = Series("ttft", "downstream", str(number))
    return [
        evaluate(series, 300.0 * i, hour, (), baseline, _OPTIONS, pool=usual)
        for i, hour in enumerate(hours)
    ]


def _judge(
    days: dict[str, Stretch], hours: list[Stretch], usual: Mapping[float, Prior]
) -> Iterator[tuple[str, bool]]:
    """Rules, and whether each alarms: on the first hour, and on all of them by what fires."""
    baseline = _baseline(days)
    ks = kolmogorov.judge(hours[0], sum_of(list(days.values())), _OPTIONS)
    found = _evaluate(0, hours, baseline, usual)
    tail, shape = found[0].tail, found[0].shape
    alone = _evaluate(0, hours[:1], baseline, {})[0].tail
    assert tail
    assert shape
    assert alone
    assert ks
    large = tail.change.value > tail.change.guard
    yield "KS p < 0.01", ks.p < _P
    yield "KS and 120 ms (specified)", ks.drifts
    yield "tail", tail.p < _P
    yield "tail and guard", tail.p < _P and large
    yield "tail and guard, series alone", alone.p < _P and large
    critical = shape.value > _OPTIONS.shape_critical
    yield "shape", critical
    yield "shape and guard", critical and shape.change.value > shape.change.guard
    rounds = Round()
    fired = [rounds.conclude([one], _OPTIONS)[0].firing for one in found]
    yield "LatencyDrift (2 of 3)", any(fired)


@dataclass(frozen=True, slots=True)
class Room:
    """Many series like one, judged together: counted are rounds of which any series fires."""

    series: int
    like: Hours
    unit: str = "hours"

    def trial(self, seed: int) -> Trials:
        """One hour of all of them, as it slides by five minutes, three times."""
        rng, rounds = np.random.default_rng(seed), Round()
        made = [self.like.made(rng) for _ in range(self.series)]
        baselines = [_baseline(days) for days, _ in made]
        usual = pool(baselines)
        found = [
            _evaluate(i, hours, baseline, usual)
            for i, ((_, hours), baseline) in enumerate(zip(made, baselines, strict=True))
        ]
        fired = [rounds.conclude(row, _OPTIONS) for row in zip(*found, strict=True)][-1]
        name = f"{self.like.name}, {self.series} series"
        yield name, "LatencyDrift, any", any(one.firing for one in fired), None


NULLS = (
    Hours("independent requests"),
    *(Hours(f"AR(1) {rho:g}", rho=rho) for rho in (0.3, 0.6, 0.8)),
    *(Hours(f"days differ by {jitter:.0%}", jitter=jitter) for jitter in (0.02, 0.05, 0.1)),
    Hours("slow kind 20 to 50 %", mix=(0.2, 0.5)),
    Hours("slow kind 20 to 50 %, kinds not known", mix=(0.2, 0.5), corrected=False),
    Hours("slow kind 1 to 20 %", mix=(0.01, 0.2)),
)
CHANGES = (
    Hours("+150 ms on the slowest 2 %", top=0.02, plus=0.15),
    Hours("+300 ms on the slowest 2 %", top=0.02, plus=0.30),
    Hours("+300 ms on the slowest 5 %", top=0.05, plus=0.30),
    Hours("+300 ms on the slowest 1 %", top=0.01, plus=0.30),
    Hours("all 5 % slower", factor=1.05),
    Hours("all 15 % slower", factor=1.15),
    Hours("slow kind 20 to 50 %, all 15 % slower", mix=(0.2, 0.5), factor=1.15),
)
ROOMS = (
    Room(30, NULLS[0]),
    Room(30, Hours("AR(1) 0.8", rho=0.8)),
    Room(30, Hours("days differ by 5 %", jitter=0.05)),
)
