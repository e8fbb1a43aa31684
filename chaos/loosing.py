"""A fault let loose: injected, proven, kept up as long as it shall last, and undone in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chaos.fault import Injection
from chaos.ordering import Keeper, Order, Patience, Unwatched
from chaos.target import Refused
from chaos.vocabulary import Effect, Healing, Proof

BEAT = 0.02  # seconds between two renewals and looks; the effect's time is known so well
WRONG = (OSError, RuntimeError, ValueError, Refused, Unwatched)


@dataclass(slots=True)
class Loose:
    """What became of it, in seconds since ``start``. ``wrong`` is why it could not begin, or ended
    before its time; whatever that was, it is undone as ``healing`` says.
    """

    start: float
    effect: float | None = None
    proof: Effect = Effect(Proof.UNKNOWN, "never looked")  # noqa: RUF009  it is frozen
    wrong: str = ""
    healing: Healing | None = None
    healed: float = 0.0


class Loosing:
    """Lets faults loose, one at a time. ``stopped`` waits for so many seconds at most, and says
    whether somebody asked to stop.
    """

    def __init__(
        self,
        keeper: Keeper,
        patience: Patience,
        clock: Callable[[], float],
        stopped: Callable[[float], Awaitable[bool]],
    ) -> None:
        self._keeper, self._patience = keeper, patience
        self._clock, self._stopped = clock, stopped

    async def play(self, order: Order, injection: Injection, start: float) -> Loose:
        """All of it. Whatever else it raises, a cancellation too, it is undone by then."""
        found = Loose(start)
        try:
            injection.inject()
            self._keeper.injected(order.id)
            await self._hold(order, injection, found)
        except WRONG as error:
            found.wrong = str(error) or type(error).__name__
        finally:
            try:
                self._release(injection, found)
            finally:
                heal = self._keeper.heal
                found.healing = await asyncio.to_thread(heal, order.id, injection.undo)
        found.healed = self._clock() - start
        return found

    async def _hold(self, order: Order, injection: Injection, found: Loose) -> None:
        """Until the effect was seen and has lasted, or could not be seen in time."""
        deadline = found.start + self._patience.effect
        while self._clock() < deadline and not await self._stopped(BEAT):
            self._keeper.check()
            injection.keep()
            latest = injection.effect()
            if latest.proof is Proof.SEEN or found.effect is None:
                found.proof = latest
            if latest.proof is Proof.SEEN and found.effect is None:
                now = self._clock()
                found.effect, deadline = now - found.start, now + self._patience.lasts(order)
                self._keeper.proven(order.id, latest)

    def _release(self, injection: Injection, found: Loose) -> None:
        """Ends it. What took hold after the last look did so all the same."""
        try:
            injection.release()
            latest = injection.effect()
        except WRONG as error:
            found.wrong = found.wrong or str(error) or type(error).__name__
            return
        if found.effect is None and latest.proof is Proof.SEEN:
            found.effect, found.proof = self._clock() - found.start, latest
