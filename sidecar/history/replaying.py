"""The replay as a command: plays history and writes the reports that were asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sidecar.config import Settings
from sidecar.export.api import encode
from sidecar.history import page
from sidecar.history.player import Player
from sidecar.history.records import Account
from sidecar.history.report import document, report
from sidecar.history.sources import Options, Source, stream
from sidecar.history.terminal import show

_STDOUT = Path("-")


def run(
    sources: Sequence[Source],
    options: Options,
    settings: Settings,
    html: Path | None,
    as_json: Path | None,
) -> bool:
    """Whether anything would have alarmed. Raises NoData, and OSError of a file that cannot be
    written.
    """
    account = Account()
    player = Player(settings, account)
    player.play(stream(sources, options, account))
    found = report(player, ", ".join(one.name for one in sources))
    if html is not None:
        html.write_bytes(page.render(found))
    if as_json not in (None, _STDOUT):
        as_json.write_bytes(encode(document(found)) + b"\n")
    console = Console(stderr=as_json == _STDOUT, highlight=False)
    show(console, found)
    if html is not None:
        console.print(Text(f"the page is in {html}", style="dim"))
    if as_json == _STDOUT:
        sys.stdout.buffer.write(encode(document(found)) + b"\n")
    return bool(found.episodes)
