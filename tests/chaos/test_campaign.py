"""The order of runs, and taking a campaign up again."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from chaos import results
from chaos.campaign import UNSTEADY, Campaign, Ended, Wanted, orders, remaining, repair
from chaos.experiment import Experiment, Order, Patience
from chaos.faults import FAULTS, chosen, fault
from chaos.sight import Sight
from chaos.target import Refused, Target
from chaos.vocabulary import Ending, Healing, Kind, Outcome, Run
from tests.chaos.breaking import Noting

METHODS = tuple(chosen(name) for name in FAULTS)
WANTED = Wanted("c", METHODS, runs=5, seed=3, shams=4, controls=2, target="port:1")


def run_of(
    order: Order, outcome: Outcome = Outcome.RECOVERED, healing: Ending = Ending.HEALED
) -> Run:
    return Run(
        id=order.id,
        campaign="c",
        number=order.number,
        fault=order.fault.name,
        method=order.method.name,
        kind=order.kind,
        layer=order.method.layer,
        heals_by=order.method.heals_by,
        expects=order.fault.expects,
        target="port:1",
        seed=order.seed,
        started_unix=0.0,
        outcome=outcome,
        reason="because",
        healing=Healing(healing, "so it went"),
    )


class Played(Experiment):
    """Answers each order as told, in turn; the last for all that follow."""

    def __init__(self, *answers: tuple[Outcome, Ending]) -> None:
        super().__init__(Target("port:1", "staging"), [], Sight(None), Noting(), Patience())
        self.answers, self.played = list(answers), list[Order]()

    async def run(self, campaign: str, order: Order) -> Run:
        self.played.append(order)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return run_of(order, *answer)


WELL = (Outcome.RECOVERED, Ending.HEALED)


def play(file: Path, experiment: Played, wanted: Wanted = WANTED) -> tuple[Ended, str]:
    campaign = Campaign(wanted, experiment, file, lambda run, left: None)
    return asyncio.run(campaign.play())


def test_every_run_is_in_the_order_once() -> None:
    """Of each fault as many as asked for, and the shams and controls."""
    kinds = Counter((one.fault.name, one.kind) for one in orders(WANTED))
    assert all(kinds[name, Kind.FAULT] == 5 for name in FAULTS)
    assert sum(count for (_, kind), count in kinds.items() if kind is Kind.SHAM) == 4
    assert all(kinds[name, Kind.CONTROL] == 2 for name in FAULTS)


def test_the_seed_decides_the_order_and_every_choice() -> None:
    """The same seed, the same campaign."""
    assert orders(WANTED) == orders(WANTED)
    assert orders(WANTED) != orders(replace(WANTED, seed=4))


def test_a_campaign_is_taken_up_where_it_ended(tmp_path: Path) -> None:
    """What was written is not run again; what came to nothing is."""
    file = tmp_path / "c.jsonl"
    first, second, *_ = orders(WANTED)
    results.write(file, run_of(first))
    results.write(file, run_of(second, Outcome.INCONCLUSIVE))
    experiment = Played(WELL)
    assert play(file, experiment) == (Ended.COMPLETED, "")
    assert [one.number for one in experiment.played] == list(range(2, len(orders(WANTED)) + 1))
    assert len(results.read(file).runs) == len(orders(WANTED))


def test_another_campaigns_file_is_not_gone_on_with(tmp_path: Path) -> None:
    """Its runs would be told as this one's."""
    other = orders(replace(WANTED, seed=4))
    with pytest.raises(Refused, match="another --name"):
        remaining(WANTED, [run_of(other[0])])


@pytest.mark.parametrize("change", [{"target": "port:2"}, {"settings": "hold 1 s"}])
def test_a_campaign_is_not_taken_up_as_another(change: dict[str, str]) -> None:
    """On another target, or asked for otherwise, its runs are not of one kind."""
    first = run_of(orders(WANTED)[0])
    with pytest.raises(Refused, match="another --name"):
        remaining(replace(WANTED, **change), [first])


def test_a_run_that_was_interrupted_in_its_fault_is_not_run_again() -> None:
    """Or whoever stops the bad ones has only good ones."""
    first, second, *_ = orders(WANTED)
    begun = replace(run_of(first, Outcome.INCONCLUSIVE), effect=0.1)
    left = remaining(WANTED, [begun, run_of(second, Outcome.INCONCLUSIVE)])
    assert first not in left
    assert second in left


