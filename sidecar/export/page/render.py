"""Fills the templates. Autoescape is always on and no value is ever marked safe, so that a
hostile label, reason or model name stays text.
"""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sidecar.export.page.plot import HEIGHT, WIDTH
from sidecar.export.page.view import view
from sidecar.snapshot import Snapshot

FOLDER = Path(__file__).parent
REFRESH_SECONDS = 2


class Page:
    """The page and its live part; templates are read once."""

    def __init__(self, version: str, folder: Path = FOLDER) -> None:
        environment = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals.update(width=WIDTH, height=HEIGHT, refresh=REFRESH_SECONDS)
        self._version = version
        self._page = environment.get_template("page.html")
        self._live = environment.get_template("live.html")

    def page(self, snapshot: Snapshot, now: float) -> bytes:
        """The whole document."""
        return _encode(self._page.render(view=view(snapshot, self._version, now)))

    def live(self, snapshot: Snapshot, now: float) -> bytes:
        """The sections that change, each with the id it has in the document."""
        return _encode(self._live.render(view=view(snapshot, self._version, now)))


def _encode(html: str) -> bytes:
    # A lone surrogate in a hostile name must cost one character, not the page.
    return html.encode("utf-8", "replace")
