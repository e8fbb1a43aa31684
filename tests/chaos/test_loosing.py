"""A fault let loose is undone, and told as it was, whatever happens while it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic

import pytest

from chaos import judging
from chaos.loosing import Loose, Loosing
from chaos.ordering import Order, Patience
from chaos.target import Refused
from chaos.undo import Undo
from chaos.undo.several import Several
from chaos.vocabulary import Effect, Ending, Outcome, Proof, Run
from tests.chaos.breaking import ABSENT, SEEN, Noting, order
from tests.chaos.test_campaign import run_of

PATIENCE = Patience(effect=0.3)


@dataclass
class Scripted:
    """Implements ``Injection``; ``broken`` maps a step to what it raises from its ``nth`` call."""

    broken: dict[str, Exception] = field(default_factory=dict)
    nth: int = 1
    seen_at: str = "effect"
    undo: Undo = field(default_factory=lambda: Several(()))
    said: list[str] = field(default_factory=list)

    def _step(self, name: str) -> None:
        self.said.append(name)
        if name in self.broken and self.said.count(name) >= self.nth:
            raise self.broken[name]

    def inject(self) -> None:
        self._step("inject")

    def keep(self) -> None:
        self._step("keep")

    def release(self) -> None:
        self._step("release")

    def effect(self) -> Effect:
        self._step("effect")
        return SEEN if self.seen_at in self.said else ABSENT


def loose(injection: Scripted, keeper: Noting | None = None) -> Loose:
    async def stopped(seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return False

    async def go() -> Loose:
        loosing = Loosing(keeper or Noting(), PATIENCE, monotonic, stopped)
        return await loosing.play(made(injection), injection, monotonic())

    return asyncio.run(go())


def made(injection: Scripted) -> Order:
    return order(lambda _: injection)


ERRORS = [OSError("gone"), RuntimeError("NVML: no"), ValueError("odd"), Refused("shrunk")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step", ["inject", "keep", "effect", "release"])
def test_whatever_raises_it_is_undone_and_told(step: str, error: Exception) -> None:
    """With how undoing went: without that a failed undo would stop nothing."""
    keeper = Noting()
    found = loose(Scripted({step: error}), keeper)
    assert found.wrong == str(error)
    assert found.healing is not None
    assert keeper.said[-1] == "heal"


def test_a_fault_that_ends_before_its_time_is_no_recovery_and_keeps_its_proof() -> None:
    """As where its lease ran out because we were kept from renewing it."""
    found = loose(Scripted({"keep": OSError("its lease ran out")}, nth=3))
    assert found.effect is not None
    run = run_of(made(Scripted()))
    outcome, reason = judging.outcome(replace_with(run, found), [], False, found.wrong)
    assert outcome is Outcome.INCONCLUSIVE
    assert reason == "the fault ended before its time: its lease ran out"


def replace_with(run: Run, found: Loose) -> Run:
    return replace(
        run,
        effect=found.effect,
        proof=found.proof,
        healing=found.healing,
        healed=found.healed,
    )


def test_an_undo_that_failed_is_told_though_injecting_failed_too() -> None:
    """Nothing more may be broken then."""
    found = loose(Scripted({"inject": OSError("half done")}), Noting(ending=Ending.FAILED))
    run = replace_with(run_of(made(Scripted())), found)
    assert judging.outcome(run, [], False, found.wrong)[0] is Outcome.NOT_RECOVERED


def test_what_took_hold_after_the_last_look_did_take_hold() -> None:
    """The call that was hit while it was being ended was hit: not injected would be a lie."""
    found = loose(Scripted(seen_at="release"))
    assert found.proof.proof is Proof.SEEN
    assert found.effect is not None
    assert found.effect >= PATIENCE.effect


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_run_is_undone(times: int) -> None:
    """Also when it is cancelled again while it is being undone."""
    keeper, injection = Noting(), Scripted()

    async def stopped(seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return False

    async def go() -> None:
        loosing = Loosing(keeper, Patience(hold=60), monotonic, stopped)
        play = loosing.play(made(injection), injection, monotonic())
        task = asyncio.create_task(play)
        await until(lambda: "keep" in injection.said)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert injection.said[-2:] == ["release", "effect"]
    assert keeper.said[-1] == "heal"


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)
