"""The journal, the guardian and the undoing of one injector, as its runs see them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from chaos.entries import By, Foreign, Plan, Planned, Step
from chaos.folder import Unsafe
from chaos.guarding import Guard, GuardianLost
from chaos.healing import blocked, heal_run
from chaos.journal import Journal, Unwritable
from chaos.ordering import Order, Unwatched
from chaos.processes import Process
from chaos.target import Refused, Target
from chaos.undo import Undo
from chaos.undo.several import Several
from chaos.vocabulary import Effect, Healing

GRACE_SECONDS = 5.0  # beyond a run's time, until the guardian heals what we should have


class Active(Protocol):
    """Whoever shows which fault is loose."""

    def began(self, fault: str, method: str) -> None:
        """It is loose."""

    def over(self, fault: str, method: str) -> None:
        """It is undone, or was never there."""


class Kept:
    """Implements ``Keeper``. Not for several runs at once."""

    def __init__(
        self, journal: Journal, guard: Guard, session: Process, figures: Active | None = None
    ) -> None:
        self._journal, self._guard, self._session = journal, guard, session
        self._figures = figures
        self._planned: Planned | None = None

    def planned(self, order: Order, target: Target, undo: Undo, seconds: float) -> None:
        """On disk, and watched by a guardian; one that was lost is replaced."""
        with _watched():
            still = blocked(self._journal.read().entries, target.name)
        if still:
            raise Refused(still)
        plan = Plan(
            run=f"{order.id}-{secrets.token_hex(4)}",  # an interrupted run may be taken up again
            fault=order.fault.name,
            method=order.method.name,
            target=target.name,
            undo=undo,
            session=self._session,
            heal_by=self._journal.clocks.boottime() + seconds + GRACE_SECONDS,
        )
        with _watched():
            if not self._guard.alive():
                self._guard.renew()
            self._planned = self._journal.plan(plan)
        try:
            with _watched():
                self._guard.watch(self._planned)
        except Unwatched:
            # Nothing was injected: it must not block the target, nor be undone, which for some
            # faults is to end a process that is well.
            self.heal(order.id, Several(()))
            raise

    def injected(self, run: str) -> None:
        """It is loose."""
        planned = self._journaled().plan
        if self._figures is not None:
            self._figures.began(planned.fault, planned.method)
        self._note(Step.INJECTED, run)

    def proven(self, run: str, effect: Effect) -> None:
        """It took hold."""
        self._note(Step.EFFECT, effect.text)

    def heal(self, run: str, undo: Undo) -> Healing:
        """Undoes what ``undo`` says by now, which may be less than was planned."""
        planned = self._journaled()
        healing = heal_run(self._journal, planned, By.INJECTOR, undo=undo)
        if self._figures is not None:
            self._figures.over(planned.plan.fault, planned.plan.method)
        with suppress(GuardianLost):  # the next run starts another
            self._guard.ended(planned.run)
        return healing

    def check(self) -> None:
        """Raises ``Unwatched``."""
        if not self._guard.alive():
            raise Unwatched("the guardian has ended while a fault was injected")

    def _journaled(self) -> Planned:
        if self._planned is None:
            raise LookupError("nothing was planned")
        return self._planned

    def _note(self, step: Step, text: str) -> None:
        with _watched():
            self._journal.note(self._journaled().run, step, By.INJECTOR, text)


@contextmanager
def _watched() -> Iterator[None]:
    try:
        yield
    except (GuardianLost, Unwritable, Unsafe, Foreign) as error:
        raise Unwatched(str(error)) from error
