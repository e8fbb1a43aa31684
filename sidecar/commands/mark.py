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
_MOST_MINUTES = 1_440  # the longest that any kind may last
_FIRST_YEAR = 1970
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
        begun = _begun(start) if start else datetime.fromtimestamp(now, UTC)
        found = marks.checked(kind, author, begun, begun + _length(minutes), text, now)
        _there(database)
        marks.add(database, found)
    except (marks.MarkError, Unusable) as error:
        typer.echo(f"model-probe: mark: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(_line(found))


def _begun(start: str) -> datetime:
    try:
        begun = datetime.fromisoformat(start)
    except ValueError:
        begun = datetime.min  # noqa: DTZ901 - it stands for no time
    if begun.year < _FIRST_YEAR:
        allowed = f"a time such as 2026-01-31T12:00:00Z, not {start[:40]!r}"
        raise marks.MarkError("start", allowed)
    return begun


def _length(minutes: float) -> timedelta:
    if not 0 < minutes <= _MOST_MINUTES:  # nor NaN
        raise marks.MarkError(
            "minutes", f"more than 0 and at most {_MOST_MINUTES}, not {minutes:g}"
        )
    return timedelta(minutes=minutes)


@mark.command("list")
def list_marks(
    database: Database,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the newest.")] = 20,
) -> None:
    """Show the latest marks, the newest first."""
    try:
        _there(database)
        found = marks.listed(database, limit)
    except (marks.MarkError, Unusable) as error:
        typer.echo(f"model-probe: mark: {error}", err=True)
        raise typer.Exit(2) from error
    if not found:
        typer.echo("no marks")
    for each in found:
        typer.echo(_line(each))


def _there(database: Path) -> None:
    """A mark in a file that no sidecar reads would be lost without a word."""
    if not database.exists():
        allowed = f"a file that a sidecar made (its alarms.database); there is no {database}"
        raise marks.MarkError("database", allowed)


def _line(found: Mark) -> str:
    # The file can hold what another program wrote: nothing in it may steer the terminal.
    text = f": {_shown(found.text)}" if found.text else ""
    until = f"{_moment(found.start)} to {_moment(found.end)}"
    return f"{found.kind.value} by {_shown(found.author)}, {until}{text}"


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _moment(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "no time"
