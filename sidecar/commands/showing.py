"""What `baseline show` prints: a table for people, or one object of JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sidecar.analyst.showing import Shown, ShownDay
from sidecar.bucketed import Interval
from sidecar.drift.quantiles import Between
from sidecar.history.terminal import plain
from sidecar.units import NOTHING, count, duration, percent

_WIDTH = 120


def table(found: Sequence[Shown], zone: str) -> str:
    """A heading for each series, and a line for each of its days."""
    console = Console(file=io.StringIO(), width=_WIDTH, highlight=False)
    with console.capture() as captured:
        console.print(Text(f"The hour before now on earlier days, {plain(zone)}"))
        for one in found:
            series = one.series
            name = plain(f"{series.signal}/{series.leg}/{series.server}")
            about = f"{count(one.hours, 'hour')}, {one.kept} of {len(one.days)} days"
            console.print(Text(f"\n{name}", style="bold"), Text(about), soft_wrap=True)
            console.print(_table(one))
    return captured.get()


def _table(one: Shown) -> Table:
    drawn = Table(box=None, pad_edge=False)
    for name in ("", "n", "P50", "P99"):
        drawn.add_column(name, justify="right", no_wrap=True)
    drawn.add_column("")
    for day in one.days:
        drawn.add_row(*_cells(day))
    return drawn


def _cells(day: ShownDay) -> tuple[Text, ...]:
    known = "" if day.share == 1.0 else f"{percent(day.share)} of it known"
    why = plain(day.dropped) if day.dropped else known
    n = f"{day.n:,.0f}" if day.share else NOTHING
    style = "dim" if day.dropped else ""
    cells = (day.date, n, _written(day.p50), _written(day.p99), why)
    return tuple(Text(cell, style=style) for cell in cells)


def _written(quantile: Between | Interval | None) -> str:
    if quantile is None:
        return NOTHING
    if isinstance(quantile, Interval):
        if math.isinf(quantile.upper):
            return f"above {duration(quantile.lower)}"
        return f"{duration(quantile.lower)} – {duration(quantile.upper)}"
    value, lower, upper = quantile
    return f"{duration(value)} ({duration(lower)} – {duration(upper)})"


def data(found: Sequence[Shown], zone: str) -> str:
    """The same as JSON."""
    whole = {"zone": zone, "series": [_series(one) for one in found]}
    return json.dumps(whole) + "\n"


def _series(one: Shown) -> dict[str, object]:
    return {
        "signal": one.series.signal,
        "leg": one.series.leg,
        "server": one.series.server,
        "hours": one.hours,
        "kept": one.kept,
        "days": [
            {
                "date": day.date,
                "n": day.n,
                "p50": _bounds(day.p50),
                "p99": _bounds(day.p99),
                "share": day.share,
                "dropped": day.dropped,
            }
            for day in one.days
        ],
    }


def _bounds(quantile: Between | Interval | None) -> dict[str, float | None] | None:
    if quantile is None:
        return None
    if isinstance(quantile, Interval):
        upper = None if math.isinf(quantile.upper) else quantile.upper
        return {"lower": quantile.lower, "upper": upper}
    return dict(zip(("value", "lower", "upper"), quantile, strict=True))
