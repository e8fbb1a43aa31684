"""One campaign on the rig's real engine behind its real gateway, beside what really happened to it.

The supervisor of the engine has faults of its own that the campaign is not told of; its log is the
truth that each run's outcome is held against.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

from chaos import results
from chaos.campaign import Campaign, Ended, Wanted
from chaos.experiment import Experiment, Patience
from chaos.faults import chosen
from chaos.guarding import Guard
from chaos.injector_lock import InjectorLock
from chaos.journal import Journal
from chaos.keeping import Kept
from chaos.probing import Place, Prober
from chaos.processes import Process
from chaos.report.summarising import PROVEN
from chaos.sight import Sight
from chaos.target import Target
from chaos.vocabulary import Outcome, Run
from rig.chaos import ENVIRONMENT, FRONT
from rig.stack import ENGINE, Plan, Stack

PERIOD = 0.2  # seconds between two requests, at each place
PATIENCE = Patience(steady=40.0, effect=3.0, most=30.0, settle=0.5, sham=4.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """``hidden`` are the supervisor's faults, as its options; ``fail`` is the probability in it of
    staying down.
    """

    name: str
    faults: tuple[str, ...]
    runs: int
    seed: int
    hidden: tuple[str, ...] = ()
    fail: float = 0.0
    shams: int = 0
    controls: int = 0


@dataclass(frozen=True, slots=True)
class Truth:
    """What the supervisor did during one run, and whether the engine lived at its end."""

    number: int
    gave_up: bool
    leaked: bool
    alive: bool


@dataclass(frozen=True, slots=True)
class Played:
    """A setting's runs and the truth of each, by number."""

    setting: Setting
    runs: tuple[Run, ...]
    truths: dict[int, Truth]
    ended: Ended
    why: str


def play(setting: Setting, folder: Path) -> Played:
    """All of it, or what is still missing of it in ``folder``. From the main thread, which arms."""
    plan = Plan(
        engines=2,
        folder=folder / f"rig-{setting.name}",
        load=False,
        gpu=True,
        chaos=ENVIRONMENT,
        gpu_front=FRONT,
        gpu_supervisor=("--stable", "1", "--seed", str(setting.seed), *setting.hidden),
    )
    file = folder / "campaigns" / f"{setting.name}.jsonl"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Stack(plan) as stack, _driver(stack):
        session, journal = Process.from_pid(os.getpid()), Journal(folder)
        with InjectorLock(folder, session), Guard(folder, session) as guard:
            keeper = Kept(journal, guard, session)
            ended, why = asyncio.run(_campaign(setting, stack, keeper, file))
    return Played(setting, results.read(file).runs, _truths(file), ended, why)


@contextmanager
def _driver(stack: Stack) -> Iterator[None]:
    """Makes what we start (the balloon, NVML's reader) find the stand-in driver."""
    before = dict(os.environ)
    os.environ.update(stack.gpu_environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


async def _campaign(setting: Setting, stack: Stack, keeper: Kept, file: Path) -> tuple[Ended, str]:
    wanted = Wanted(
        setting.name,
        tuple(chosen(words) for words in setting.faults),
        setting.runs,
        setting.seed,
        setting.shams,
        setting.controls,
        target=f"port:{stack.engine_ports[0]}",
    )
    target = Target.named(f"port:{stack.engine_ports[0]}", ENVIRONMENT)
    async with AsyncExitStack() as cleanup:
        probers = [
            Prober(Place("engine", stack.engine_urls[0], PERIOD)),
            Prober(Place("users", stack.url, PERIOD)),
        ]
        for prober in probers:
            cleanup.push_async_callback(prober.stop)
            await prober.start()
        experiment = Experiment(target, probers, Sight(None), keeper, PATIENCE)

        def said(run: Run, left: int) -> None:
            _note(file, _truth(run, stack))
            print(f"  {setting.name} {run.number}: {run.outcome}, {left} to go", flush=True)

        async def mend() -> None:
            stack.stop(f"{ENGINE}0")
            stack.restart(f"{ENGINE}0")

        return await Campaign(wanted, experiment, file, said, mend).play()


def _truth(run: Run, stack: Stack) -> Truth:
    """Of the run that has just ended."""
    began = monotonic() - run.watched - 1.0
    events = [e for e in stack.node.events(0).read() if float(str(e["monotonic"])) >= began]
    kinds = {str(event["event"]) for event in events}
    return Truth(
        run.number, "gave_up" in kinds, "leaked" in kinds, stack.node.front_pid(0) is not None
    )


def _beside(file: Path) -> Path:
    return file.with_suffix(".truth.jsonl")


def _note(file: Path, truth: Truth) -> None:
    with _beside(file).open("a") as out:
        out.write(json.dumps(asdict(truth)) + "\n")


def _truths(file: Path) -> dict[int, Truth]:
    lines = _beside(file).read_text().splitlines()
    return {found["number"]: Truth(**found) for found in map(json.loads, lines)}


def wrong(played: Played) -> dict[str, int]:
    """How often the outcome was not the truth, by kind."""
    pairs = [(run, played.truths[run.number]) for run in played.runs]
    proven = [(run, truth) for run, truth in pairs if run.outcome in PROVEN]
    recovered = [(run, truth) for run, truth in proven if run.outcome is Outcome.RECOVERED]
    leaks = [(run, truth) for run, truth in recovered if truth.leaked]
    return {
        "dead_called_recovered": sum(t.gave_up or not t.alive for _, t in recovered),
        "living_called_dead": sum(
            run.outcome is Outcome.NOT_RECOVERED and not truth.gave_up for run, truth in proven
        ),
        "leaks": len(leaks),
        "leaks_unseen": sum(not run.left_behind for run, _ in leaks),
    }
