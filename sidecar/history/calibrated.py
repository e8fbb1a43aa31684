"""A calibrated table for people, and as the part of the configuration that keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import yaml
from rich.table import Table
from rich.text import Text

from sidecar import __version__
from sidecar.history.calibration import MOST_ROWS
from sidecar.history.learned import Row
from sidecar.history.terminal import plain
from sidecar.history.times import written

_COLUMNS = ("model", "GPU", "at once", "mean", "σ", "lower bound", "minutes")


def table(rows: Sequence[Row]) -> Table:
    """The table with its intervals. Names of models are text, whatever they hold."""
    found = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in _COLUMNS:
        words = name in ("model", "GPU")
        found.add_column(name, justify="left" if words else "right", no_wrap=not words)
    for row in rows:
        cells = (
            plain(row.model) or "any",
            plain(row.gpu) or "–",
            str(row.concurrency),
            f"{row.mean:.2f} ± {row.mean_off:.2f}",
            f"{row.sigma:.2f} ± {row.sigma_off:.2f}",
            f"{row.lower:.2f}",
            f"{row.minutes:,}",
        )
        found.add_row(*map(Text, cells))
    return found


def config(rows: Sequence[Row], origin: str, first: float, last: float) -> str:
    """``rate: {levels: […]}`` as YAML to commit, each level with what it was made of."""
    lines = [
        f"# Written by model-probe calibrate {__version__} from {plain(origin)},",
        f"# {written(first)} to {written(last)} UTC. Tokens per second of one sequence, by the "
        f"{rows[0].source if rows else 'engine'}.",
        "rate:",
        "  levels:",
    ]
    for row in sorted(rows, key=lambda one: -one.minutes)[:MOST_ROWS]:
        card = f" on {plain(row.gpu)}" if row.gpu else ""
        lines.append(
            f"    # {row.minutes:,} minutes{card}; mean ± {row.mean_off:.2f}, "
            f"sigma ± {row.sigma_off:.2f} (95 %); lower bound {row.lower:.2f}"
        )
        level = {
            "model": row.model,
            "concurrency": row.concurrency,
            "mean": round(row.mean, 3),
            "sigma": round(row.sigma, 3),
        }
        text = yaml.safe_dump(level, default_flow_style=True, width=2**20, sort_keys=False)
        lines.append(f"    - {text.strip()}")
    return "\n".join(lines) + "\n"


def document(rows: Sequence[Row]) -> list[dict[str, object]]:
    """The rows as plain JSON."""
    return [{**asdict(row), "lower": row.lower} for row in rows]
