"""A campaign from the command line: its parts put together, its signals, its lines of progress."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from chaos import results
from chaos.campaign import Campaign, Ended, Wanted, repair
from chaos.entries import Foreign
from chaos.experiment import Experiment, Patience
from chaos.exporting import exporting
from chaos.faults import chosen
from chaos.folder import Unsafe
from chaos.guarding import Guard, GuardianLost
from chaos.healing import recover
from chaos.injector_lock import Busy, InjectorLock
from chaos.journal import Journal, Unwritable
from chaos.keeping import Kept
from chaos.places import results_file, state_folder
from chaos.printable import printable
from chaos.probing import Place, Prober
from chaos.processes import Process
from chaos.progress import line, opening
from chaos.report.reporting import summary_of
from chaos.report.terminal import show
from chaos.sight import Sight
from chaos.target import Refused, Target
from chaos.vocabulary import Ending, Run

REFUSALS = (Refused, Unsafe, Unwritable, Foreign, Busy, GuardianLost, results.Unusable)
_CODES = {Ended.COMPLETED: 0, Ended.ABORTED: 1, Ended.INTERRUPTED: 130}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for; see its help."""

    faults: tuple[str, ...]
    target: str
    environment: str
    url: str
    engine_url: str = ""
    sidecar: str = ""
    runs: int = 5
    shams: int = 0
    controls: int = 0
    seed: int = 1
    max_seconds: float = 120.0
    hold: float | None = None
    steady_seconds: float = 60.0
    period: float = 0.25
    model: str = ""
    repair: str = ""
    name: str = ""
    metrics: str = ""
    otlp: str = ""
    state: Path | None = None
    console: Console = field(default_factory=lambda: Console(highlight=False))


def play(asked: Asked) -> int:
    """The exit status. Raises one of ``REFUSALS`` when nothing was injected."""
    target = Target.named(asked.target, asked.environment)
    wanted = _wanted(asked)
    state = (asked.state or state_folder()).absolute()
    file = results_file(state, wanted.name)
    session = Process.from_pid(os.getpid())
    journal = Journal(state)
    with InjectorLock(state, session):
        _heal_first(asked.console, journal)
        lacking(target, wanted)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        with Guard(state, session) as guard:
            ended, why = asyncio.run(_play(asked, wanted, target, journal, guard, file))
    if why:
        asked.console.print(Text(f"{ended}: {printable(why)}", style="bold yellow"))
    if file.exists():
        asked.console.print()
        show(asked.console, summary_of(file))
        asked.console.print(Text(f"\nkept in   {file}", style="dim"))
    return _CODES[ended]


def _wanted(asked: Asked) -> Wanted:
    methods = tuple(dict.fromkeys(chosen(words) for words in asked.faults))
    name = asked.name or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{asked.seed}"
    return Wanted(name, methods, asked.runs, asked.seed, asked.shams, asked.controls)


def lacking(target: Target, wanted: Wanted) -> None:
    """Raises ``Refused`` with all that is missing, before anything is begun."""
    target.leader()
    found = [
        f"{fault.name}:{method.name}: {lack}"
        for fault, method in wanted.methods
        for lack in method.preflight(target)
    ]
    if found:
        raise Refused("; ".join(dict.fromkeys(found)))


def _heal_first(console: Console, journal: Journal) -> None:
    """Whatever an earlier injector left; raises ``Refused`` when some of it still stands."""
    failed = []
    for entry, healing in recover(journal):
        console.print(Text(f"left by run {entry.run}: {healing.ending}: {printable(healing.text)}"))
        failed += [healing.text] if healing.ending is Ending.FAILED else []
    if failed:
        raise Refused(f"an earlier run is not undone: {failed[0]}; see model-probe chaos recover")


async def _play(
    asked: Asked, wanted: Wanted, target: Target, journal: Journal, guard: Guard, file: Path
) -> tuple[Ended, str]:
    async with AsyncExitStack() as stack:
        probers = [await stack.enter_async_context(_probing(place)) for place in _places(asked)]
        sight = Sight(asked.sidecar or None)
        await sight.start()
        stack.push_async_callback(sight.stop)
        if asked.sidecar and sight.blind:
            raise Refused(f"{asked.sidecar}: {sight.blind}")
        exported = stack.enter_context(exporting(asked.metrics, asked.otlp, journal))
        patience = Patience(asked.steady_seconds, hold=asked.hold, most=asked.max_seconds)
        keeper = Kept(journal, guard, guard.session, exported.figures)
        experiment = Experiment(target, probers, sight, keeper, patience)
        asked.console.print(Text(opening(wanted, target), style="dim"), soft_wrap=True)

        def said(run: Run, left: int) -> None:
            exported.ended(run)
            asked.console.print(Text(line(run, left)), soft_wrap=True)

        with _stoppable(experiment, asked.console):
            mend = partial(repair, *shlex.split(asked.repair)) if asked.repair else None
            campaign = Campaign(wanted, experiment, file, said, mend)
            return await campaign.play()


def _places(asked: Asked) -> list[Place]:
    users = Place("users", asked.url, asked.period, model=asked.model or None)
    if not asked.engine_url:
        return [users]
    return [Place("engine", asked.engine_url, asked.period, model=asked.model or None), users]


@asynccontextmanager
async def _probing(place: Place) -> AsyncIterator[Prober]:
    prober = Prober(place)
    try:
        await prober.start()
        yield prober
    finally:
        await prober.stop()


@contextmanager
def _stoppable(experiment: Experiment, console: Console) -> Iterator[None]:
    """SIGINT and SIGTERM end the run in order; a second one hurries nothing, for it would leave the
    fault where it is.
    """
    loop = asyncio.get_running_loop()

    def asked_to_stop() -> None:
        again = experiment.stop.is_set()
        experiment.stop.set()
        console.print("still undoing what was injected" if again else "stopping: undoing …")

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, asked_to_stop)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
