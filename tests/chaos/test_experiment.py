"""One run against a chat service that is broken for real."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.experiment import Experiment, Patience
from chaos.probing import Place, Prober
from chaos.sight import Sight
from chaos.target import Gone, Target
from chaos.vocabulary import Ending, Kind, Outcome, Proof, Run
from tests.chaos.breaking import Breaking, Noting, order
from tests.chaos.servers import Chat, serving


class Standing(Breaking):
    """Keeps everything on its loop from going on for a while, once."""

    def keep(self) -> None:
        if "keep" not in self.said:
            asyncio.get_running_loop().call_later(0.005, time.sleep, 1.3)
        super().keep()


QUICK = Patience(steady=5.0, effect=0.5, most=3.0, settle=0.1, sham=0.3, stall=9.0)
TARGET = Target("port:1", "staging")
Made = Callable[[Chat], Breaking]


def ran(
    made: Made,
    keeper: Noting | None = None,
    kind: Kind = Kind.FAULT,
    patience: Patience = QUICK,
    mode: str = "ok",
    stop_after: float | None = None,
    sight: Sight | None = None,
) -> tuple[Run, Noting, Breaking]:
    """One run of that breaking."""
    keeper = keeper or Noting()

    async def go() -> tuple[Run, Noting, Breaking]:
        async with serving() as chat:
            broken = made(chat)
            prober = Prober(Place("users", chat.url, period=0.02, deadline=1.0))
            await prober.start()
            chat.mode = mode
            experiment = Experiment(TARGET, [prober], sight or Sight(None), keeper, patience)
            if stop_after is not None:
                asyncio.get_running_loop().call_later(stop_after, experiment.stop.set)
            run = await experiment.run("c", order(lambda _: broken, kind))
            await prober.stop()
            return run, keeper, broken

    return asyncio.run(go())


def test_a_service_that_fails_and_comes_back_has_recovered() -> None:
    """With all four clocks, and what its users lost."""
    run, keeper, broken = ran(Breaking)
    assert run.outcome is Outcome.RECOVERED
    assert run.effect is not None
    assert run.healed is not None
    place = run.places[0]
    assert place.success is not None
    assert place.recovered is not None
    assert 0.0 <= run.effect < run.healed
    assert run.effect + 0.1 <= place.success <= place.recovered  # it lasted 0.1 s
    assert 0.05 < place.interruption < 1.5
    assert broken.said == ["inject", "keep", "release"]
    assert keeper.said == ["planned", "injected", "proven", "heal"]


def test_a_service_that_does_not_come_back_has_not_recovered() -> None:
    """It is watched to the end of its time, which is told."""
    run, _, _ = ran(lambda chat: Breaking(chat, mends=False))
    assert run.outcome is Outcome.NOT_RECOVERED
    assert run.places[0].recovered is None
    assert run.watched >= QUICK.most
    assert "users" in run.reason


def test_a_service_that_hangs_and_stays_so_has_not_recovered() -> None:
    """Requests that are still open are no answers."""
    run, _, _ = ran(lambda chat: Breaking(chat, mode="hang", mends=False))
    assert run.outcome is Outcome.NOT_RECOVERED
    assert {probe.failure for probe in run.places[0].probes} >= {"timeout", "open"}


def test_no_proof_is_not_injected_whatever_the_service_does() -> None:
    """A service that is well after no fault at all has recovered from nothing."""
    run, keeper, broken = ran(lambda chat: Breaking(chat, works=False))
    assert run.outcome is Outcome.NOT_INJECTED
    assert run.effect is None
    assert "nothing happened" in run.reason
    assert broken.said[-1] == "release"
    assert keeper.said == ["planned", "injected", "heal"]


def test_a_service_that_is_not_steady_is_not_broken_further() -> None:
    """Nothing is prepared, nothing injected."""
    run, keeper, broken = ran(Breaking, mode="503", patience=replace(QUICK, steady=0.5))
    assert run.outcome is Outcome.INCONCLUSIVE
    assert "not steady" in run.reason
    assert (keeper.said, broken.said) == ([], [])


def test_a_sham_injects_nothing_and_watches_all_the_same() -> None:
    """What alarms then is a false alarm."""
    run, keeper, broken = ran(Breaking, kind=Kind.SHAM)
    assert run.outcome is Outcome.NOT_INJECTED
    assert run.proof is not None
    assert run.proof.proof is Proof.ABSENT
    assert run.watched >= QUICK.sham
    assert (keeper.said, broken.said) == ([], [])


def test_an_undo_that_failed_is_no_recovery_however_well_the_service_is() -> None:
    """Somebody has to look."""
    run, _, _ = ran(Breaking, Noting(ending=Ending.FAILED))
    assert run.outcome is Outcome.NOT_RECOVERED
    assert "could not be undone" in run.reason


@pytest.mark.parametrize("step", ["injected", "proven", "check"])
def test_without_anybody_to_watch_over_it_a_fault_ends_at_once(step: str) -> None:
    """The run says so, and counts for nothing."""
    run, keeper, broken = ran(Breaking, Noting(lost=step))
    assert run.outcome is Outcome.INCONCLUSIVE
    assert "guardian" in run.reason
    assert broken.said[-1] == "release"
    assert keeper.said[-1] == "heal"


def test_what_cannot_be_planned_is_not_injected() -> None:
    """The plan comes first."""
    run, _, broken = ran(Breaking, Noting(lost="planned"))
    assert run.outcome is Outcome.INCONCLUSIVE
    assert broken.said == []


def test_an_interrupted_run_is_undone_and_inconclusive() -> None:
    """Also in the middle of the fault."""
    patience = replace(QUICK, hold=30.0, most=60.0)
    run, keeper, broken = ran(Breaking, patience=patience, stop_after=1.5)
    assert run.outcome is Outcome.INCONCLUSIVE
    assert "interrupted" in run.reason
    assert broken.said[-1] == "release"
    assert keeper.said[-1] == "heal"


def test_a_target_that_has_just_gone_is_inconclusive() -> None:
    """It is between two lives, and nobody else is broken in its stead."""

    def gone(_: Chat) -> Breaking:
        raise Gone("nobody listens")

    async def go() -> Run:
        async with serving() as chat:
            prober = Prober(Place("users", chat.url, period=0.02))
            await prober.start()
            experiment = Experiment(TARGET, [prober], Sight(None), Noting(), QUICK)
            run = await experiment.run("c", order(lambda _: gone(chat)))
            await prober.stop()
            return run

    run = asyncio.run(go())
    assert (run.outcome, run.reason) == (Outcome.INCONCLUSIVE, "nobody listens")


def test_an_injector_that_stood_still_says_nothing_of_the_service() -> None:
    """Stopped, or kept from its work, it asked nobody meanwhile."""

    async def go() -> Run:
        async with serving() as chat:
            prober = Prober(Place("users", chat.url, period=0.02, deadline=1.0))
            await prober.start()
            experiment = Experiment(
                TARGET, [prober], Sight(None), Noting(), replace(QUICK, stall=1.0)
            )

            run = await experiment.run("c", order(lambda _: Standing(chat)))
            await prober.stop()
            return run

    run = asyncio.run(go())
    assert run.outcome is Outcome.INCONCLUSIVE
    assert "stood still for 1." in run.reason
    assert run.healing is not None


class Firing(Sight):
    """Sees one rule fire from the beginning."""

    blind = ""

    def __init__(self) -> None:
        super().__init__(None)
        self.blind = ""

    @property
    def firing(self) -> tuple[str, ...]:
        return ("ErrorBurst",)


def test_what_fires_already_cannot_be_missed() -> None:
    """The run says so, and counts as neither detected nor missed."""
    run, _, _ = ran(Breaking, sight=Firing())
    assert run.outcome is Outcome.RECOVERED
    assert "ErrorBurst fired before" in run.blind


def test_an_alarm_is_waited_for_as_long_as_was_asked() -> None:
    """Though the service has long been well."""
    run, _, _ = ran(Breaking, patience=replace(QUICK, detect=1.5, most=10.0))
    assert run.effect is not None
    assert run.watched >= run.effect + 1.5
