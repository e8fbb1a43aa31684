"""A comparison for a terminal, in 100 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from sidecar.diff.findings import Bounds, FigureFound, Found, QuantileFound, SignalFound, Verdict
from sidecar.diff.sides import Side
from sidecar.history.terminal import plain
from sidecar.history.times import written
from sidecar.loghist import HIGHEST
from sidecar.units import percent

WIDTH = 100
_FAR_SECONDS = 0.98 * HIGHEST
_COLUMNS = (5, 19, 19, 26, 26)
_WORDS = {
    Verdict.NOT_SLOWER: "not slower",
    Verdict.MORE: "more fail",
    Verdict.FEWER: "fewer fail",
    Verdict.UNIT_CHANGED: "not comparable",
}
_PARTLY = frozenset({Verdict.SAME, Verdict.FASTER, Verdict.NOT_SLOWER})
_NOT_MORE = ("failed", Verdict.NOT_SLOWER)
_UNITS = {"ttft": "requests", "itl": "gaps", "duration": "requests"}


def lines(a: Side, b: Side, found: Found) -> Iterator[str]:
    """The report. What came from outside cannot steer a terminal."""
    for name, side in (("A", a), ("B", b)):
        yield from _title(name, side)
    yield ""
    yield _row(("", "A", "B", "B − A", "B − A at the mix of B"))
    for signal in found.signals:
        yield from _signal(signal)
    for figure in found.figures:
        yield from _figure(figure)
    yield from _reuse(found)
    for note in found.notes:
        yield from wrapped(f"note: {plain(note)}")
    yield ""
    yield f"verdict: {word(found.verdict)}"
    yield from wrapped(
        f"Intervals are of 95 %. Slower and faster hold for all {found.tests} differences together "
        "(Bonferroni); same needs every one of them within the guard, each at 95 %."
    )


def word(verdict: Verdict) -> str:
    """A verdict for people."""
    return _WORDS.get(verdict, verdict.value)


def wrapped(text: str, indent: str = "  ") -> Iterator[str]:
    """Lines of the table's width, the first one as far to the right as the text begins."""
    return iter(
        textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
    )


def _title(name: str, side: Side) -> Iterator[str]:
    span = f"{written(side.start)} to {written(side.end)} UTC"
    yield from wrapped(f"{name}  {plain(side.title)}: {span}, {5 * side.slots} min known")
    for note in side.notes:
        yield from wrapped(f"   {plain(note)}", "   ")


def _signal(one: SignalFound) -> Iterator[str]:
    unit = _UNITS[one.signal]
    yield ""
    why = f": {one.why}" if one.why else ""
    yield from wrapped(
        f"{one.signal}  {word(one.verdict)}{_up_to(one)}{plain(why)}  "
        f"({one.n[0]:,} and {one.n[1]:,} {unit})"
    )
    for quantile in one.quantiles:
        yield from _quantile(quantile, unit)
    lacking = [
        f"{percent(share)} of {name}'s are of kinds that {other} lacks, and left out of the last "
        "column"
        for share, name, other in zip(one.unknown, "AB", "BA", strict=True)
        if share >= 0.005
    ]
    for text in lacking:
        yield from wrapped(f"      {text}", "      ")


def _quantile(one: QuantileFound, unit: str) -> Iterator[str]:
    judged = one.judged
    mixed = judged is not None and unit != "gaps"  # which are not kept by kind of request
    corrected = times(judged.difference, signed=True) if judged and mixed else ""
    name = f"P{100 * one.quantile:g}"
    cells = (f"  {name}", times(one.a), times(one.b), times(one.raw, signed=True), corrected)
    yield f"{_row(cells)}"
    if judged is None:
        yield from wrapped(f"      {name} not judged: {one.why}", "      ")
        return
    share = judged.difference.value / judged.then
    text = f"      {word(judged.verdict)}: {share * 100:+.0f} %"
    if judged.more is not None:
        first, second = judged.more
        text += f"; about {first:,} more {unit} in A and {second:,} in B would tell"
    yield text.replace("-", "\N{MINUS SIGN}")


def _up_to(one: SignalFound) -> str:
    """What a good verdict does not cover."""
    judged = [each.quantile for each in one.quantiles if each.judged is not None]
    if not judged or judged[-1] == one.quantiles[-1].quantile or one.verdict not in _PARTLY:
        return ""
    return f" up to P{100 * judged[-1]:g}"


def _figure(one: FigureFound) -> Iterator[str]:
    yield ""
    of = (
        "events/s of a sequence while it decodes" if one.name == "rate" else "failed, or over 600 s"
    )
    why = f": {one.why}" if one.why else ""
    how = f"; interval from {one.how}" if one.how else ""
    verdict = "not more" if (one.name, one.verdict) == _NOT_MORE else word(one.verdict)
    yield from wrapped(f"{one.name}  {verdict}{plain(why)}  ({of}{how})")
    difference = one.judged.difference
    scale, unit = (1.0, "/s") if one.name == "rate" else (100.0, "%")
    cells = (
        "",
        _written(one.a, scale, unit),
        _written(one.b, scale, unit),
        _written(difference, scale, unit, signed=True),
        "",
    )
    yield _row(cells)
    if one.judged.more is not None and one.verdict is Verdict.UNKNOWN:
        first, second = one.judged.more
        what = "gaps" if one.name == "rate" else "requests"
        yield f"      about {first:,} more {what} in A and {second:,} in B would tell"


def _reuse(found: Found) -> Iterator[str]:
    yield ""
    if found.reuse is None:
        yield "KV reuse  not stored; --prometheus URL asks a Prometheus for it"
        return
    yield "KV reuse  (share of the prefix that was found; no verdict rests on it)"
    texts = [
        "unknown" if one.value is None else _written(one.value, 100.0, "%") for one in found.reuse
    ]
    yield _row(("", *texts, "", ""))
    for name, one in zip("AB", found.reuse, strict=True):
        if one.why:
            yield from wrapped(f"      {name}: {plain(one.why)}", "      ")


def times(bounds: Bounds, signed: bool = False) -> str:
    """``350 (343–357) ms``, signed ``+70 (+58 to +82) ms``; above the range ``600+``."""
    size = max(abs(bounds.value), abs(bounds.lower))
    scale, unit = (1000.0, "ms") if size < 0.9995 else (1.0, "s")
    return _written(bounds, scale, unit, signed, _FAR_SECONDS)


def _written(
    bounds: Bounds, scale: float, unit: str, signed: bool = False, far: float = math.inf
) -> str:
    known = [abs(x) for x in (bounds.value, bounds.lower, bounds.upper) if abs(x) < far]
    span = max(known, default=0.0) * scale
    digits = 0 if span >= 99.95 or span == 0 else 1 if span >= 9.995 else 2
    texts = []
    for value in (bounds.value, bounds.lower, bounds.upper):
        text = f"{value * scale:{'+' if signed else ''}.{digits}f}"
        if abs(value) >= far:  # infinity is, too
            text = f"{'−' if value < 0 else '+' if signed else ''}{'∞' if signed else '600+'}"
        texts.append(text.replace("-", "\N{MINUS SIGN}").replace("inf", "∞"))
    between = " to " if signed else "–"
    return f"{texts[0]} ({texts[1]}{between}{texts[2]}) {unit}"


def _row(cells: tuple[str, ...]) -> str:
    """Columns, those on the right not beyond the width."""
    return " ".join(
        f"{cell:<{width}}" for cell, width in zip(cells, _COLUMNS, strict=True)
    ).rstrip()