def test_a_fault_that_cannot_be_undone_stops_it(tmp_path: Path) -> None:
    """Nothing more is broken before somebody has looked."""
    experiment = Played((Outcome.NOT_RECOVERED, Ending.FAILED))
    ended, why = play(tmp_path / "c.jsonl", experiment)
    assert ended is Ended.ABORTED
    assert "chaos recover" in why
    assert len(experiment.played) == 1


def test_a_service_that_is_never_steady_stops_it(tmp_path: Path) -> None:
    """After a few runs: there is nothing to learn."""
    experiment = Played((Outcome.INCONCLUSIVE, Ending.HEALED))
    ended, why = play(tmp_path / "c.jsonl", experiment)
    assert ended is Ended.ABORTED
    assert "because" in why
    assert len(experiment.played) == UNSTEADY


def test_what_does_not_come_back_is_repaired_by_the_given_command(tmp_path: Path) -> None:
    """As an operator would, before the next run; the arguments go to no shell."""
    mark = tmp_path / "a b"
    experiment = Played((Outcome.NOT_RECOVERED, Ending.HEALED), WELL)
    file = tmp_path / "c.jsonl"
    wanted = replace(WANTED, runs=1, shams=0, controls=0)
    asyncio.run(
        Campaign(
            wanted, experiment, file, lambda run, left: None, partial(repair, "touch", str(mark))
        ).play()
    )
    assert mark.exists()
    assert len(experiment.played) == len(FAULTS)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_of_the_table_declares_what_it_is(name: str) -> None:
    """Layer, healer, needs and causes: reports and people read them."""
    found = fault(name)
    assert found.name == name
    assert found.expects
    assert len({method.name for method in found.methods}) == len(found.methods)
    assert all(method.needs and method.does and method.hold_seconds > 0 for method in found.methods)


def test_a_method_is_named_behind_a_colon() -> None:
    """The first is taken when none is."""
    assert chosen("gpu_oom")[1].name == "hook"
    assert chosen("gpu_oom:balloon")[1].name == "balloon"


@pytest.mark.parametrize("words", ["gpu", "gpu_oom:", "gpu_oom:x", ""])
def test_unknown_faults_and_methods_are_refused_with_those_there_are(words: str) -> None:
    """Nothing like it is run instead."""
    if words == "gpu_oom:":
        assert chosen(words)[1].name == "hook"
        return
    with pytest.raises(Refused, match="there are"):
        chosen(words)


class Refusing(Played):
    """Plays one run, and has a reason not to play another."""

    async def run(self, campaign: str, order: Order) -> Run:
        if self.played:
            raise Refused("it has not agreed any more")
        return await super().run(campaign, order)


def test_a_refusal_after_some_runs_ends_it_and_not_their_report(tmp_path: Path) -> None:
    """Before the first it is nothing but a refusal."""
    file = tmp_path / "c.jsonl"
    assert play(file, Refusing(WELL)) == (Ended.ABORTED, "it has not agreed any more")
    assert len(results.read(file).runs) == 1
    again = Refusing(WELL)
    again.played.append(orders(WANTED)[0])
    with pytest.raises(Refused, match="agreed"):
        play(file, again)


def test_results_that_cannot_be_kept_end_it_and_the_run_is_told(tmp_path: Path) -> None:
    """Nothing more is broken for nothing."""
    said = list[Run]()
    experiment = Played(WELL)
    file = tmp_path / "none" / "c.jsonl"
    campaign = Campaign(WANTED, experiment, file, lambda run, _: said.append(run))
    ended, why = asyncio.run(campaign.play())
    assert ended is Ended.ABORTED
    assert "is not kept" in why
    assert len(said) == len(experiment.played) == 1


def test_a_repair_that_cannot_be_started_ends_it(tmp_path: Path) -> None:
    """The next run would find the service as the last one left it."""
    experiment = Played((Outcome.NOT_RECOVERED, Ending.HEALED), WELL)
    mend = partial(repair, str(tmp_path / "gone"))
    campaign = Campaign(WANTED, experiment, tmp_path / "c.jsonl", lambda run, left: None, mend)
    ended, why = asyncio.run(campaign.play())
    assert ended is Ended.ABORTED
    assert "--repair" in why
