"""Token rates that are made up, healthy and ill, and what the rules on them make of it.

A part of ``./run bench detectors``. Baselines are learned, never given: one day first, then the
days or the fault that count. Every rule sees the same minutes.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.detectors_watch import MEAN, RULES, SIGMA, Minute, Monitor, Watch

DAY = 1440
_HORIZON = 240
_LOADS = ((0.0, 121.0), (3.0, 51.0), (5.0, 22.0))  # log2 of running requests: tok/s of each


def correlated(rng: random.Random, rho: float = 0.0) -> Iterator[Minute]:
    """An AR(1) rate of Qwen2-7B, 42.6 ± 3.8; independent for ρ = 0."""
    value, fresh = rng.gauss(0, 1), math.sqrt(1 - rho * rho)
    while True:
        yield max(0.0, MEAN + SIGMA * value), 8
        value = rho * value + fresh * rng.gauss(0, 1)


def idle_half(rng: random.Random) -> Iterator[Minute]:
    """Active and idle stretches of 10 minutes on average each."""
    active = True
    for minute in correlated(rng):
        yield minute if active else (math.nan, 0)
        active ^= rng.random() < 0.1


def at_load(rng: random.Random, load: float) -> Minute:
    """What one of 2^load running requests gets, by interpolation of 121, 51, 22 tok/s, ±9 %."""
    running = max(1, round(2**load))
    at = math.log2(running)
    (low, slow), (high, fast) = _LOADS[:2] if at <= _LOADS[1][0] else _LOADS[1:]
    mean = slow * (fast / slow) ** ((at - low) / (high - low))
    return max(0.0, mean * (1 + 0.09 * rng.gauss(0, 1))), running


def load_steps(rng: random.Random) -> Iterator[Minute]:
    """1, 8 or 32 requests at once, each for half an hour to four hours."""
    while True:
        load = rng.choice((0.0, 3.0, 5.0))
        for _ in range(rng.randrange(30, 240)):
            yield at_load(rng, load)


def load_wanders(rng: random.Random) -> Iterator[Minute]:
    """Between 1 and 32 at once in a daily wave that noise is laid on, an hour's memory."""
    noise = 0.0
    for minute in range(10**9):
        noise = 0.98 * noise + 0.14 * rng.gauss(0, 1)
        wave = 2.5 + 2.0 * math.sin(2 * math.pi * minute / DAY)
        yield at_load(rng, min(5.0, max(0.0, wave + noise)))


@dataclass(frozen=True, slots=True)
class Null:
    """A healthy series: counted are days on which an alarm began."""

    name: str
    series: Callable[[random.Random], Iterator[Minute]]
    bins: int = 2
    warm_days: int = 1
    days: int = 4
    unit: str = "days"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Scenario, rule, whether it alarmed, by day; there is no delay."""
        rng = random.Random(seed)
        series, monitor = self.series(rng), Monitor(Watch(self.bins))
        before = monitor.flags
        for day in range(self.warm_days + self.days):
            raised = [False] * len(RULES)
            for number in range(day * DAY, (day + 1) * DAY):
                now = monitor.minute(number, next(series))
                raised = [r or (n and not b) for r, n, b in zip(raised, now, before, strict=True)]
                before = now
            if day >= self.warm_days:
                for rule, alarm in zip(RULES, raised, strict=True):
                    yield self.name, rule, alarm, None


@dataclass(frozen=True, slots=True)
class Falls:
    """After a healthy day the rate falls, by each of ``sigmas`` at once or over ``minutes``."""

    name: str
    sigmas: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0)
    minutes: int = 0
    rho: float = 0.0
    unit: str = "faults"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Scenario, rule, whether it alarmed within four hours, after how many minutes.

        The falls of a trial share their day and their noise.
        """
        series, learned = correlated(random.Random(seed), self.rho), Monitor(Watch())
        for number in range(DAY):
            learned.minute(number, next(series))
        noise = [next(series) for _ in range(_HORIZON)]
        for sigmas in self.sigmas:
            delays = self._delays(copy.deepcopy(learned), noise, sigmas)
            for rule, delay in zip(RULES, delays, strict=True):
                name = f"{self.name} −{sigmas:g} σ"
                yield name, rule, delay is not None, delay

    def _delays(self, monitor: Monitor, noise: list[Minute], sigmas: float) -> list[float | None]:
        delays: list[float | None] = [None] * len(RULES)
        for number, (value, running) in enumerate(noise):
            part = min(1.0, (number + 1) / self.minutes) if self.minutes else 1.0
            fallen = max(0.0, value - part * sigmas * SIGMA)
            for rule, flag in enumerate(monitor.minute(DAY + number, (fallen, running))):
                if flag and delays[rule] is None:
                    delays[rule] = float(number + 1)
        return delays


NULLS = (
    Null("null, iid", correlated),
    Null("null, iid, first day", correlated, warm_days=0, days=1),
    Null("null, idle half of the time", idle_half),
    Null("null, AR(1) 0.3", lambda rng: correlated(rng, 0.3)),
    Null("null, AR(1) 0.6", lambda rng: correlated(rng, 0.6)),
    Null("null, AR(1) 0.8", lambda rng: correlated(rng, 0.8)),
    Null("null, load steps, by half octaves", load_steps),
    Null("null, load steps, unconditioned", load_steps, bins=0),
    Null("null, load wanders, by half octaves", load_wanders),
    Null("null, load wanders, by octaves", load_wanders, bins=1),
    Null("null, load wanders, unconditioned", load_wanders, bins=0),
)
FALLS = (
    Falls("step"),
    Falls("AR(1) 0.6, step", sigmas=(3.0,), rho=0.6),
    Falls("ramp of 60 min,", sigmas=(3.0,), minutes=60),
    Falls("ramp of 180 min,", sigmas=(3.0,), minutes=180),
)
