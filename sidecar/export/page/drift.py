"""The table of latencies against earlier days: one line a series, the drifting ones first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sidecar.evaluation import ENGINE, Change, Evaluation, Standing
from sidecar.export.intake import safe_label
from sidecar.export.page.sentences import capital
from sidecar.loghist import HIGHEST
from sidecar.snapshot import Snapshot
from sidecar.units import difference, duration

_SHOWN = 12
_SIGNALS = {"ttft": "TTFT", "itl": "ITL", "duration": "Request"}
_WORDS = {
    Standing.JUDGED: "as usual",
    Standing.WARMING: "warming up",
    Standing.INSUFFICIENT: "too few requests",
    Standing.UNLIKE: "other requests than usual",
    Standing.BEYOND: "beyond range",
    Standing.UNIT: "unit changed",
    Standing.IDLE: "idle",
    Standing.UNRESOLVED: "buckets too coarse",
    Standing.COVERED: "judged on the wire",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One series for people. ``style`` is ``bad``, ``good`` or nothing."""

    name: str
    where: str
    style: str
    verdict: str
    now: str
    change: str
    chance: str
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """All series: a tally, and those that people want first."""

    tally: str
    lines: tuple[Line, ...]
    more: str


def table(snapshot: Snapshot) -> Table:
    """What the page shows; no lines before the first evaluation."""
    found = sorted(snapshot.evaluations, key=_rank)
    tally = Counter(_verdict(one) for one in found)
    words = ", ".join(f"{n} {verdict}" for verdict, n in tally.items())
    rest = len(found) - _SHOWN
    more = f"and {rest} more series, in /api/v1/state" if rest > 0 else ""
    return Table(words, tuple(_line(one) for one in found[:_SHOWN]), more)


def _rank(one: Evaluation) -> tuple[bool, bool, str, str, str]:
    series = one.series
    judged = one.standing is Standing.JUDGED
    return not one.firing, not judged, series.signal, series.leg, series.server


def _verdict(one: Evaluation) -> str:
    if one.firing:
        return "drifting"
    return "improved" if one.improved else _WORDS[one.standing]


def _line(one: Evaluation) -> Line:
    series, tail = one.series, one.tail
    now = change = chance = ""
    if tail is not None:
        now = f"p{tail.quantile * 100:g} {duration(tail.seconds)}"
        change = f"{difference(tail.change.value)} ({_between(tail.change)})"
        if series.leg == ENGINE:  # the middle of an interval is no measurement
            now, change = f"p{tail.quantile * 100:g}", _between(tail.change)
        chance = f"p {tail.q:.1g}" if tail.q >= 1e-4 else "p < 0.0001"
    return Line(
        name=_SIGNALS.get(series.signal, safe_label(series.signal)),
        where=f"{safe_label(series.leg)} {safe_label(series.server)}",
        style="bad" if one.firing else "good" if one.improved else "",
        verdict=_verdict(one),
        now=now,
        change=change,
        chance=chance,
        text=capital(safe_label(one.text)),
    )


def _between(change: Change) -> str:
    if change.upper >= HIGHEST:  # it stands for no upper end
        return f"{difference(change.lower)} or more"
    return f"{difference(change.lower)} to {difference(change.upper)}"
