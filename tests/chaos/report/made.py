"""Campaigns made by a seeded generator, and single runs with what a test needs of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from chaos.vocabulary import (
    Detected,
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
    Watched,
)

AT = 1_790_000_000.0
PERIOD = 0.25
WATCHED = 60.0
EFFECT = 0.1
HOSTILE = 'bad\x1b[31m<script>alert("x")</script>\nnew\u2028line\u202e\x7f{{ 1 }}'
WAYS = (
    # fault, method, layer, healer, median seconds to recover, share recovered, causes
    ("gpu_oom", "balloon", Layer.REAL, Healer.LEASE, 2.5, 0.97, ("GpuMemory",)),
    ("nccl_stall", "freeze", Layer.REAL, Healer.GUARDIAN, 6.0, 0.94, ("EngineStalled",)),
    ("context_loss", "hook", Layer.API, Healer.RESTART, 21.0, 0.88, ("EngineDown",)),
)


def run(number: int = 1, **changes: object) -> Run:
    """A run that recovered after 2 s, watched through the gateway."""
    made = Run(
        id=f"run-{number}",
        campaign="nightly",
        number=number,
        fault="gpu_oom",
        method="balloon",
        kind=Kind.FAULT,
        layer=Layer.REAL,
        heals_by=Healer.LEASE,
        expects=("GpuMemory",),
        target="port:8081",
        seed=7,
        started_unix=AT + 90 * number,
        outcome=Outcome.RECOVERED,
        reason="",
        effect=EFFECT,
        healed=1.0,
        watched=WATCHED,
        proof=Effect(Proof.SEEN, "the device's memory is full", (("free_bytes", 0.0),)),
        healing=Healing(Ending.HEALED, "the balloon is gone"),
        places=(place("users", 2.0),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def place(name: str, took: float | None, probes: tuple[Probe, ...] = ()) -> Watched:
    """Somewhere a service was away for ``took`` seconds after the effect; None: it stayed away."""
    if took is None:
        return Watched(name, None, None, WATCHED - EFFECT, PERIOD, 240, probes)
    back = EFFECT + took
    return Watched(name, back - 0.5 * took, back, 0.5 * took, PERIOD, 4, probes)


def without_proof(number: int, **changes: object) -> Run:
    """A run that is not counted, for want of a proof."""
    gone = {"outcome": Outcome.NOT_INJECTED, "reason": "no effect seen", "effect": None}
    return run(number, **{**gone, "places": (), "proof": None, **changes})


def stuck(number: int, **changes: object) -> Run:
    """A run that did not recover."""
    lasting = {"outcome": Outcome.NOT_RECOVERED, "reason": "watched to the end"}
    return run(number, **{**lasting, "places": (place("users", None),), **changes})


def campaign(runs: int, seed: int = 5) -> list[Run]:
    """As many runs of three faults, shams and controls, with all probes of two places."""
    rng = random.Random(seed)
    return list(_campaign(runs, rng))


def _campaign(runs: int, rng: random.Random) -> Iterator[Run]:
    started = AT
    for number in range(1, runs + 1):
        fault, method, layer, healer, median, well, causes = WAYS[number % len(WAYS)]
        kind = Kind.SHAM if number % 10 == 7 else Kind.CONTROL if number % 25 == 13 else Kind.FAULT
        took = rng.lognormvariate(0, 0.5) * median if rng.random() < well else None
        base = run(
            number,
            fault=fault,
            method=method,
            layer=layer,
            heals_by=healer,
            expects=causes,
            kind=kind,
            started_unix=started,
            seed=rng.randrange(2**32),
        )
        yield _ended(base, took, rng)
        started += WATCHED + 15


def _ended(base: Run, took: float | None, rng: random.Random) -> Run:
    effect = round(0.05 + 0.2 * rng.random(), 3)
    if base.kind is not Kind.FAULT or rng.random() < 0.03:
        seen = tuple(_watched(name, effect, 0.0, rng) for name in ("engine", "users"))
        fired = base.kind is Kind.SHAM and rng.random() < 0.1
        alarms = (Detected("TtftHigh", 9.0, "TTFT P95 2 s"),) if fired else ()
        return without_proof(base.number, **_identity(base), places=seen, detected=alarms)
    long = WATCHED if took is None else min(took, WATCHED - 8)
    seen = tuple(_watched(name, effect, long, rng) for name in ("engine", "users"))
    at = effect + 1 + 4 * rng.random()
    alarms = (Detected(base.expects[0], at, "seen"),) if rng.random() < 0.9 else ()
    away = seen[0].recovered is None
    return replace(
        base,
        effect=effect,
        healed=effect + min(long, 12.0) * 0.6,
        outcome=Outcome.NOT_RECOVERED if away else Outcome.RECOVERED,
        reason="not well when watching ended" if away else "",
        places=seen,
        detected=alarms,
    )


def _identity(base: Run) -> dict[str, object]:
    names = ("fault", "method", "layer", "heals_by", "expects", "kind", "started_unix", "seed")
    return {name: getattr(base, name) for name in names}


def _watched(name: str, effect: float, away: float, rng: random.Random) -> Watched:
    """A request every period from 3 s before; none succeeds while the service is away."""
    probes = []
    at = -3.0
    while at < WATCHED - 1:
        failed = effect <= at < effect + away
        slow = 2.5 if effect + away <= at < effect + away + 1.5 and away else 1.0
        ttft = rng.lognormvariate(-2.3, 0.15) * slow * (1.2 if name == "users" else 1.0)
        end = at + (0.02 if failed else ttft + 0.3)
        kind = rng.choice(("refused", "cut")) if failed else None
        probes.append(Probe(at, end, kind, None if failed else ttft, 0 if failed else 24))
        at += PERIOD if name == "engine" else 2 * PERIOD
    well = [probe for probe in probes if probe.sent >= effect + away]
    back = away < WATCHED - 8
    return Watched(
        place=name,
        success=well[0].ended if back else None,
        recovered=well[8].ended if back else None,
        interruption=away,
        period=PERIOD if name == "engine" else 2 * PERIOD,
        failures=sum(probe.failure is not None for probe in probes),
        probes=tuple(probes),
    )
