"""Services whose requests fail at the rate their objective allows, or faster, by the minute.

A part of ``./run bench detectors``. Requests and failures are independent (Poisson), the objective
is 99.9 %, and every rule sees the same minutes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from sidecar.detect.burn import CONDITIONS, Budget, Condition
from sidecar.verdicts import Outcome

OBJECTIVE = 0.999
_DAY, _WARM_DAYS, _HORIZON = 1440, 3, 720
_NAMES = ("burn 14.4, 1 h and 5 min", "burn 6, 6 h and 30 min", "burn 1, 3 d and 6 h")
_UNGUARDED = "burn 14.4, unguarded"


def poisson(rng: random.Random, mean: float) -> int:
    """A Poisson variate; the normal approximation from 50 on."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    limit, product, count = math.exp(-mean), rng.random(), 0
    while product > limit:
        product *= rng.random()
        count += 1
    return count


@dataclass(slots=True)
class Service:
    """``hourly`` requests, and the budgets that watch it: one without the low-traffic guard."""

    rng: random.Random
    hourly: float
    budget: Budget
    unguarded: Budget

    def minute(self, number: int, share: float) -> None:
        """One minute in which ``share`` of the requests fail."""
        mean = self.hourly / 60
        bad, good = poisson(self.rng, mean * share), poisson(self.rng, mean * (1 - share))
        for budget in (self.budget, self.unguarded):
            budget.record(60.0 * number, bad, bad + good)

    def alarms(self, number: int) -> tuple[bool, ...]:
        """Which conditions hold, the unguarded one last."""
        at = 60.0 * number
        held = [_holds(self.budget, condition, at) for condition in CONDITIONS]
        return (*held, _holds(self.unguarded, CONDITIONS[0], at))


def _holds(budget: Budget, condition: Condition, at: float) -> bool:
    return budget.judge(condition, at).outcome is Outcome.FAIL


def _service(seed: int, hourly: float) -> Service:
    unguarded = Budget(OBJECTIVE, minimum_bad=0, minimum_requests=0)
    return Service(random.Random(seed), hourly, Budget(OBJECTIVE), unguarded)


@dataclass(frozen=True, slots=True)
class Healthy:
    """Failures at half the rate that the objective allows; counted are days with a new alarm."""

    hourly: int
    days: int = 5
    unit: str = "days"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Scenario, rule, whether it alarmed, by day."""
        service = _service(seed, self.hourly)
        before: tuple[bool, ...] = (False,) * 4
        for day in range(_WARM_DAYS + self.days):
            raised = [False] * 4
            for number in range(day * _DAY, (day + 1) * _DAY):
                service.minute(number, (1 - OBJECTIVE) / 2)
                if day >= _WARM_DAYS:
                    now = service.alarms(number)
                    raised = [
                        r or (n and not b) for r, n, b in zip(raised, now, before, strict=True)
                    ]
                    before = now
            if day >= _WARM_DAYS:
                for rule, alarm in zip((*_NAMES, _UNGUARDED), raised, strict=True):
                    name = f"null, burn 0.5, {self.hourly:,} requests/h"
                    yield name, rule, alarm, None


@dataclass(frozen=True, slots=True)
class Failing:
    """After three healthy days ``share`` of the requests fail."""

    hourly: int
    share: float
    unit: str = "faults"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Scenario, rule, whether it alarmed within twelve hours, after how many minutes."""
        service, start = _service(seed, self.hourly), _WARM_DAYS * _DAY
        for number in range(start):
            service.minute(number, (1 - OBJECTIVE) / 2)
        delays: list[float | None] = [None] * 4
        for number in range(start, start + _HORIZON):
            service.minute(number, self.share)
            for which, flag in enumerate(service.alarms(number)):
                if flag and delays[which] is None:
                    delays[which] = float(number - start + 1)
            if None not in delays:
                break
        name = f"{self.share:.0%} fail, {self.hourly:,} requests/h"
        for rule, delay in zip((*_NAMES, _UNGUARDED), delays, strict=True):
            yield name, rule, delay is not None, delay


SCENARIOS: tuple[Healthy | Failing, ...] = (
    *(Healthy(hourly) for hourly in (10, 100, 1_000, 10_000)),
    Failing(10, 1.0),
    Failing(1_000, 1.0),
    Failing(1_000, 0.05),
    Failing(1_000, 0.01),
)
