"""A campaign from the command line: its parts put together, its signals, its lines of progress."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from chaos import results
from chaos.asking import mending, same, sensible
from chaos.campaign import Campaign, Ended, Wanted
from chaos.entries import Foreign
from chaos.experiment import Experiment
from chaos.exporting import exporting
from chaos.faults import chosen
from chaos.folder import Unsafe
from chaos.guarding import Guard, GuardianLost
from chaos.healing import recover
from chaos.injector_lock import Busy, InjectorLock
from chaos.journal import Journal, Unwritable
from chaos.keeping import Kept
from chaos.ordering import Patience
from chaos.places import results_file, state_folder
from chaos.printable import printable
from chaos.probing import Place, Prober
from chaos.processes import Process
from chaos.progress import line, opening, tell
from chaos.report.reporting import summary_of
from chaos.report.terminal import show
from chaos.sight import Sight
from chaos.stopping import stoppable
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
    detect_seconds: float = 0.0
    require: float = 0.0
    state: Path | None = None
    console: Console = field(default_factory=lambda: Console(highlight=False))


@dataclass(frozen=True, slots=True)
class Parts:
    """What a campaign is put together of."""

    target: Target
    journal: Journal
    guard: Guard
    file: Path
    mend: Callable[[], Awaitable[None]] | None


def play(asked: Asked) -> int:
    """The exit status. Raises one of ``REFUSALS`` when nothing was injected."""
    target = Target.named(asked.target, asked.environment)
    wanted, mend = _wanted(asked), mending(asked.repair)
    lasts = [method.hold_seconds for _, method in wanted.methods]
    hold = max(lasts) if asked.hold is None else asked.hold
    same(asked.target, asked.engine_url)
    sensible(asked.max_seconds, hold, asked.steady_seconds, asked.period)
    state = (asked.state or state_folder()).absolute()
    file = results_file(state, wanted.name)
    session = Process.from_pid(os.getpid())
    journal = Journal(state)
    with ExitStack() as stack:
        try:
            state.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(InjectorLock(state, session))
            file.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise Refused(f"{state}: {error.strerror}; name another folder by --state") from None
        _heal_first(asked.console, journal)
        lacking(target, wanted)
        guard = stack.enter_context(Guard(state, session))
        parts = Parts(target, journal, guard, file, mend)
        ended, why = asyncio.run(_play(asked, wanted, parts))
    if why:
        tell(asked.console, f"{ended}: {printable(why)}", "bold yellow")
    if file.exists() and not asked.console.quiet:
        _report(asked.console, file)
    return _CODES[ended] or _short(asked, file)


def _short(asked: Asked, file: Path) -> int:
    """1 when fewer recovered of some fault than was required, which is told; else 0."""
    rates = [(one.name, one.recovery) for one in summary_of(file).faults if one.recovery]
    bad = [name for name, rate in rates if (rate.rate or 0.0) < asked.require]
    if bad and asked.require:
        told = f"fewer than {asked.require:g} recovered: {', '.join(bad)}"
        tell(asked.console, told, "bold red")
        return 1
    return 0


def _report(console: Console, file: Path) -> None:
    try:
        console.print()
        show(console, summary_of(file))
        console.print(Text(f"\nkept in   {file}", style="dim"), soft_wrap=True)
    except (OSError, SystemExit):  # nobody reads it any more: it is kept all the same
        console.quiet = True


def _wanted(asked: Asked) -> Wanted:
    methods = tuple(dict.fromkeys(chosen(words) for words in asked.faults))
    name = asked.name or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{asked.seed}"
    counts = (asked.runs, asked.seed, asked.shams, asked.controls)
    return Wanted(name, methods, *counts, target=asked.target, settings=_settings(asked))


def _settings(asked: Asked) -> str:
    hold = "as each lasts" if asked.hold is None else f"{asked.hold:g} s"
    told = f"{asked.environment}, hold {hold}, a request each {asked.period:g} s, "
    told += f"{asked.max_seconds:g} s a run, users {asked.url}"
    return told + (f", engine {asked.engine_url}" if asked.engine_url else "")


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
        tell(console, f"left by run {entry.run}: {healing.ending}: {printable(healing.text)}")
        failed += [healing.text] if healing.ending is Ending.FAILED else []
    if failed:
        raise Refused(f"an earlier run is not undone: {failed[0]}; see model-probe chaos recover")


async def _play(asked: Asked, wanted: Wanted, parts: Parts) -> tuple[Ended, str]:
    async with AsyncExitStack() as stack:
        probers = [await stack.enter_async_context(_probing(place)) for place in _places(asked)]
        sight = Sight(asked.sidecar or None)
        await sight.start()
        stack.push_async_callback(sight.stop)
        if asked.sidecar and sight.blind:
            raise Refused(
                f"--sidecar {asked.sidecar}: {sight.blind}; write it as http://127.0.0.1:9838, and "
                "see that it runs"
            )
        exported = stack.enter_context(exporting(asked.metrics, asked.otlp, parts.journal))
        patience = Patience(
            asked.steady_seconds,
            hold=asked.hold,
            most=asked.max_seconds,
            detect=asked.detect_seconds,
        )
        keeper = Kept(parts.journal, parts.guard, parts.guard.session, exported.figures)
        experiment = Experiment(parts.target, probers, sight, keeper, patience)
        tell(asked.console, opening(wanted, parts.target), "dim")

        def said(run: Run, left: int) -> None:
            exported.ended(run)
            tell(asked.console, line(run, left))

        with stoppable(experiment.stop, asked.console):
            campaign = Campaign(wanted, experiment, parts.file, said, parts.mend)
            found = await campaign.play()
    if exported.spans is not None and (lost := exported.spans.counts()):
        tell(asked.console, f"spans that were dropped: {lost}", "yellow")
    return found


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
