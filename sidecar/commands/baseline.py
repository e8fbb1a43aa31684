"""``model-probe baseline show, export, import, reset, mark-deploy``: what is usual, in the file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidecar.commands import mark
from sidecar.commands.asked import (
    NAMED,
    Config,
    Database,
    Patterns,
    chosen_by,
    name_of,
    refusing,
    require,
    settled,
    shown,
    whole,
)
from sidecar.units import count

if TYPE_CHECKING:
    from sidecar.analyst.carrying import Carried


def register(group: typer.Typer) -> None:
    """Adds the commands to ``model-probe baseline``."""
    group.command()(show)
    group.command()(export)
    group.command("import")(take_in)
    group.command()(reset)
    group.command()(mark_deploy)


def show(
    database: Database = None,
    config: Config = None,
    series: Patterns = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Show what is known of each latency: the hour before now, on each of the days before."""
    from sidecar.analyst import showing
    from sidecar.commands import showing as screen
    from sidecar.config.drift import time_zone

    with refusing():
        path, drift = settled(database, config)
        zone = time_zone(drift.zone)
        found = showing.look(path, zone, drift.days, time.time(), chosen_by(series))
        require(bool(found), path, series)
    text = screen.data(found, drift.zone) if as_json else screen.table(found, drift.zone)
    sys.stdout.write(text)


def export(
    file: Annotated[Path, typer.Argument(help="The file to write; -: print it.")],
    database: Database = None,
    config: Config = None,
    series: Patterns = None,
) -> None:
    """Write the stored hours as lines of JSON, to commit or to move."""
    from sidecar.analyst import carrying

    with refusing():
        path, drift = settled(database, config)
        now, chosen = time.time(), chosen_by(series)
        if file == Path("-"):
            done = carrying.export(path, sys.stdout, drift.zone, now, chosen)
        else:
            with whole(file) as out:
                done = carrying.export(path, out, drift.zone, now, chosen)
    lost = f"; {count(done.damaged, 'damaged record')} left out" if done.damaged else ""
    if done.outdated:
        lost += f"; {count(done.outdated, 'record')} of an earlier version left out"
    typer.echo(f"{_kept(done)} written{lost}", err=True)


def take_in(
    file: Annotated[Path, typer.Argument(help="A file of `baseline export`.")],
    database: Database = None,
    config: Config = None,
) -> None:
    """Add the hours of an export, all or none; what the file of alarms has already stays."""
    from sidecar.analyst import carrying
    from sidecar.analyst.lines import Invalid

    with refusing():
        path, drift = settled(database, config)
        with file.open(encoding="utf-8", errors="replace") as source:
            try:
                done = carrying.take_in(path, source, drift.days, time.time())
            except Invalid as error:
                raise Invalid(f"{file}: {error}; nothing was written") from error
    known = f"; {count(done.known, 'record')} known already" if done.known else ""
    old = f"; {count(done.old, 'record')} older than is kept, or ahead" if done.old else ""
    typer.echo(f"{_kept(done)} added{known}{old}")


def reset(
    database: Database = None,
    config: Config = None,
    series: Patterns = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget what is usual, of all or of some series; a copy is written first."""
    from sidecar.analyst import carrying

    with refusing():
        path, drift = settled(database, config)
        chosen = chosen_by(series)
        named = carrying.names(path)
        found = sorted(name_of(one) for one in named if chosen(one))
        require(bool(found), path, series, named)
        listed = ", ".join(map(shown, found[:NAMED])) + (" …" if len(found) > NAMED else "")
        many = f"{len(found)} series" if len(found) > 1 else "1 series"
        if not yes:
            typer.confirm(f"Forget what is usual of {many} ({listed})?", abort=True)
        done, aside = carrying.reset(path, drift.zone, time.time(), chosen)
    typer.echo(f"{_kept(done)} forgotten; they are kept in {aside}: `baseline import` undoes it")


def mark_deploy(
    author: Annotated[str, typer.Option(help="Who declares it.")],
    database: Database = None,
    config: Config = None,
    minutes: Annotated[float, typer.Option(help="How long it lasts from its start.")] = 15.0,
    start: Annotated[
        str, typer.Option(help="When it began, with its zone; now if not given.")
    ] = "",
    text: Annotated[str, typer.Option(help="One line for people.")] = "",
) -> None:
    """Declare a deploy, as `model-probe mark add deploy` does: its minutes are not usual."""
    with refusing():
        path, _ = settled(database, config)
    mark.add("deploy", author, path, minutes, start, text)


def _kept(done: Carried) -> str:
    return f"{count(done.records, 'record')} of {len(done.series)} series"
