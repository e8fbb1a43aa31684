"""Line plots of the last minutes as data for an inline SVG; the template draws them.

Lines are broken where nothing was measured: a gap is information, a bridge over it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.units import tick

WIDTH, HEIGHT = 300, 100
_BREAK_SECONDS = 5.0  # snapshots come every second; a longer silence is a gap
_STEPS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)  # halves of these are round too
Points = tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The time that plots show: ``ticks`` are six, evenly from the left, empty where the one before
    needs the room.
    """

    seconds: float
    words: str
    ticks: tuple[str, ...]


YOUNG = Span(100.0, "last 100 seconds", ("−100 s", "", "−60", "−40", "−20", "now"))
GROWN = Span(300.0, "last five minutes", ("−5 min", "", "−3", "−2", "−1", "now"))


def span_of(age_seconds: float) -> Span:
    """A shorter time for a young sidecar, whose lines would else be a strip at the right."""
    return YOUNG if age_seconds <= YOUNG.seconds else GROWN


@dataclass(frozen=True, slots=True)
class Series:
    """One line: ``style`` is a CSS class, ``points`` Unix seconds and values, oldest first."""

    name: str
    style: str
    points: Points

    def measured(self, since: float) -> list[float]:
        """The values since a time, without the gaps."""
        return [value for at, value in self.points if value is not None and at >= since]


@dataclass(frozen=True, slots=True)
class Line:
    """A drawn series and its figures, written out for those who do not see the line."""

    name: str
    style: str
    path: str
    latest: str
    lowest: str
    highest: str
    measured: int


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot ready to be drawn in a view box of ``WIDTH`` by ``HEIGHT``; ``ticks`` from the top.
    ``empty`` says why there is no line at all.
    """

    key: str
    title: str
    lines: tuple[Line, ...]
    ticks: tuple[str, str, str]
    empty: str

    @property
    def description(self) -> str:
        """The latest values in words."""
        if self.empty:
            return self.empty
        return ", ".join(f"{line.name} {line.latest}" for line in self.lines) + "."


def ceiling(value: float) -> float:
    """The end of an axis from 0 that holds a value: 1, 2, 4, 6, 8 or 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 < value:
        power *= 10
    return next((step * power for step in _STEPS if value <= step * power), 10 * power)


def top_of(series: tuple[Series, ...], now: float, span: Span = GROWN) -> float:
    """The largest value in view, 0.0 if there is none; to give plots a common axis."""
    return max((v for line in series for v in line.measured(now - span.seconds)), default=0.0)


def plot(
    key: str,
    title: str,
    series: tuple[Series, ...],
    now: float,
    write: Callable[[float | None], str],
    *,
    top: float = 0.0,
    empty: str = "",
    span: Span = GROWN,
) -> Plot:
    """Draws series on an axis from 0 to at least ``top``. ``write`` turns values into words and
    ``empty`` is shown when nothing was measured in view.
    """
    if not any(line.measured(now - span.seconds) for line in series):
        return Plot(key, title, (), ("", "", ""), empty or "Nothing measured.")
    end = ceiling(max(top, top_of(series, now, span)))
    lines = tuple(_line(one, now, end, write, span) for one in series)
    return Plot(key, title, lines, (tick(write(end)), tick(write(end / 2)), "0"), "")


def _line(
    series: Series, now: float, end: float, write: Callable[[float | None], str], span: Span
) -> Line:
    values = series.measured(now - span.seconds)
    latest = series.points[-1][1] if series.points else None
    return Line(
        name=series.name,
        style=series.style,
        path=path(series.points, now, end, span),
        latest=write(latest),
        lowest=write(min(values, default=None)),
        highest=write(max(values, default=None)),
        measured=len(values),
    )


def path(points: Points, now: float, end: float, span: Span = GROWN) -> str:
    """An SVG path of the points in view, broken at every gap. A lone point becomes a stroke just
    long enough to be seen as a dot (one of no length is not drawn when the line is dashed).
    """
    drawn = []
    for run in _runs(points, now - span.seconds, now):
        places = [
            (
                WIDTH * (1 - (now - at) / span.seconds),
                HEIGHT * (1 - min(max(value / end, 0.0), 1.0)),
            )
            for at, value in run
        ]
        if len(places) == 1:
            x, y = places[0]
            drawn.append(f"M{x - 0.7:.1f} {y:.1f}h1.4")
        else:
            drawn.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places))
    return "".join(drawn)


def _runs(points: Points, since: float, now: float) -> list[list[tuple[float, float]]]:
    """The points in view, cut where nothing was measured."""
    runs: list[list[tuple[float, float]]] = []
    before: float | None = None  # time of the last point of the run under way
    for at, value in points:
        if value is None:
            before = None
        elif since <= at <= now:
            if before is None or at - before > _BREAK_SECONDS:
                runs.append([])
            runs[-1].append((at, value))
            before = at
    return runs
