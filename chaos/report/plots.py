"""Rates with their intervals and curves of recovery, as data for inline SVGs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.report import sentences, words
from chaos.report.summary import Figures, Times
from chaos.statistics import Curve, Share
from sidecar.export.page.plot import HEIGHT, WIDTH, ceiling
from sidecar.units import duration, tick

_TICKS = 4  # parts of an axis of time


@dataclass(frozen=True, slots=True)
class Bar:
    """A rate on an axis from 0 to 1, in units of ``WIDTH``; ``rate`` None: there is none."""

    rate: float | None
    wilson: tuple[float, float]
    clopper: tuple[float, float]
    text: str
    bounds: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """A curve of the share that has recovered, in a view box of ``WIDTH`` by ``HEIGHT``.

    ``ticks`` are words on the axis of time, evenly from 0; ``cuts`` where runs were censored.
    """

    title: str
    path: str
    area: str
    cuts: str
    ticks: tuple[str, ...]
    text: str


def bar(found: Share) -> Bar:
    """Where to draw a rate."""
    return Bar(
        rate=None if found.rate is None else WIDTH * found.rate,
        wilson=_ends(found.wilson.lower, found.wilson.upper),
        clopper=_ends(found.clopper.lower, found.clopper.upper),
        text=f"{words.ratio(found.rate)}, {words.of(found)}",
        bounds=f"{words.bounds(found.wilson)} Wilson · "
        f"{words.bounds(found.clopper)} Clopper–Pearson",
    )


def _ends(lower: float, upper: float | None) -> tuple[float, float]:
    return WIDTH * lower, WIDTH * (1.0 if upper is None else upper)


def recovery(one: Figures) -> Recovery | None:
    """The curve of one fault; None when it has no run that counts."""
    if one.recover is None or not (one.recover.ended or one.recover.censored):
        return None
    found = one.recover
    curve = found.curve
    last = max((*(step.at for step in curve.steps), *curve.censored))
    end = ceiling(last)
    return Recovery(
        title=sentences.title(one),
        path=_path(curve, end, last),
        area=_area(curve, end, last),
        cuts="".join(_cuts(curve, end)),
        ticks=tuple(tick(duration(end * at / _TICKS)) if at else "0" for at in range(_TICKS + 1)),
        text=_text(found),
    )


def _text(found: Times) -> str:
    text = f"median {words.seconds(found.median)}, P95 {words.seconds(found.p95)}"
    return text + (f"; {found.censored} censored" if found.censored else "")


def _y(share: float) -> str:
    return f"{HEIGHT * (1 - share):.2f}"


def _stairs(points: list[tuple[float, float]], end: float, last: float) -> str:
    """From where the pen is: right to each time, then up or down to its share; then to the last."""
    drawn = "".join(f"H{WIDTH * at / end:.2f}V{_y(share)}" for at, share in points)
    return f"{drawn}H{WIDTH * last / end:.2f}"


def _path(curve: Curve, end: float, last: float) -> str:
    return f"M0 {HEIGHT}" + _stairs([(step.at, step.over) for step in curve.steps], end, last)


def _area(curve: Curve, end: float, last: float) -> str:
    """Along the upper bounds and back along the lower ones."""
    if not curve.steps:
        return ""
    drawn = f"M0 {HEIGHT}" + _stairs([(step.at, step.upper) for step in curve.steps], end, last)
    for step in reversed(curve.steps):  # back: down at the right end, then left to each step
        drawn += f"V{_y(step.lower)}H{WIDTH * step.at / end:.2f}"
    return drawn + f"V{HEIGHT}Z"


def _cuts(curve: Curve, end: float) -> Iterator[str]:
    for at in dict.fromkeys(round(at, 2) for at in curve.censored):
        over = max((step.over for step in curve.steps if step.at <= at + 0.01), default=0.0)
        x, y = min(WIDTH * at / end, WIDTH - 0.5), max(0.0, HEIGHT * (1 - over) - 5)
        yield f"M{x:.2f} {y:.2f}v10"
