"""``model-probe calibrate``, ``replay`` and ``baseline backfill``: what history tells."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidecar.config import ConfigError, load
from sidecar.history.asked import Asked
from sidecar.signals import NoData

if TYPE_CHECKING:
    from sidecar.history.sources import Options, Source

From = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        help="prometheus:URL, access-log:FILE, csv:FILE or, for calibrate, live:URL of a page; "
        "repeatable.",
    ),
]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="The sidecar's YAML file.")]

baseline = typer.Typer(help="The baselines that a sidecar keeps in its file.", no_args_is_help=True)


def register(cli: typer.Typer) -> None:
    """Adds the commands to ``model-probe``."""
    cli.command()(calibrate)
    cli.command()(replay)
    cli.add_typer(baseline, name="baseline")


def _about_sources(
    since: Annotated[str, typer.Option(help="7d, 12h, or a time with its zone.")] = "",
    until: Annotated[str, typer.Option(help="The end, likewise; now if not given.")] = "",
    zone: Annotated[str, typer.Option(help="Of times that have none: Europe/Berlin.")] = "",
    column: Annotated[
        list[str] | None, typer.Option(help="MEANING=HEADER in a csv file; repeatable.")
    ] = None,
    model: Annotated[str, typer.Option(help="The model of rates that do not name theirs.")] = "",
    source: Annotated[str, typer.Option(help="Whose rates: engine or wire.")] = "",
    replica: Annotated[str, typer.Option(help="The replica of rates in a csv file.")] = "",
    rename: Annotated[
        list[str] | None, typer.Option(help="OLD=NEW name of a replica; repeatable.")
    ] = None,
    leg: Annotated[str, typer.Option(help="Of requests: downstream, upstream.")] = "downstream",
    every_path: Annotated[bool, typer.Option(help="Count any path of an access log.")] = False,
    instance: Annotated[str, typer.Option(help="The one target of Prometheus that counts.")] = "",
    token_file: Annotated[
        Path | None, typer.Option(help="File with Prometheus' bearer token.")
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="PEM certificates to trust Prometheus by.")
    ] = None,
) -> Asked:
    """The options that every command on history has."""
    return Asked(
        since=since,
        until=until,
        zone=zone,
        columns=column or (),
        model=model,
        source=source,
        replica=replica,
        leg=leg,
        every_path=every_path,
        instance=instance,
        renamed=rename or (),
        token_file=token_file,
        ca_file=ca_file,
    )


def _asking(command: Callable[..., None]) -> Callable[..., None]:
    """A command with these options in the place of its parameter ``asked``."""
    shared = inspect.signature(_about_sources, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters

    @wraps(command)
    def run(**given: object) -> None:
        asked = {name: given.pop(name) for name in shared}
        command(asked=_about_sources(**asked), **given)  # type: ignore[arg-type]  # typer's types

    merged = [*(one for one in own.values() if one.name != "asked"), *shared.values()]
    run.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]  # read by typer
    run.__annotations__ = {one.name: one.annotation for one in merged}
    return run


@contextmanager
def _refusing() -> Iterator[None]:
    """Bad settings are one line and exit status 2; a source that gives nothing one line and 1."""
    try:
        yield
    except ConfigError as error:
        typer.echo(f"model-probe: {error}", err=True)
        raise typer.Exit(2) from error
    except NoData as error:
        typer.echo(f"model-probe: {error.reason}", err=True)
        raise typer.Exit(1) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        typer.echo(f"model-probe: {place}{error.strerror or error}", err=True)
        raise typer.Exit(1) from error


def _opened(specs: list[str], asked: Asked) -> tuple[list[Source], Options]:
    from sidecar.history.asking import options
    from sidecar.history.sources import source

    if not specs:
        raise ConfigError("--from is needed: prometheus:URL, access-log:FILE or csv:FILE")
    chosen = options(asked, time.time())
    return [source(spec, chosen) for spec in specs], chosen


@_asking
def calibrate(
    asked: Asked,
    from_: From = None,
    gpu: Annotated[str, typer.Option(help="Name of the GPU, for the table.")] = "",
    live: Annotated[str, typer.Option("--for", help="How long to watch a page.")] = "65m",
    minutes: Annotated[int, typer.Option(min=60, help="Fewest minutes of a level.")] = 60,
    output: Annotated[Path | None, typer.Option(help="File for the YAML.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of YAML.")] = False,
) -> None:
    """Make the table of token rates, model by GPU by concurrency, as configuration to commit."""
    from sidecar.history import calibrating

    with _refusing():
        sources, options = _opened(from_ or [], replace(asked, live=live))
        text = calibrating.run(sources, options, gpu, asked.source, minutes, as_json)
        if output is None:
            sys.stdout.write(text)
        else:
            output.write_text(text, encoding="utf-8")


@baseline.command()
@_asking
def backfill(
    asked: Asked,
    from_: From = None,
    database: Annotated[Path | None, typer.Option(help="The sidecar's file of alarms.")] = None,
    config: Config = None,
    force: Annotated[bool, typer.Option(help="Overwrite also what is newer or larger.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Say what would be done, and do nothing.")] = False,
) -> None:
    """Fill the memory of a sidecar's detectors from history, so that nobody waits days."""
    from sidecar.history import backfilling

    with _refusing():
        settings = load(config)
        path = database or settings.alarms.database
        if path == Path():
            raise ConfigError("--database is needed, or alarms.database in --config")
        sources, options = _opened(from_ or [], asked)
        raise typer.Exit(backfilling.run(sources, options, settings, path, force, dry_run))


@_asking
def replay(
    asked: Asked,
    files: Annotated[
        list[str] | None, typer.Argument(help="Files; their first line says what they are.")
    ] = None,
    from_: From = None,
    config: Config = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as a page.")] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Write it as JSON; -: print it.")
    ] = None,
    fail_on_alarm: Annotated[bool, typer.Option(help="Exit with 1 if anything alarms.")] = False,
) -> None:
    """Run the detectors over history, faster than time: what would have alarmed, and why."""
    from sidecar.history import replaying

    with _refusing():
        settings = load(config)
        sources, options = _opened([*(files or []), *(from_ or [])], asked)
        alarmed = replaying.run(sources, options, settings, html, as_json)
    raise typer.Exit(int(alarmed and fail_on_alarm))
