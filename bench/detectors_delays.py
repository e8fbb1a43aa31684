"""How soon a fall of the token rate is seen, beside what theory says of a known baseline.

A part of ``./run bench detectors``: the same falls with a baseline that is known exactly, one that
a table sets, and one that a day has taught.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench import detectors_theory as theory
from bench.detectors_rate import DAY, correlated
from bench.detectors_watch import MEAN, SIGMA, Minute, Watch
from sidecar.config import RateLevelSettings, RateSettings
from sidecar.detect.ewma import Lag
from sidecar.detect.level import Level
from sidecar.detect.rate import OUT_OF_BAND, SHIFTED, Rate
from sidecar.detect.stored import keep

KNOWN, TABLE, LEARNED = "all known", "set by a table", "learned in a day"
RULES = (OUT_OF_BAND.name, SHIFTED.name)
_BEFORE = 30  # healthy minutes before a fall when nothing has to be learned
_SETTLED = 100 * DAY


@dataclass(frozen=True, slots=True)
class Fall:
    """By so many σ, at once or evenly over ``minutes``."""

    sigmas: float
    minutes: int = 0

    @property
    def name(self) -> str:
        """As rows have it."""
        kind = f"ramp of {self.minutes} min," if self.minutes else "step"
        return f"{kind} −{self.sigmas:g} σ"


FALLS = (Fall(2.0), Fall(3.0), Fall(3.0, 60), Fall(3.0, 180))


def known() -> Watch:
    """The shipped rules with the true mean, σ and ρ, as if a hundred healthy days had taught them.

    It is put where a restart puts what was learned, by the public way.
    """
    watch, level, lag = Watch(), Level.known(MEAN, SIGMA, _SETTLED), Lag()
    watch.minute(0.0, MEAN, 8)
    lag.weight = lag.square = level.weight
    lag.pairs = _SETTLED
    kept = {}
    for name, what in watch.rate.remember().items():
        if "mean" in what:
            kept[name] = {**what, **keep(level)}
        elif "lag" in what:
            kept[name] = {**what, "lag": keep(lag)}
    taught = Watch()
    taught.rate.recall(kept)
    return taught


def by_table() -> Watch:
    """The shipped rules as `model-probe calibrate` sets them; ρ is for them to find."""
    table = RateLevelSettings(mean=MEAN, sigma=SIGMA)
    return Watch(rate=Rate(RateSettings(levels=(table,))))


_READY = {KNOWN: known, TABLE: by_table, LEARNED: Watch}


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of both rules for all falls of a trial, which share their baseline. All baselines
    see the same falls.
    """

    baseline: str
    falls: tuple[Fall, ...] = FALLS
    unit: str = "faults"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Scenario, rule, whether it alarmed within a day, after how many minutes."""
        series = list(itertools.islice(correlated(random.Random(seed)), 2 * DAY))
        ready = _READY[self.baseline]()
        for number in range(DAY - _BEFORE if self.baseline is KNOWN else 0, DAY):
            ready.minute(60.0 * number, *series[number])
        for fall in self.falls:
            found = delays(copy.deepcopy(ready), 60.0 * DAY, series[DAY:], fall)
            for rule in RULES:
                yield f"{fall.name}, {self.baseline}", rule, rule in found, found.get(rule)


def delays(watch: Watch, at: float, noise: list[Minute], fall: Fall) -> dict[str, float]:
    """After how many minutes each rule alarmed, of those that did."""
    found: dict[str, float] = {}
    shifts = theory.shifts(fall.sigmas, fall.minutes)
    for number, ((value, running), shift) in enumerate(zip(noise, shifts, strict=False)):
        fallen = max(0.0, value - shift * SIGMA)
        for rule in watch.minute(at + 60.0 * number, fallen, running):
            found.setdefault(rule, float(number + 1))
        if found.keys() >= set(RULES):
            break
    return found


def published() -> dict[tuple[str, str], float]:
    """The mean delay by theory, by scenario and rule."""
    return {
        (f"{fall.name}, {baseline}", rule): delay(fall.sigmas, fall.minutes)
        for fall in FALLS
        for baseline in (KNOWN, TABLE, LEARNED)
        for rule, delay in zip(RULES, (theory.band, theory.chart), strict=True)
    }


SCENARIOS = tuple(Delays(baseline) for baseline in (KNOWN, TABLE, LEARNED))
