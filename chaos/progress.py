"""A campaign's lines of progress: one before it, one a run."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from chaos.campaign import Wanted
from chaos.printable import printable
from chaos.target import Target
from chaos.vocabulary import Kind, Outcome, Run
from sidecar.units import count, duration


def tell(console: Console, text: str, style: str = "") -> None:
    """One line on a terminal. One that is gone, or a pipe that nobody reads any more, ends no run:
    nothing is told from then on.
    """
    try:
        console.print(Text(text, style=style), soft_wrap=True)
    except (OSError, SystemExit):  # what rich makes of a broken pipe
        console.quiet = True


def opening(wanted: Wanted, target: Target) -> str:
    """What is about to be done."""
    names = ", ".join(f"{fault.name}:{method.name}" for fault, method in wanted.methods)
    return (
        f"campaign {wanted.name}: of each of {names} {count(wanted.runs, 'run')} and "
        f"{count(wanted.controls, 'control')}, and {count(wanted.shams, 'sham')}, on {target.name} "
        f"in {target.environment}, seed {wanted.seed}"
    )


def line(run: Run, left: int) -> str:
    """One run in one line of progress."""
    name = f"{run.number:>4} {run.fault}:{run.method}"
    kind = "" if run.kind is Kind.FAULT else f" ({run.kind})"
    told = [str(run.outcome).replace("_", " ")]
    if run.outcome is Outcome.RECOVERED and run.time_to_recover is not None:
        told.append(f"in {duration(run.time_to_recover)}")
    if run.effect is not None:
        told += [f"{p.place} interrupted {duration(p.interruption)}" for p in run.places]
    if run.effect is not None and run.detected:
        first = run.detected[0]
        told.append(f"{printable(first.rule)} after {duration(max(0.0, first.at - run.effect))}")
    elif run.kind is Kind.SHAM and run.detected:
        told.append(f"false alarm {printable(run.detected[0].rule)}")
    if run.outcome in (Outcome.INCONCLUSIVE, Outcome.NOT_INJECTED, Outcome.NOT_RECOVERED):
        told.append(printable(run.reason))
    if run.left_behind:
        told.append(printable(run.left_behind))
    return f"{name}{kind}  {'; '.join(told)}  [{left} to go]"
