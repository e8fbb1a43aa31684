"""One run: a steady service, a fault that is proven, its end, and whether the service came back.

What is undone is undone before anything is judged, and whatever interrupts a run.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic, time

from chaos import judging
from chaos.fault import Injection
from chaos.leftovers import Leftovers
from chaos.loosing import WRONG, Loosing
from chaos.ordering import Keeper, Order, Patience, Unwatched
from chaos.probing import Prober
from chaos.sight import Sight
from chaos.target import Gone, Refused, Target
from chaos.vocabulary import Effect, Kind, Outcome, Proof, Run
from chaos.watching import Watching

__all__ = ["Experiment", "Keeper", "Order", "Patience", "Unwatched"]

LOOK = 0.1  # seconds between two judgements of recovery


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
        self._loosing = Loosing(keeper, patience, clock, self._stopped)
        self._stall = 0.0
        self._before: tuple[str, ...] = ()
        self.stop = asyncio.Event()

    async def run(self, campaign: str, order: Order) -> Run:
        """From a steady service to a judgement; raises ``Refused`` before anything is injected."""
        empty = self._empty(campaign, order)
        if not await self._steady():
            return replace(empty, reason=self._unsteady())
        self._watching.learn()
        self._sight.forget(self._clock())
        try:
            return await self._attempt(empty, order)
        except Gone as gone:
            return replace(empty, reason=str(gone))
        except Refused:
            raise
        except WRONG as error:  # nothing was injected
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
        due = self._clock() + seconds
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), seconds)
        self._stall = max(self._stall, self._clock() - due)
        return self.stop.is_set()

    async def _attempt(self, empty: Run, order: Order) -> Run:
        # In threads: NVML and a /proc of thousands take longer than an answer does.
        learned = self._clock()
        leftovers, injection = await asyncio.to_thread(self._prepared, order)
        if self.stop.is_set():
            return replace(empty, reason="interrupted before the fault")
        if bad := self._watching.failed(learned):
            return replace(empty, reason=f"failed just before the fault, as seen from {bad}")
        if injection is not None:
            longest = self._patience.effect + self._patience.lasts(order)
            plan = (order, self._target, injection.undo, longest)
            await asyncio.to_thread(self._keeper.planned, *plan)
        start, self._stall = self._clock(), 0.0
        self._before = self._sight.firing
        found, wrong = await self._played(
            replace(empty, started_unix=time()), order, injection, start
        )
        seen = self._clock() if wrong else await self._watch(start, found)
        if self._stall > self._patience.stall:
            wrong = wrong or f"this injector itself stood still for {self._stall:.1f} s"
        found = self._judged(replace(found, watched=seen - start), start, seen, wrong)
        left = await asyncio.to_thread(leftovers.after, self._target)
        return replace(found, left_behind=left, unlooked=leftovers.unlooked)

    async def _played(
        self, run: Run, order: Order, injection: Injection | None, start: float
    ) -> tuple[Run, str]:
        """The fault from its beginning to its end, and what went wrong in it."""
        if injection is None:
            await self._stopped(self._patience.sham)
            return replace(run, proof=Effect(Proof.ABSENT, "a sham: nothing was injected")), ""
        loose = await self._loosing.play(order, injection, start)
        found = replace(
            run,
            effect=loose.effect,
            proof=loose.proof,
            healing=loose.healing,
            healed=loose.healed,
        )
        return found, loose.wrong

    def _prepared(self, order: Order) -> tuple[Leftovers, Injection | None]:
        leftovers = Leftovers.before(self._target)
        if order.kind is Kind.SHAM:
            return leftovers, None
        choices = f"{order.seed} {order.number}"
        rng = random.Random(choices)  # noqa: S311  choices that can be repeated
        astray = order.kind is Kind.CONTROL
        return leftovers, order.method.prepare(self._target, rng, astray)

    async def _watch(self, start: float, run: Run) -> float:
        """Until every place has been well since the fault's end, or the time is over. Returns when
        it last looked: the run is judged by that look, or a request that has been open for a moment
        too long since then would undo what was just found.
        """
        deadline = start + self._patience.most
        settled: float | None = None
        while self._clock() < deadline and not await self._stopped(LOOK):
            seen = self._clock()
            well = not self._unwell(start, run, seen)
            settled = (settled or self._clock()) if well else None
            over = settled is not None and self._clock() - settled >= self._patience.settle
            if over and not self._awaited(start, run):
                return seen
        return self._clock()

    def _awaited(self, start: float, run: Run) -> bool:
        """Whether an alarm may still come in the time that it was given."""
        if run.effect is None or self._sight.since(start):
            return False
        return self._clock() - start - run.effect < self._patience.detect

    def _unwell(self, start: float, run: Run, now: float) -> list[str]:
        """The places that have not been seen to be well since the fault's end."""
        if run.effect is None:
            return []
        return self._watching.unwell(start, max(run.effect, run.healed or 0.0), now)

    def _judged(self, run: Run, start: float, seen: float, wrong: str) -> Run:
        places = self._watching.places(start, run.effect, seen)
        late = self._unwell(start, run, seen)
        outcome, reason = judging.outcome(run, late, self.stop.is_set(), wrong)
        judged = replace(run, places=places, outcome=outcome, reason=reason)
        detected, blind = self._sight.since(start), self._sight.unseen(start)
        if self._before and not detected:  # what fires cannot begin to
            blind = blind or f"{', '.join(self._before)} fired before it began"
        return replace(judged, detected=detected, blind=blind)
