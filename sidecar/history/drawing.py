"""Plots of a replay as data for inline SVGs; the template draws them.

A line is the mean of each slot of time, the area around it reaches from the least to the most, and
both are broken where nothing was measured. Alarms are shaded over the whole height.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sidecar.export.page.plot import HEIGHT, WIDTH, ceiling
from sidecar.history.times import written
from sidecar.history.tracks import Cell, Track
from sidecar.units import tick

_DAY = 86_400.0
_STEPS = (60.0, 300.0, 900.0, 1_800.0, 3_600.0, 10_800.0, 21_600.0, _DAY, 2 * _DAY, 7 * _DAY)
_TICKS = 8  # at most
_BREAK_SLOTS = 2.5
_NARROWEST = 0.6  # of the 300 units of a plot's width: an alarm of a minute in a year is seen too


@dataclass(frozen=True, slots=True)
class Moment:
    """A round moment on the axis of time: ``share`` is how far to the right, of 100."""

    share: float
    word: str


@dataclass(frozen=True, slots=True)
class Span:
    """The time that all plots show."""

    first: float
    last: float
    ticks: tuple[Moment, ...]

    def x(self, at: float) -> float:
        """Where a moment lies, within the plot."""
        return WIDTH * min(1.0, max(0.0, (at - self.first) / (self.last - self.first)))


@dataclass(frozen=True, slots=True)
class Line:
    """One drawn track: ``area`` is empty for lines without one."""

    name: str
    style: str
    path: str
    area: str
    figures: str


@dataclass(frozen=True, slots=True)
class Shade:
    """When an alarm was on; ``style`` is its severity, ``title`` what it says."""

    x: float
    width: float
    style: str
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot ready to be drawn in a view box of ``WIDTH`` by ``HEIGHT``."""

    key: str
    title: str
    detail: str
    lines: tuple[Line, ...]
    shades: tuple[Shade, ...]
    ticks: tuple[str, str, str]


def span(first: float, last: float) -> Span:
    """A span with a few ticks at round moments of UTC: days, hours, or minutes."""
    length = max(60.0, last - first)
    step = next((step for step in _STEPS if length / step <= _TICKS), _STEPS[-1])
    if length / step > _TICKS:
        step = _STEPS[-1] * math.ceil(length / _STEPS[-1] / _TICKS)
    found = []
    at = math.ceil(first / step) * step
    while at <= first + length:
        word = written(at)
        found.append(Moment(100 * (at - first) / length, word[5:10] if step >= _DAY else word[11:]))
        at += step
    return Span(first, first + length, tuple(found))


def shade(within: Span, fired: float, until: float, style: str, title: str) -> Shade:
    """The stretch of one alarm, wide enough to be seen."""
    left = min(within.x(fired), WIDTH - _NARROWEST)
    return Shade(left, max(_NARROWEST, within.x(until) - left), style, title)


def plot(
    key: str,
    title: str,
    detail: str,
    tracks: Sequence[tuple[str, str, Track]],
    within: Span,
    write: Callable[[float | None], str],
    shades: Sequence[Shade] = (),
) -> Plot | None:
    """Draws tracks, (name, style, values) each, on an axis from 0; None when all are empty."""
    cells = [(name, style, track, track.cells()) for name, style, track in tracks]
    highest = max((cell.most for *_, found in cells for cell in found), default=None)
    if highest is None:
        return None
    top = ceiling(highest)
    lines = tuple(
        _line(name, style, track.seconds, found, within, top, write)
        for name, style, track, found in cells
        if found
    )
    labels = (tick(write(top)), tick(write(top / 2)), "0")
    return Plot(key, title, detail, lines, tuple(shades), labels)


def _line(
    name: str,
    style: str,
    seconds: float,
    cells: list[Cell],
    within: Span,
    top: float,
    write: Callable[[float | None], str],
) -> Line:
    runs = _runs(cells, seconds)
    mean = sum(cell.mean for cell in cells) / len(cells)
    least, most = min(cell.least for cell in cells), max(cell.most for cell in cells)
    return Line(
        name=name,
        style=style,
        path="".join(_path(run, within, top) for run in runs),
        area="".join(_area(run, within, top) for run in runs),
        figures=f"mean {write(mean)}, {write(least)} to {write(most)}",
    )


def _runs(cells: list[Cell], seconds: float) -> list[list[Cell]]:
    """The cells, cut where slots are missing."""
    runs: list[list[Cell]] = []
    before: float | None = None
    for cell in cells:
        if before is None or cell.at - before > _BREAK_SLOTS * seconds:
            runs.append([])
        runs[-1].append(cell)
        before = cell.at
    return runs


def _y(value: float, top: float) -> float:
    return HEIGHT * (1 - min(max(value / top, 0.0), 1.0))


def _path(run: list[Cell], within: Span, top: float) -> str:
    places = [f"{within.x(cell.at):.2f} {_y(cell.mean, top):.1f}" for cell in run]
    return f"M{places[0]}h.7" if len(places) == 1 else "M" + "L".join(places)


def _area(run: list[Cell], within: Span, top: float) -> str:
    """Along the most and back along the least; empty where they are one."""
    if len(run) < 2 or all(cell.least == cell.most for cell in run):
        return ""
    there = [f"{within.x(cell.at):.2f} {_y(cell.most, top):.1f}" for cell in run]
    back = [f"{within.x(cell.at):.2f} {_y(cell.least, top):.1f}" for cell in reversed(run)]
    return "M" + "L".join(there + back) + "Z"
