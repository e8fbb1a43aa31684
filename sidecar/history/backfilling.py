"""The backfill as a command: reads history, fills the file, and says what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sidecar.config import ConfigError, Settings
from sidecar.history.backfill import FATES, WRITTEN, Filled, Refused, fill, known
from sidecar.history.player import Player
from sidecar.history.prometheus import Prometheus
from sidecar.history.records import Account
from sidecar.history.sources import Options, Source, stream
from sidecar.history.terminal import plain, tell
from sidecar.units import count, number


def run(
    sources: Sequence[Source],
    options: Options,
    settings: Settings,
    path: Path,
    force: bool,
    dry: bool,
) -> int:
    """0 when the file holds what history knows, or something better; 1 when it could not be filled,
    which is said. ConfigError where history is of several sidecars; NoData.
    """
    for one in sources:
        _refuse_several(one, options)
    console, account = Console(highlight=False), Account()
    player = Player(settings, account)
    player.play(stream(sources, options, account))
    tell(console, account)
    try:
        filled = fill(path, known(player), force, dry)
    except Refused as error:
        console.print(Text(f"Nothing was written: {error}", style="bold red"))
        return 1
    _show(console, filled, path, dry)
    return 0


def _refuse_several(source: Source, options: Options) -> None:
    """A file is of one sidecar."""
    if not isinstance(source, Prometheus) or options.instance:
        return
    found = source.instances()
    if len(found) > 1:
        names = ", ".join(plain(name) for name in found[:10])
        raise ConfigError(
            f"{source.name} scrapes {len(found)} sidecars ({names}); --instance says whose file "
            "this is"
        )


def _show(console: Console, filled: Sequence[Filled], path: Path, dry: bool) -> None:
    if filled:
        console.print(_table(filled))
    fates = Counter(one.fate in WRITTEN for one in filled)
    what = "would be written" if dry else "written"
    console.print(Text(f"{path}: {fates[True]} of {count(len(filled), 'baseline')} {what}"))


def _table(filled: Sequence[Filled]) -> Table:
    table = Table()
    for name in ("key", "minutes", "mean", "σ", ""):
        table.add_column(name, justify="right" if name in ("minutes", "mean", "σ") else "left")
    for one in filled:
        table.add_row(
            Text(plain(one.key)),
            Text(f"{one.minutes:,}"),
            Text(number(one.mean)),
            Text(number(one.sigma)),
            Text(FATES[one.fate], style="green" if one.fate in WRITTEN else "dim"),
        )
    return table
