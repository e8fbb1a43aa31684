"""A campaign: runs in an order drawn by one seed, written down one by one, and taken up again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from chaos import results
from chaos.experiment import Experiment
from chaos.fault import Fault, Method
from chaos.ordering import Order
from chaos.target import Refused
from chaos.vocabulary import Ending, Kind, Outcome, Run

REPAIR_SECONDS = 120.0
UNSTEADY = 2  # runs in a row before which the service was not steady: there is nothing to test


class Ended(StrEnum):
    """How a campaign ended."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Wanted:
    """``runs`` and ``controls`` of each method; ``shams`` are spread over the methods in turn.

    ``name`` is the campaign's, and of its file; ``seed`` decides the order and every choice.
    ``target`` and ``settings`` are how it is asked for: another cannot be taken up as the same.
    """

    name: str
    methods: tuple[tuple[Fault, Method], ...]
    runs: int
    seed: int
    shams: int = 0
    controls: int = 0
    target: str = ""
    settings: str = ""


def orders(wanted: Wanted) -> list[Order]:
    """All runs, in their order: the same for the same wish."""
    kinds = [(pair, Kind.FAULT) for pair in wanted.methods for _ in range(wanted.runs)]
    kinds += [(pair, Kind.CONTROL) for pair in wanted.methods for _ in range(wanted.controls)]
    shams = (wanted.methods[at % len(wanted.methods)] for at in range(wanted.shams))
    kinds += [(pair, Kind.SHAM) for pair in shams]
    rng = random.Random(wanted.seed)  # noqa: S311  choices that can be repeated
    rng.shuffle(kinds)
    return [
        Order(f"{wanted.name}-{number:04d}", number, *pair, kind, wanted.seed)
        for number, (pair, kind) in enumerate(kinds, 1)
    ]


class Campaign:
    """Plays orders; ``said`` is called with each run that is over and the number still to come,
    ``mend`` after one from which the service did not come back.
    """

    def __init__(
        self,
        wanted: Wanted,
        experiment: Experiment,
        file: Path,
        said: Callable[[Run, int], None],
        mend: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._wanted, self._experiment, self._file = wanted, experiment, file
        self._said, self._mend = said, mend

    async def play(self) -> tuple[Ended, str]:
        """To the end, or to where it makes no sense to go on; with the reason for that."""
        todo = remaining(self._wanted, self._done())
        unsteady = 0
        for left, order in zip(range(len(todo) - 1, -1, -1), todo, strict=True):
            try:
                run = await self._experiment.run(self._wanted.name, order)
                run = replace(run, settings=self._wanted.settings)
            except Refused as error:
                if order is todo[0]:
                    raise
                return Ended.ABORTED, str(error)  # there are runs to report
            self._said(run, left)  # first: it may be all that remains of it
            try:
                await asyncio.to_thread(results.write, self._file, run)
            except results.Unusable as error:
                return Ended.ABORTED, f"run {run.id} is not kept, and none follows: {error}"
            if self._experiment.stop.is_set():
                return Ended.INTERRUPTED, "stopped by a signal; all that was injected is undone"
            if run.healing is not None and run.healing.ending is Ending.FAILED:
                return Ended.ABORTED, f"{run.healing.text}; see to it: model-probe chaos recover"
            unsteady = unsteady + 1 if run.outcome is Outcome.INCONCLUSIVE else 0
            bad = run.outcome in (Outcome.INCONCLUSIVE, Outcome.NOT_RECOVERED)
            if bad and self._mend is not None:
                try:
                    await self._mend()
                except OSError as error:
                    return Ended.ABORTED, f"--repair: {error}"
            if unsteady >= UNSTEADY:
                return Ended.ABORTED, f"{unsteady} runs in a row came to nothing: {run.reason}"
        return Ended.COMPLETED, ""

    def _done(self) -> Iterable[Run]:
        if not self._file.exists():
            return ()
        return results.read(self._file).runs


async def repair(*command: str) -> None:
    """What the operator would do to a service that did not come back by itself. OSError when it
    cannot be started, or says by its status that it failed.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is meant for us, and its children end with it
    )
    try:
        await asyncio.wait_for(process.wait(), REPAIR_SECONDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode:
        raise OSError(f"{command[0]} ended with status {process.returncode}")


def remaining(wanted: Wanted, done: Iterable[Run]) -> list[Order]:
    """Those that no conclusive run was written of; raises ``Refused`` for another's file. A run
    that was interrupted once its fault had taken hold is not run again: it stays what it was.
    """
    ordered = orders(wanted)
    by_number = {order.number: order for order in ordered}
    over = set[int]()
    for run in done:
        order = by_number.get(run.number)
        if order is None or _identity(order) != (
            run.id,
            run.fault,
            run.method,
            run.kind,
            run.seed,
        ):
            raise Refused(
                f"campaign {run.campaign!r} has a run {run.id} that is not of this plan: the "
                "same faults, counts and seed take it up again, another --name begins anew"
            )
        if (run.target, run.settings) != (wanted.target, wanted.settings):
            raise Refused(
                f"campaign {run.campaign!r} was begun on {run.target} with {run.settings}, not on "
                f"{wanted.target} with {wanted.settings}: another --name begins anew"
            )
        if run.outcome is not Outcome.INCONCLUSIVE or run.effect is not None:
            over.add(run.number)
    return [order for order in ordered if order.number not in over]


def _identity(order: Order) -> tuple[str, str, str, Kind, int]:
    return order.id, order.fault.name, order.method.name, order.kind, order.seed
