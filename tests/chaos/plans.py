"""Plans to write into a journal."""

from __future__ import annotations

from chaos.entries import By, Entry, Noted, Plan, Planned, Step
from chaos.journal import Journal
from chaos.processes import Process
from chaos.undo import Undo
from chaos.undo.resume import Resume
from tests.chaos.victims import me


def plan(
    run: str,
    undo: Undo | None = None,
    target: str = "port:8081",
    session: Process | None = None,
    heal_by: float = 1e9,
) -> Plan:
    """A plan of ours that nothing has to be done for."""
    return Plan(run, "pause", "sigstop", target, undo or Resume(()), session or me(), heal_by)


def steps(journal: Journal) -> list[str]:
    """What the journal says, in short: ``run step by``."""
    return [told(entry) for entry in journal.read().entries]


def told(entry: Entry) -> str:
    """One entry in short."""
    return f"{entry.run} " + (f"{entry.step} {entry.by}" if isinstance(entry, Noted) else "planned")


def note(seq: int, run: str, step: Step) -> Noted:
    """A step of a run."""
    return Noted(seq, 1.0, 2.0, run, step, By.INJECTOR)


SOME: list[Entry] = [
    Planned(1, 1.0, 2.0, plan("one")),
    note(2, "one", Step.INJECTED),
    note(3, "one", Step.HEALED),
]
