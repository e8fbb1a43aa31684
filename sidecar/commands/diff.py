"""``model-probe diff``: two periods, versions or replicas beside each other, with a verdict."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidecar.alarms.states import Unusable
from sidecar.config import ConfigError, load

if TYPE_CHECKING:
    from sidecar.diff.asked import Asked
    from sidecar.diff.findings import Found
    from sidecar.diff.running import Options
    from sidecar.diff.sides import Side
    from sidecar.history.access import Access

_LONGEST = 1_000  # characters of an error
# A paragraph is one line: typer keeps line breaks.
_HELP = "\n\n".join(
    (
        "Compare two periods, versions or replicas: is B slower than A?",
        "A and B are WHEN or WHEN@WHERE. WHEN is one of",
        "START/END: times with their zone (2026-11-29T10:00Z), `now`, or `-2h` for two hours ago",
        "deploy:last: since the last mark of a deploy; alone, against as long before it",
        "FILE: what --save FILE WHEN@WHERE wrote",
        "WHERE is a server as on the wire (10.0.0.1:8000), `downstream` or `upstream`. With "
        "--during PERIOD, A and B are two WHEREs of that period.",
        "Exit status: 0 B is not slower, 1 it is, 2 usage or no data, 3 not known.",
    )
)


def register(cli: typer.Typer) -> None:
    """Adds the command. Without short options, so that ``-2h/now`` is an operand."""
    cli.command(help=_HELP, context_settings={"ignore_unknown_options": True})(diff)


def diff(
    operands: Annotated[list[str], typer.Argument(metavar="A B", help="What is compared.")],
    during: Annotated[str, typer.Option(help="The period of both; A and B are servers.")] = "",
    save: Annotated[
        Path | None, typer.Option(help="Write the one operand's records to a file, to compare.")
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(help="The file of `alarms.database`.", envvar="MODELPROBE_ALARMS__DATABASE"),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="The sidecar's YAML file.")] = None,
    guard: Annotated[
        float, typer.Option(min=1, max=100, help="Per cent of A that matter; less is the same.")
    ] = 10.0,
    prometheus: Annotated[str, typer.Option(help="URL to ask for the reuse of the KV cache.")] = "",
    token_file: Annotated[
        Path | None, typer.Option(help="File with Prometheus' bearer token.")
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="PEM certificates to trust Prometheus by.")
    ] = None,
    allow: Annotated[str, typer.Option(help="`unknown`: exit with 0 where it is not known.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Compare two periods, versions or replicas."""
    from sidecar.diff import running
    from sidecar.history.access import Access

    with _refusing():
        if allow not in ("", "unknown"):
            raise ConfigError(f"--allow {allow!r}: only unknown can be allowed")
        options = running.Options(time.time(), _database(database, config))
        access = Access(prometheus, token_file, ca_file) if prometheus else None
        one, other = running.asked(operands, during, options.now)
        if save is None:
            a, b, found = _compared(one, other, options, guard / 100, access)
            status = running.status(found.verdict, allow == "unknown")
            _tell(a, b, found, status, as_json)
        elif other is None:
            kept, size = running.save(save, one, options)
            minutes = 5 * sum(piece.slots for piece in kept.pieces)
            typer.echo(f"{_plain(str(save))}: {minutes} min of {_plain(one.text)}, {size:,} bytes")
            status = 0
        else:
            raise ConfigError("--save keeps one operand, not a comparison of two")
    raise typer.Exit(status)


def _compared(
    one: Asked, other: Asked | None, options: Options, guard: float, access: Access | None
) -> tuple[Side, Side, Found]:
    from sidecar.diff import running
    from sidecar.history.prometheus_api import Api

    a, b = running.sides(one, other, options)
    api = Api(access) if access is not None else None
    return a, b, running.found(a, b, (one.where, (other or one).where), guard, api)


def _tell(a: Side, b: Side, found: Found, status: int, as_json: bool) -> None:
    from sidecar.diff import report, table

    if as_json:
        typer.echo(json.dumps(report.document(a, b, found, status)))
        return
    for line in table.lines(a, b, found):
        typer.echo(line)


def _database(database: Path | None, config: Path | None) -> Path | None:
    if database is not None or config is None:
        return database
    path = load(config).alarms.database
    return None if path == Path() else path


def _plain(text: str) -> str:
    """On one line, and nothing in it steers the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)[:_LONGEST]


@contextmanager
def _refusing() -> Iterator[None]:
    """What cannot be compared is one line and exit status 2."""
    from sidecar.analyst.door import Nothing
    from sidecar.diff.running import NoRequests

    try:
        yield
    except Unusable as error:
        why = f"{error.reason} ({error.state.value})"
    except (ConfigError, NoRequests, Nothing) as error:
        why = str(error)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        why = f"{place}{error.strerror or error}"
    else:
        return
    typer.echo(f"model-probe: diff: {_plain(why)}", err=True)
    raise typer.Exit(2)
