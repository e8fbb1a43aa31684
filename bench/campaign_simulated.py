"""Campaigns on services that are only the times of their answers, judged by the real judgement.

How often a service stays down is known here, so it can be counted how often the interval of a
campaign's rate holds the truth, and whether a dead one is ever called recovered.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from chaos import judging
from chaos.judging import IN_A_ROW, Usual
from chaos.statistics import share
from chaos.vocabulary import (
    Effect,
    Ending,
    Healer,
    Healing,
    Kind,
    Layer,
    Outcome,
    Probe,
    Proof,
    Run,
)

PERIOD, MOST, SETTLE, HOLD = 0.2, 30.0, 2.0, 0.5  # seconds
USUAL = Usual(0.4, 0.6)
FLAKE = 0.002  # of the answers of a service that is well


@dataclass(frozen=True, slots=True)
class Service:
    """One that dies of the fault, and with probability ``fail`` does not come back. One that does
    not, flaps with probability ``flap``: it gives a few whole answers now and then, fewer in a row
    than count as recovery. One that does, falls once more with probability ``relapse``.
    """

    fail: float
    flap: float = 0.3
    relapse: float = 0.1

    def run(self, rng: random.Random) -> tuple[bool, Outcome]:
        """One run: whether it really came back, and what it was judged to be."""
        back = rng.random() >= self.fail
        stretches = list(self._up(rng, back))
        probes = [self._answer(rng, PERIOD * at, stretches) for at in range(int(MOST / PERIOD))]
        return back, judged(probes)

    def _up(self, rng: random.Random, back: bool) -> Iterator[tuple[float, float]]:
        """When it is up, seconds since the fault."""
        at = HOLD + rng.lognormvariate(0.5, 0.6)
        if back and rng.random() < self.relapse:
            length = rng.uniform(0.1, 1.5)
            yield at, at + length
            at += length + rng.lognormvariate(0.5, 0.6)
        if back:
            yield at, MOST
        elif rng.random() < self.flap:
            while at < MOST:  # less than K answers fit in
                yield at, at + rng.uniform(PERIOD, (IN_A_ROW - 1) * PERIOD)
                at += rng.uniform(1.5, 6.0)

    def _answer(self, rng: random.Random, sent: float, up: list[tuple[float, float]]) -> Probe:
        well = any(start <= sent < end for start, end in up)
        if well and rng.random() >= FLAKE:
            ttft = rng.lognormvariate(-2.3, 0.3)
            return Probe(sent, sent + ttft + 0.05, None, ttft, 8)
        # What is down refuses, hangs, or lies: a 200 without a token is no answer.
        failure = rng.choice(("refused", "timeout", "empty", "status_500"))
        lasted = 10.0 if failure == "timeout" else 0.005
        return Probe(sent, sent + lasted, failure, None)


def judged(probes: list[Probe]) -> Outcome:
    """As an experiment does: it looks until it has been well for a while, or time is over."""
    settled, at = None, 0.0
    while at < MOST:
        at += 0.1
        well = judging.recovered(_known(probes, at), HOLD, USUAL) is not None
        settled = (at if settled is None else settled) if well else None
        if settled is not None and at - settled >= SETTLE:
            break
    well = judging.recovered(_known(probes, at), HOLD, USUAL) is not None
    return judging.outcome(replace(_RUN, watched=at), () if well else ("engine",), stopped=False)[0]


def _known(probes: list[Probe], at: float) -> list[Probe]:
    """What is known of them by then."""
    late = [p for p in probes if p.sent <= at < p.ended and at - p.sent > USUAL.whole]
    over = [p for p in probes if p.ended <= at]
    return over + [judging.unanswered(p.sent, at) for p in late]


_RUN = Run(
    id="s",
    campaign="s",
    number=1,
    fault="made_up",
    method="made_up",
    kind=Kind.FAULT,
    layer=Layer.API,
    heals_by=Healer.LEASE,
    expects=(),
    target="s",
    seed=1,
    started_unix=0.0,
    outcome=Outcome.INCONCLUSIVE,
    reason="",
    effect=0.0,
    healed=HOLD,
    proof=Effect(Proof.SEEN, "made up"),
    healing=Healing(Ending.HEALED, "made up"),
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Of one setting: how many campaigns' intervals held the truth, how many runs of a dead
    service were called recovered, and of a living one not.
    """

    fail: float
    campaigns: int
    wilson_covers: int
    clopper_covers: int
    dead_called_recovered: int
    living_called_dead: int


def calibrate(fail: float, campaigns: int, runs: int, seed: int) -> Calibration:
    """So many campaigns of so many runs each."""
    service = Service(fail)
    wilson = clopper = dead = living = 0
    for number in range(campaigns):
        rng = random.Random(f"{seed} {fail} {number}")
        ended = [service.run(rng) for _ in range(runs)]
        recovered = sum(outcome is Outcome.RECOVERED for _, outcome in ended)
        found = share(recovered, runs)
        truth = 1.0 - fail
        wilson += found.wilson.lower <= truth <= (found.wilson.upper or 1.0)
        clopper += found.clopper.lower <= truth <= (found.clopper.upper or 1.0)
        dead += sum(not back and outcome is Outcome.RECOVERED for back, outcome in ended)
        living += sum(back and outcome is not Outcome.RECOVERED for back, outcome in ended)
    return Calibration(fail, campaigns, wilson, clopper, dead, living)
