"""A summary for a terminal, in as many columns as it has, 80 or fewer included.

Each fault is a few lines of its own rather than a row of a table: a row with all intervals would
be wider than most terminals. What came from outside cannot steer one.
"""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from chaos.report import sentences, words
from chaos.report.summary import Figures, Summary
from sidecar.units import count


def show(console: Console, summary: Summary) -> None:
    """Prints the summary. Colour says nothing that a word does not."""
    for name, text in sentences.header(summary):
        console.print(Text.assemble((f"{name:<9}", "dim"), text))
    for note in summary.notes:
        console.print(Text(f"note: {words.plain(note)}", style="yellow"))
    if not summary.runs:
        console.print(Text("No runs: there is nothing to report.", style="bold"))
        return
    for one in summary.faults:
        _fault(console, one)
    console.print()
    wrong = bool(summary.controls.wrong)
    console.print(Text(sentences.shams(summary)))
    console.print(Text(sentences.controls(summary), style="bold red" if wrong else ""))
    for line in sentences.listed(summary.controls.wrong):
        _indented(console, Text(line, style="red"))
    console.print(Text(f"healing: {sentences.healing(summary)}"))
    _left(console, summary)


def _fault(console: Console, one: Figures) -> None:
    console.print()
    console.print(
        Text.assemble(
            (sentences.title(one), "bold"),
            (f"  layer {one.layer.value}: {sentences.LAYERS[one.layer]}", "dim"),
        )
    )
    _indented(console, Text(sentences.rate(one), style="bold" if one.recovery else ""))
    rows = list(sentences.times(one))
    if rows:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("", "median", "P95"):
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        _indented(console, table)
    for line in sentences.about(one):
        _indented(console, Text(line))


def _left(console: Console, summary: Summary) -> None:
    if not summary.left:
        if summary.unlooked:
            why = f"Device memory was not looked at: {words.plain(summary.unlooked)}"
            console.print(Text(why, style="yellow"))
        else:
            console.print(Text("Nothing was left behind.", style="green"))
        return
    many = count(len(summary.left), "run")
    console.print(Text(f"LEFT BEHIND by {many}; see to it by hand:", style="bold red"))
    for left in summary.left:
        where = f"{words.plain(left.fault)} on {words.plain(left.target)}, {words.plain(left.id)}"
        _indented(console, Text(f"{where}: {words.plain(left.text)}", style="red"))


def _indented(console: Console, what: Text | Table) -> None:
    console.print(Padding(what, (0, 0, 0, 2)))
