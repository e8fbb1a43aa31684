"""The rules on token rates as ``./run bench detectors`` runs them, and a naive one beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sidecar.detect.ewma import Chart, Lag
from sidecar.detect.level import Entered, Level
from sidecar.detect.runrule import RunRule
from sidecar.verdicts import AlarmState

MEAN, SIGMA = 42.6, 3.8  # Qwen2-7B's, of the specification
RULES = ("specified", "ewma", "either", "both", "naive")  # naive is the specified one, unfrozen
Minute = tuple[float, int]  # tokens per second of a sequence (NaN: idle), running requests


@dataclass(slots=True)
class Watch:
    """The specified rule and the EWMA chart beside it, on frozen baselines: ``bins`` of them for
    each doubling of the running requests, one in all for 0.
    """

    bins: int = 2
    levels: dict[int, Level] = field(default_factory=dict)
    chart: Chart = field(default_factory=Chart)
    run: RunRule = field(default_factory=RunRule)
    lag: Lag = field(default_factory=Lag)

    def minute(self, at: float, value: float, running: int) -> tuple[bool, bool]:
        """Whether each of the two alarms after an active minute."""
        level = self.levels.setdefault(round(self.bins * math.log2(running)), Level())
        outside, low, high = 0, False, False
        if level.ready:
            run = self.run.update(at, value, level.mean, level.sigma)
            outside, low = run.count, run.alarm
            rho = self.lag.upper
            if rho is not None:
                point = self.chart.update(value, level.mean, level.sigma, rho, size=level.size)
                high = point.side is not None
        self._learn(at, value, level, _state(low or high, outside))
        return low, high

    def _learn(self, at: float, value: float, level: Level, state: AlarmState) -> None:
        entered: list[Entered] = []
        for other in self.levels.values():
            other.follow(state, at)
            entered.extend(other.offer(at, value) if other is level else other.settle(at))
        for one in sorted(entered, key=lambda one: one.at):
            self.lag.update(one.at, one.residual)


def _state(alarm: bool, outside: int) -> AlarmState:
    if alarm:
        return AlarmState.FIRING
    return AlarmState.PENDING if outside else AlarmState.INACTIVE


@dataclass(slots=True)
class Naive:
    """The specified rule on a plain moving average, λ 0.1, which learns every minute at once."""

    mean: float = MEAN
    variance: float = SIGMA**2
    run: RunRule = field(default_factory=RunRule)

    def minute(self, at: float, value: float) -> bool:
        """Whether it alarms after an active minute."""
        alarm = self.run.update(at, value, self.mean, math.sqrt(self.variance)).alarm
        off = value - self.mean
        self.mean += 0.1 * off
        self.variance = 0.9 * (self.variance + 0.1 * off * off)
        return alarm


@dataclass(slots=True)
class Monitor:
    """All the rules on one series; each call gives one flag for each of ``RULES``."""

    watch: Watch
    naive: Naive = field(default_factory=Naive)
    flags: tuple[bool, ...] = (False,) * len(RULES)

    def minute(self, number: int, minute: Minute) -> tuple[bool, ...]:
        """An idle minute has no value and changes nothing."""
        value, running = minute
        if not math.isnan(value):
            at = 60.0 * number
            specified, ewma = self.watch.minute(at, value, running)
            either, both = specified or ewma, specified and ewma
            self.flags = (specified, ewma, either, both, self.naive.minute(at, value))
        return self.flags
