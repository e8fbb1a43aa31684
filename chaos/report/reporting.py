"""A campaign's file as a report: for the terminal, as JSON, as a page."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.text import Text

from chaos import results
from chaos.places import results_file, state_folder
from chaos.report.document import document
from chaos.report.page import render
from chaos.report.summarising import notes, summarise
from chaos.report.summary import Summary
from chaos.report.terminal import show
from chaos.target import Refused


def summary_of(file: Path) -> Summary:
    """Of all runs in the file; raises ``results.Unusable``."""
    found = results.read(file)
    return summarise(found.runs, notes(found))


def report(campaign: str, state: Path | None, as_json: bool, html: Path | None) -> None:
    """Prints it, and writes the page where one is asked for."""
    named = Path(campaign)
    file = (
        named if named.is_file() else results_file((state or state_folder()).absolute(), campaign)
    )
    if not file.exists():
        known = sorted(one.stem for one in file.parent.glob("*.jsonl"))
        there = f"there are {', '.join(known[:10])}" if known else "none was ever finished there"
        raise Refused(f"no run of a campaign {campaign!r} in {file.parent}: {there}")
    summary = summary_of(file)
    console = Console(highlight=False)
    if as_json:
        console.file.write(document(summary) + "\n")
    else:
        show(console, summary)
    if html is not None:
        _write(html, render(summary))
        if not as_json:
            console.print(Text(f"page      {html}"), soft_wrap=True)


def _write(path: Path, page: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(page)
        part.replace(path)
    except OSError as error:
        raise Refused(f"--html {path}: {error.strerror or error}; name a file elsewhere") from None
