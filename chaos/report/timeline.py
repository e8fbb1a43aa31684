"""A campaign over time: what requests met at each place, with the times of faults shaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from chaos.report import words
from chaos.report.summary import ENGINE
from chaos.vocabulary import Kind, Probe, Run
from sidecar.history.drawing import Plot, Shade, Span, plot, shade, span
from sidecar.history.tracks import Track
from sidecar.units import duration, number

_LATEST = 250_000_000_000.0  # Unix seconds that a calendar can still write
_RUNS = 50
_LONGEST = 86_400.0  # seconds of one run of which seconds without an answer are drawn as 0
_STYLES = ("engine", "downstream", "upstream", "gpu")
_FAULT, _OTHER = "page", "ticket"  # the styles of shades on the page of a replay
Values = Iterable[tuple[float, float]]
Reads = Callable[[Sequence[Probe]], Values]
Counts = Callable[[Probe], int]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Plots of some runs in a row on one axis of time; ``key`` makes their ids unique."""

    key: str
    title: str
    span: Span
    plots: tuple[Plot, ...]


def stretches(runs: Sequence[Run]) -> tuple[Stretch, ...]:
    """A campaign in parts that can still be told apart on a screen, without empty ones."""
    drawn = [run for run in runs if 0 <= run.started_unix < _LATEST and run.watched < _LATEST]
    drawn.sort(key=lambda run: run.started_unix)
    parts = (drawn[at : at + _RUNS] for at in range(0, len(drawn), _RUNS))
    found = (_stretch(f"part-{at}", part) for at, part in enumerate(parts))
    return tuple(one for one in found if one is not None)


def _stretch(key: str, drawn: Sequence[Run]) -> Stretch | None:
    """TTFT, tokens and failures of all places; None when nobody made a request."""
    ends = [
        run.started_unix + at
        for run in drawn
        for place in run.places
        for probe in (place.probes[:1] + place.probes[-1:])
        for at in (probe.sent, probe.ended)
    ]
    if not ends or not 0 <= min(ends) <= max(ends) < _LATEST:
        return None
    within = span(min(ends), max(ends))
    shades = tuple(_shades(drawn, within))
    found = (
        plot("ttft", "TTFT", "", _tracks(drawn, _ttft), within, duration, shades),
        plot("tokens", "Tokens/s received", "", _tracks(drawn, _tokens), within, number, shades),
        plot("failed", "Failed requests/s", "", _tracks(drawn, _failed), within, number, shades),
    )
    title = f"Runs {drawn[0].number} to {drawn[-1].number}" if len(drawn) > 1 else "One run"
    return Stretch(key, title, within, tuple(one for one in found if one is not None))


def _shades(runs: Iterable[Run], within: Span) -> Iterator[Shade]:
    """From the effect to the end of the undo; of what is no proven fault from T0 on."""
    for run in runs:
        fault = run.kind is Kind.FAULT and run.effect is not None
        start = run.started_unix + (run.effect or 0.0)
        over = run.healed if run.healed is not None else run.watched
        word = run.outcome.value.replace("_", " ") if fault else run.kind.value
        title = f"run {run.number}: {words.plain(run.fault)}, {word}"
        style = _FAULT if fault else _OTHER
        yield shade(within, start, run.started_unix + over, style, title)


def _tracks(runs: Sequence[Run], values: Reads) -> list[tuple[str, str, Track]]:
    """A line for each place, the engine's own first."""
    tracks: dict[str, Track] = {}
    for run in runs:
        for place in run.places:
            track = tracks.setdefault(place.place, Track(1.0))
            for at, value in values(place.probes):
                track.add(run.started_unix + at, value)
    names = sorted(tracks, key=lambda name: name != ENGINE)
    rest = iter(_STYLES[1:])
    return [
        (words.plain(name), ENGINE if name == ENGINE else next(rest, _STYLES[-1]), tracks[name])
        for name in names
    ]


def _ttft(probes: Sequence[Probe]) -> Values:
    return [(probe.sent, probe.ttft) for probe in probes if probe.ttft is not None]


def _tokens(probes: Sequence[Probe]) -> Values:
    return _by_second(probes, lambda probe: probe.tokens)


def _failed(probes: Sequence[Probe]) -> Values:
    return _by_second(probes, lambda probe: int(probe.failure is not None))


def _by_second(probes: Sequence[Probe], many: Counts) -> Values:
    """Sums over each second in which requests ended; within a run a second without is a 0, and the
    first and the last, which were not watched whole, are left out.
    """
    sums: Counter[int] = Counter()
    for probe in probes:
        sums[int(probe.ended // 1)] += many(probe)
    if not sums:
        return
    first, last = min(sums), max(sums)
    seconds = range(first + 1, last) if last - first < _LONGEST else sorted(sums)[1:-1]
    for at in seconds:
        yield at + 0.5, float(sums[at])
