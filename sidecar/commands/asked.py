"""What the commands on baselines share: which file, which series, and how they refuse."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from sidecar.alarms.states import Unusable
from sidecar.config import ConfigError, DriftSettings, load

if TYPE_CHECKING:
    from sidecar.analyst.bucket_rows import Chosen
    from sidecar.evaluation import Series

NAMED = 10  # series of which a refusal tells the names
Database = Annotated[
    Path | None, typer.Option(help="The sidecar's file of alarms; that of --config if not given.")
]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="The sidecar's YAML file.")]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--series", help="SIGNAL/LEG/SERVER, * stands for anything; repeatable."),
]


@contextmanager
def refusing() -> Iterator[None]:
    """Bad settings are one line and exit status 2; a file that does not serve one line and 1."""
    from sidecar.analyst.door import Nothing
    from sidecar.analyst.lines import Invalid

    try:
        yield
    except ConfigError as error:
        typer.echo(f"model-probe: baseline: {error}", err=True)
        raise typer.Exit(2) from error
    except (Unusable, Nothing, Invalid) as error:
        typer.echo(f"model-probe: baseline: {error}", err=True)
        raise typer.Exit(1) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        typer.echo(f"model-probe: baseline: {place}{error.strerror or error}", err=True)
        raise typer.Exit(1) from error


def settled(database: Path | None, config: Path | None) -> tuple[Path, DriftSettings]:
    """The file, and the settings that go with it; ConfigError where none is named."""
    settings = load(config)
    path = database or settings.alarms.database
    if path == Path():
        raise ConfigError("--database is needed, or alarms.database in --config")
    return path, settings.drift


def name_of(series: Series) -> str:
    """A series as it is written on the command line."""
    return f"{series.signal}/{series.leg}/{series.server}"


def shown(series: Series | str) -> str:
    """The same without what could drive a terminal."""
    from sidecar.history.terminal import plain

    return plain(series if isinstance(series, str) else name_of(series))


def chosen_by(patterns: Sequence[str] | None) -> Chosen:
    """All series if no pattern is given."""
    wanted = tuple(patterns or ("*",))
    return lambda series: any(fnmatchcase(name_of(series), pattern) for pattern in wanted)


def require(
    found: bool, path: Path, patterns: Sequence[str] | None, named: Iterable[Series] = ()
) -> None:
    """Raises Nothing where no series is meant, and says which there are."""
    from sidecar.analyst import carrying
    from sidecar.analyst.door import Nothing

    if found:
        return
    names = sorted(shown(one) for one in named or carrying.names(path))
    if not names:
        raise Nothing(
            f"{path}: no latencies have been recorded yet; a sidecar with drift.enabled does"
        )
    given = ", ".join(map(shown, patterns or ()))
    there = ", ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")
    raise Nothing(f"--series {given}: there is none like that in {path}; there are {there}")


@contextmanager
def whole(file: Path) -> Iterator[IO[str]]:
    """A file to write that takes the place of ``file`` once all is in it."""
    part = file.with_name(file.name + ".part")
    try:
        with part.open("w", encoding="ascii") as out:
            yield out
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)
