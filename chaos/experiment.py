"""One run: a steady service, a fault that is proven, its end, and whether the service came back.

What is undone is undone before anything is judged, and whatever interrupts a run.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic, time
from typing import Protocol

from chaos import judging
from chaos.faults.fault import Fault, Injection, Method
from chaos.leftovers import Leftovers
from chaos.probing import Prober
from chaos.sight import Sight
from chaos.target import Gone, Target
from chaos.undo import Undo
from chaos.vocabulary import Effect, Healing, Kind, Outcome, Proof, Run
from chaos.watching import Watching

BEAT = 0.02  # seconds between two renewals and looks; the effect's time is known so well
LOOK = 0.1  # seconds between two judgements of recovery


class Unwatched(Exception):
    """Nobody would undo the fault if we died, or the journal cannot be kept."""


class Keeper(Protocol):
    """Whoever sees to it that what is injected is undone, if we are not there to do it."""

    def planned(self, order: Order, target: Target, undo: Undo, seconds: float) -> None:
        """Returns once it is on disk and watched over; raises ``Unwatched``, or ``Refused`` while
        something of an earlier run still stands there.
        """

    def injected(self, run: str) -> None:
        """It is loose; raises ``Unwatched``."""

    def proven(self, run: str, effect: Effect) -> None:
        """It took hold; raises ``Unwatched``."""

    def heal(self, run: str, undo: Undo) -> Healing:
        """Undoes it, and writes down how that went."""

    def check(self) -> None:
        """Raises ``Unwatched``."""


@dataclass(frozen=True, slots=True)
class Order:
    """What one run is to be; the campaign's ``seed`` and its number decide all of its choices."""

    id: str
    number: int
    fault: Fault
    method: Method
    kind: Kind
    seed: int


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for a steady service before the fault, for its effect, how long it lasts (None: as
    its method says), all of a run after arming, how long a service that has recovered is still
    looked at, for a relapse and for late alarms, and how long a sham is.
    """

    steady: float = 60.0
    effect: float = 10.0
    hold: float | None = None
    most: float = 120.0
    settle: float = 2.0
    sham: float = 10.0


class Experiment:
    """Runs on one target, watched from one place or two; the first decides."""

    def __init__(
        self,
        target: Target,
        probers: Sequence[Prober],
        sight: Sight,
        keeper: Keeper,
        patience: Patience,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._target, self._sight, self._keeper = target, sight, keeper
        self._patience, self._clock = patience, clock
        self._watching = Watching(probers, clock)
        self.stop = asyncio.Event()

    async def run(self, campaign: str, order: Order) -> Run:
        """From a steady service to a judgement; raises ``Refused`` before anything is injected."""
        empty = self._empty(campaign, order)
        if not await self._steady():
            return replace(empty, reason=self._unsteady())
        self._watching.learn()
        try:
            return await self._attempt(empty, order)
        except Gone as gone:
            return replace(empty, reason=str(gone))
        except (OSError, RuntimeError, Unwatched) as error:  # undone by now, as far as it was done
            return replace(empty, reason=f"could not be injected: {error}"[:500])

    def _empty(self, campaign: str, order: Order) -> Run:
        return Run(
            id=order.id,
            campaign=campaign,
            number=order.number,
            fault=order.fault.name,
            method=order.method.name,
            kind=order.kind,
            layer=order.method.layer,
            heals_by=order.method.heals_by,
            expects=order.fault.expects,
            target=self._target.name,
            seed=order.seed,
            started_unix=time(),
            outcome=Outcome.INCONCLUSIVE,
            reason="",
        )

    async def _steady(self) -> bool:
        """Whether every place answers as it should, in time."""
        deadline = self._clock() + self._patience.steady
        while self._watching.unsteady():
            if self._clock() >= deadline or await self._stopped(LOOK):
                return False
        return True

    def _unsteady(self) -> str:
        if self.stop.is_set():
            return "interrupted before the fault"
        bad = self._watching.unsteady() or ["nowhere by now"]
        return f"not steady before the fault, as seen from {' and '.join(bad)}"

    async def _stopped(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), seconds)
        return self.stop.is_set()

    async def _attempt(self, empty: Run, order: Order) -> Run:
        choices = f"{order.seed} {order.number}"
        rng = random.Random(choices)  # noqa: S311  choices that can be repeated
        leftovers = await asyncio.to_thread(Leftovers.before, self._target)
        astray = order.kind is Kind.CONTROL
        injection = None
        if order.kind is not Kind.SHAM:
            injection = order.method.prepare(self._target, rng, astray)
            longest = self._patience.effect + self._lasts(order)
            self._keeper.planned(order, self._target, injection.undo, longest)
        start, began = self._clock(), time()
        found = replace(empty, started_unix=began)
        if injection is None:
            await self._hold(order, None, start)
            found = replace(found, proof=Effect(Proof.ABSENT, "a sham: nothing was injected"))
        else:
            found = await self._loose(found, order, injection, start)
        await self._watch(start, found)
        found = self._judged(replace(found, watched=self._clock() - start), start)
        return replace(found, left_behind=await asyncio.to_thread(leftovers.after, self._target))

    async def _loose(self, run: Run, order: Order, injection: Injection, start: float) -> Run:
        """Injects, proves, holds; undoes whatever happens meanwhile."""
        try:
            injection.inject()
            self._keeper.injected(run.id)
            at, proof = await self._hold(order, injection, start)
        finally:
            try:
                injection.release()
            finally:
                healing = await asyncio.to_thread(self._keeper.heal, run.id, injection.undo)
        healed = self._clock() - start
        return replace(run, effect=at, proof=proof, healing=healing, healed=healed)

    async def _hold(
        self, order: Order, injection: Injection | None, start: float
    ) -> tuple[float | None, Effect]:
        """Until the effect was seen and has lasted, or could not be seen in time."""
        hold = self._lasts(order)
        seen, proof = None, Effect(Proof.UNKNOWN, "never looked")
        deadline = start + (self._patience.sham if injection is None else self._patience.effect)
        while self._clock() < deadline and not await self._stopped(BEAT):
            if injection is None:
                continue
            self._keeper.check()
            injection.keep()
            latest = injection.effect()
            if seen is None or latest.proof is Proof.SEEN:
                proof = latest
            if seen is None and latest.proof is Proof.SEEN:
                now = self._clock()
                seen, deadline = now - start, now + hold
                self._keeper.proven(order.id, proof)
        return seen, proof

    def _lasts(self, order: Order) -> float:
        hold = self._patience.hold
        return order.method.hold_seconds if hold is None else hold

    async def _watch(self, start: float, run: Run) -> None:
        """Until every place has been well since the fault's end, or the time is over."""
        since = max(run.effect or 0.0, run.healed or 0.0)
        deadline = start + self._patience.most
        settled: float | None = None
        while self._clock() < deadline and not await self._stopped(LOOK):
            well = run.effect is None or self._watching.well(start, since)
            settled = (settled or self._clock()) if well else None
            if settled is not None and self._clock() - settled >= self._patience.settle:
                return

    def _judged(self, run: Run, start: float) -> Run:
        places = self._watching.places(start, run.effect)
        detected = self._sight.since(start)
        outcome, reason = judging.outcome(run, places, self.stop.is_set())
        judged = replace(run, places=places, outcome=outcome, reason=reason)
        return replace(judged, detected=detected, blind=self._sight.blind)
