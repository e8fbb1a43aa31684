"""The table of faults for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from chaos.faults import FAULTS, fault
from chaos.printable import printable
from chaos.target import Target


def show(target: str, environment: str) -> None:
    """Every fault with its methods; with a target, what each of them lacks there."""
    aimed = Target.named(target, environment) if target else None
    console = Console(highlight=False)
    for name in FAULTS:
        one = fault(name)
        console.print(Text.assemble((name, "bold"), f"  {one.summary}"))
        for at, method in enumerate(one.methods):
            first = " (taken unless another is named)" if at == 0 else ""
            console.print(Text.assemble("  ", (f"{name}:{method.name}", "bold"), first))
            console.print(Text(f"    {method.does}"))
            console.print(
                Text(
                    f"    layer {method.layer}; healed by {method.heals_by}; lasts "
                    f"{method.hold_seconds:g} s; needs {method.needs}",
                    style="dim",
                )
            )
            if aimed is not None:
                _there(console, method.preflight(aimed))


def _there(console: Console, lacks: list[str]) -> None:
    """What can be told of a method at a target without trying it."""
    for lack in dict.fromkeys(lacks):
        console.print(Text(f"    not here: {printable(lack)}", style="yellow"), soft_wrap=True)
    if not lacks:
        console.print(Text("    ready there", style="green"))
