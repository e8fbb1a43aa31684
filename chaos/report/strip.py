"""Each run as a line of its own: when it was armed, took hold, was detected, and was well again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.report import words
from chaos.report.summarising import PROVEN
from chaos.report.summary import Figures
from chaos.vocabulary import Layer, Outcome, Probe, Run
from sidecar.export.page.plot import WIDTH, ceiling
from sidecar.units import count, duration, tick

SHOWN = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One run; positions are in units of ``WIDTH`` from T0, None for what never came."""

    number: int
    style: str
    word: str
    title: str
    watched: float
    failing: tuple[tuple[float, float], ...]
    effect: float | None
    detected: float | None
    success: float | None
    recovered: float | None


@dataclass(frozen=True, slots=True)
class Strip:
    """The runs of one fault on one axis of time, ``end`` at its right."""

    rows: tuple[Row, ...]
    end: str
    half: str
    more: str


def strip(one: Figures) -> Strip:
    """The first runs of a fault; what is not proven is a line too."""
    shown = one.runs[:SHOWN]
    end = ceiling(max((_last(run) for run in shown), default=1.0))
    more = len(one.runs) - len(shown)
    return Strip(
        rows=tuple(_row(run, end) for run in shown),
        end=tick(duration(end)),
        half=tick(duration(end / 2)),
        more=f"and {count(more, 'more run')}" if more else "",
    )


def _last(run: Run) -> float:
    """The end of what there is to see: of a run that recovered not all of the watching."""
    back = run.places[0].recovered if run.places else None
    return run.watched if back is None else max(back, run.healed or 0.0, *_alarms(run))


def _alarms(run: Run) -> list[float]:
    """T2, where there is one."""
    alarm = run.time_to_detect
    return [] if alarm is None or run.effect is None else [run.effect + alarm]


def _row(run: Run, end: float) -> Row:
    place = run.places[0] if run.places else None
    at = next(iter(_alarms(run)), None)
    counts = run.outcome in PROVEN
    well = counts and run.layer is not Layer.REPORTED
    success, back = (place.success, place.recovered) if place and well else (None, None)
    return Row(
        number=run.number,
        style=run.outcome.value.replace("_", "-"),
        word=_word(run),
        title=f"run {run.number}: {_word(run)}" + "".join(_told(run, at, success, back)),
        watched=_x(max(0.0, run.watched), end) or 0.0,
        failing=tuple(_failing(place.probes, end)) if place and counts else (),
        effect=_x(run.effect, end),
        detected=_x(at, end),
        success=_x(success, end),
        recovered=_x(back, end),
    )


def _word(run: Run) -> str:
    """How it ended: after how long, where it recovered; of a message, whether it was detected."""
    took = run.time_to_recover
    if run.layer is Layer.REPORTED and run.outcome in PROVEN:
        return "detected" if run.time_to_detect is not None else "not detected"
    if run.outcome is Outcome.RECOVERED:
        return duration(max(0.0, took)) if took is not None else "recovered"
    return run.outcome.value.replace("_", " ")


def _told(run: Run, at: float | None, success: float | None, back: float | None) -> Iterator[str]:
    moments = (
        ("effect (T1)", run.effect),
        ("detected (T2)", at),
        ("first success (T3)", success),
        ("recovered (T4)", back),
    )
    yield from (f"; {name} at {duration(when)}" for name, when in moments if when is not None)
    if run.reason:
        yield f"; {words.plain(run.reason)}"


def _failing(probes: tuple[Probe, ...], end: float) -> Iterator[tuple[float, float]]:
    """Unbroken rows of failed requests, from the first sent to the last ended."""
    start: float | None = None
    stop = 0.0
    for probe in sorted(probes, key=lambda probe: probe.sent):
        if probe.failure is not None:
            start = probe.sent if start is None else start
            stop = max(stop, probe.ended)
        elif start is not None:
            yield _stretch(start, stop, end)
            start, stop = None, 0.0
    if start is not None:
        yield _stretch(start, stop, end)


def _stretch(start: float, stop: float, end: float) -> tuple[float, float]:
    left = _x(max(0.0, start), end) or 0.0
    return left, max(0.6, (_x(max(0.0, stop), end) or 0.0) - left)


def _x(at: float | None, end: float) -> float | None:
    return None if at is None else WIDTH * min(1.0, max(0.0, at / end))
