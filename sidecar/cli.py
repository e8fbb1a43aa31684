"""The ``model-probe`` command. Each sub-command imports what it needs when it runs."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sidecar import __version__
from sidecar.commands import baseline, diff, history
from sidecar.commands.mark import mark
from sidecar.config import ConfigError, Settings, load

cli = typer.Typer(
    name="model-probe",
    help="Observability sidecar for LLM serving: TTFT and inter-token latency from the wire.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
cli.add_typer(mark, name="mark")
history.register(cli)
baseline.register(history.baseline)
diff.register(cli)
ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="YAML file; the environment wins over it.")
]
Listen = Annotated[
    str | None, typer.Option(help="ADDRESS:PORT of page and metrics; 127.0.0.1:9838 if not given.")
]


# Other distributions add their commands under this name, as model-probe-chaos does.
_GROUP = "model_probe.commands"
for _found in sorted(entry_points(group=_GROUP), key=lambda point: point.name):
    try:
        cli.add_typer(_found.load(), name=_found.name)
    except (ImportError, AttributeError) as _error:  # what is broken there is not broken here
        typer.echo(f"model-probe: no command {_found.name}: {_error}; reinstall it", err=True)


def _refuse(error: ConfigError) -> NoReturn:
    """A bad setting is one line and exit status 2."""
    typer.echo(f"model-probe: {error}", err=True)
    raise typer.Exit(2)


@cli.command()
def run(config: ConfigFile = None) -> None:
    """Run the sidecar with a configuration file."""
    from sidecar.app import serve
    from sidecar.attach import drop_root, require_something

    def again() -> Settings:
        settings = load(config)
        require_something(settings)
        return settings

    try:
        serve(again, drop_root(again()))
    except ConfigError as error:
        _refuse(error)


@cli.command()
def attach(
    port: Annotated[
        list[int] | None, typer.Option(help="Port of the service as clients see it; repeatable.")
    ] = None,
    upstream_port: Annotated[
        list[int] | None,
        typer.Option(help="Port of the engine behind a gateway, for the second leg; repeatable."),
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help="URL of an engine's metrics; repeatable.")
    ] = None,
    gateway: Annotated[
        list[str] | None, typer.Option(help="URL of a gateway's metrics; repeatable.")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two reads of metrics.")] = 5.0,
    listen: Listen = None,
    probe: Annotated[
        list[str] | None, typer.Option(help="Kernel probe to load, wire if not given; repeatable.")
    ] = None,
    loader: Annotated[str, typer.Option(help="auto, prebuilt or bcc.")] = "auto",
) -> None:
    """Watch a service that already runs on this machine."""
    from sidecar import attach as attaching
    from sidecar.app import serve

    try:
        settings = attaching.settings_for(
            port or [],
            upstream_port or [],
            engine or [],
            listen,
            interval,
            tuple(gateway or ()),
            tuple(probe or ()),
        )
        attaching.require_something(settings)
        settings, drop = attaching.with_probed(settings, loader)
        serve(lambda: settings, drop)
    except ConfigError as error:
        _refuse(error)


@cli.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def probed(context: typer.Context) -> None:
    """Run the privileged process alone; its own --help says more."""
    # A fresh interpreter: the privileged process stays small and imports no more than it needs.
    command = [sys.executable, "-P", "-m", "sidecar.probed", *context.args]
    os.execv(sys.executable, command)  # noqa: S606 - no shell is wanted


@cli.command()
def doctor(
    config: ConfigFile = None,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what works here, what each missing thing costs, and how to get it."""
    from sidecar import doctor as doctoring

    try:
        settings = load(config)
    except ConfigError as error:
        _refuse(error)
    raise typer.Exit(doctoring.report(doctoring.examine(settings), json_output))


@cli.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Entry point of the command."""
    cli()
