"""``model-probe mark``: declares a stretch of time, such as a chaos run or a deploy."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from sidecar.alarms import marks
from sidecar.alarms.states import Unusable
from sidecar.verdicts import Mark

mark = typer.Typer(no_args_is_help=True, help="Declare what somebody does to the service.")
Database = Annotated[
    Path, typer.Option(help="The file of `alarms.database`.", envvar="MODELPROBE_ALARMS__DATABASE")
]


@mark.command()
def add(
    kind: Annotated[str, typer.Argument(help="chaos, deploy or incident.")],
    author: Annotated[str, typer.Option(help="Who declares it.")],
    database: Database,
    minutes: Annotated[float, typer.Option(help="How long it lasts from its start.")] = 15.0,
    start: Annotated[
        str, typer.Option(help="When it began, with its zone; now if not given.")
    ] = "",
    text: Annotated[str, typer.Option(help="One line for people.")] = "",
) -> None:
    """Add a mark: alarms of that time carry it, and nothing is muted."""
    now = time.time()
    try:
        begun = datetime.fromisoformat(start) if start else datetime.fromtimestamp(now, UTC)
        end = begun + timedelta(minutes=minutes)
        found = marks.checked(kind, author, begun, end, text, now)
        marks.add(database, found)
    except (marks.MarkError, Unusable, ValueError, OverflowError) as error:
        typer.echo(f"model-probe: mark: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(_line(found))


@mark.command("list")
def list_marks(
    database: Database,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the newest.")] = 20,
) -> None:
    """Show the latest marks, the newest first."""
    try:
        found = marks.listed(database, limit)
    except Unusable as error:
        typer.echo(f"model-probe: mark: {error}", err=True)
        raise typer.Exit(2) from error
    for each in found:
        typer.echo(_line(each))


def _line(found: Mark) -> str:
    begun, ended = (
        datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        for at in (found.start, found.end)
    )
    text = f": {found.text}" if found.text else ""
    return f"{found.kind.value} by {found.author}, {begun} to {ended}{text}"
