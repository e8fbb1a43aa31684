"""``model-probe chaos``: run faults, list them, undo what was left behind, report."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from chaos.target import Refused

chaos = typer.Typer(
    name="chaos",
    help="Break a service on purpose, in staging: proven faults that heal themselves, and how "
    "well it recovered.",
    no_args_is_help=True,
)
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        envvar="MODELPROBE_CHAOS_STATE",
        help="Folder of the journal and the results; /var/lib/model-probe-chaos for root.",
    ),
]
TargetName = Annotated[str, typer.Option("--target", help="port:N of the engine, or pid:N.")]
Environment = Annotated[
    str, typer.Option(help="Where this is, as the target says in MODELPROBE_CHAOS_TARGET.")
]


def refuse(error: Exception) -> NoReturn:
    """What was not done is one line and exit status 2."""
    from chaos.printable import printable

    typer.echo(f"model-probe chaos: {printable(str(error))}", err=True)
    raise typer.Exit(2)


@chaos.command()
def run(
    faults: Annotated[list[str], typer.Argument(metavar="FAULT[:METHOD]...")],
    target: TargetName,
    environment: Environment,
    url: Annotated[str, typer.Option(help="The service as its users see it: the gateway.")],
    engine_url: Annotated[
        str, typer.Option(help="The target itself; its recovery then decides, and users' is told.")
    ] = "",
    sidecar: Annotated[str, typer.Option(help="Watched for alarms, as http://HOST:9838.")] = "",
    runs: Annotated[int, typer.Option(min=0, max=10_000, help="Of each fault.")] = 5,
    shams: Annotated[int, typer.Option(min=0, max=10_000, help="Runs without a fault.")] = 0,
    controls: Annotated[int, typer.Option(min=0, max=10_000, help="Of each: aimed past it.")] = 0,
    seed: Annotated[
        int | None, typer.Option(help="Of every choice; drawn and told if none.")
    ] = None,
    max_seconds: Annotated[
        float, typer.Option(min=1, max=3_600, help="Of one run; what is not well then is not.")
    ] = 120.0,
    hold: Annotated[
        float | None, typer.Option(min=0, max=600, help="Seconds a fault lasts; see list.")
    ] = None,
    steady_seconds: Annotated[
        float, typer.Option(min=1, max=3_600, help="To wait for a steady service.")
    ] = 60.0,
    period: Annotated[
        float, typer.Option(min=0.05, max=60, help="Seconds between two requests.")
    ] = 0.25,
    detect_seconds: Annotated[
        float, typer.Option(min=0, max=3_600, help="After the effect, to wait for an alarm.")
    ] = 0.0,
    require: Annotated[
        float, typer.Option(min=0, max=1, help="Exit 1 if a fault's share recovered is less.")
    ] = 0.0,
    model: Annotated[str, typer.Option(help="Its name in requests; asked for if not given.")] = "",
    repair: Annotated[
        str, typer.Option(help="Command that brings back a service that did not recover.")
    ] = "",
    name: Annotated[str, typer.Option(help="Of the campaign; the same takes it up again.")] = "",
    metrics: Annotated[
        str, typer.Option(help="Serve modelprobe_chaos_* meanwhile, as 127.0.0.1:9839.")
    ] = "",
    otlp: Annotated[str, typer.Option(help="Send a span a run to this OTLP/HTTP URL.")] = "",
    state: State = None,
) -> None:
    """Run a campaign: each fault so many times, in an order drawn by the seed.

    Refused unless the target agreed, in its environment, to be broken in this environment, and
    this is not production. Ctrl-C undoes what is injected, and reports. Exit status: 0 completed,
    1 stopped early or less recovered than required, 2 refused, 130 interrupted.
    """
    from chaos import running

    asked = running.Asked(
        faults=tuple(faults),
        target=target,
        environment=environment,
        url=url,
        engine_url=engine_url,
        sidecar=sidecar,
        runs=runs,
        shams=shams,
        controls=controls,
        seed=secrets.randbits(32) if seed is None else seed,
        max_seconds=max_seconds,
        hold=hold,
        steady_seconds=steady_seconds,
        period=period,
        model=model,
        repair=repair,
        name=name,
        metrics=metrics,
        otlp=otlp,
        detect_seconds=detect_seconds,
        require=require,
        state=state,
    )
    try:
        raise typer.Exit(running.play(asked))
    except running.REFUSALS as error:
        refuse(error)


@chaos.command("list")
def list_faults(
    target: Annotated[str, typer.Option(help="Also say what each lacks there.")] = "",
    environment: Environment = "",
) -> None:
    """List the faults: methods, layers, who heals them, and what they need."""
    from chaos import listing

    try:
        listing.show(target, environment)
    except Refused as error:
        refuse(error)


@chaos.command()
def library() -> None:
    """Print the path of the interposer for this machine, to preload or to copy into a pod."""
    from chaos.interposer.library import library as found

    try:
        typer.echo(found())
    except (Refused, OSError) as error:
        refuse(error)


@chaos.command()
def recover(
    state: State = None,
    write_off: Annotated[
        str, typer.Option(metavar="RUN", help="A person's word that nothing is left of a run.")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why, for --write-off.")] = "",
) -> None:
    """Undo whatever an injector left behind. Exit status 1 when something still stands."""
    from chaos import recovering, running

    try:
        raise typer.Exit(recovering.recover(state, write_off, reason))
    except running.REFUSALS as error:
        refuse(error)


@chaos.command()
def report(
    campaign: Annotated[str, typer.Argument(help="Its name, or its file.")],
    state: State = None,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Report a campaign: rates with intervals, times, what was detected, and what was not."""
    from chaos import running
    from chaos.report import reporting

    try:
        reporting.report(campaign, state, json_output, html)
    except running.REFUSALS as error:
        refuse(error)
