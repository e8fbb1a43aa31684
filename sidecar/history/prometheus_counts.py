"""What ended in each minute, out of a sidecar's own counters of the wire in Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sidecar import paths
from sidecar.history.growth import Growth
from sidecar.history.prometheus_api import Series
from sidecar.history.prometheus_names import INSTANCE, LATENCIES, LEGS, REQUESTS, pick
from sidecar.history.prometheus_rates import Found
from sidecar.history.records import Bounds, Counted
from sidecar.signals import End, Leg


@dataclass(slots=True)
class _Ended:
    ended: float = 0.0
    answered: float = 0.0
    failed: float = 0.0
    server_errors: float = 0.0
    cancelled: float = 0.0
    lost: float = 0.0
    broken: bool = False
    buckets: dict[str, dict[float, float]] = field(default_factory=dict)

    def add(self, count: float, status: int, end: str) -> None:
        """As :func:`sidecar.windows.failed` and the tallies have it."""
        self.ended += count
        if end == End.CLIENT_GONE:
            self.cancelled += count
        elif end == End.LOST:
            self.lost += count
        elif end != End.COMPLETE or not status or status >= 500 or status == 429:
            self.failed += count
        elif status // 100 == 2:
            self.answered += count
        if status // 100 == 5:
            self.server_errors += count


Minutes = dict[tuple[float, Leg], _Ended]
Watched = Mapping[str, set[float]]


class Counts:
    """Follows the counters of the wire over answers that come one after the other.

    A series appears with its first request: where its sidecar was read a minute before, that
    request is its growth, and the first failures of an incident are not lost.
    """

    def __init__(self, growth: Growth) -> None:
        self._growth = growth
        self._watched: dict[str, set[float]] = {}

    def of(self, found: Found) -> Iterator[Counted]:
        """One a minute and leg in which the counters were read. In no order."""
        self._watch(found)
        minutes: Minutes = {}
        for series in found.get(REQUESTS, ()):
            _requests(minutes, series, self._growth, self._watched)
        for name, signal in LATENCIES.items():
            for series in found.get(name, ()):
                _latencies(minutes, series, signal, self._growth, self._watched)
        yield from _records(minutes)

    def _watch(self, found: Found) -> None:
        """The moments at which each sidecar was read, and its last one of the answer before."""
        known = {target: {max(moments)} for target, moments in self._watched.items() if moments}
        for series in found.get(REQUESTS, ()):
            moments = known.setdefault(pick(series.labels, (INSTANCE,)), set())
            moments.update(at for at, _ in series.points)
        self._watched = known


def _records(minutes: Minutes) -> Iterator[Counted]:
    for (at, leg), ended in minutes.items():
        if not ended.broken:
            yield Counted(
                at,
                leg,
                ended.ended,
                ended.answered,
                ended.failed,
                ended.server_errors,
                ended.cancelled,
                ended.lost,
                tuple((signal, _bounds(by)) for signal, by in ended.buckets.items()),
            )


def _requests(minutes: Minutes, series: Series, growth: Growth, watched: Watched) -> None:
    leg = LEGS.get(pick(series.labels, ("leg",)))
    if leg is None or not paths.generates(pick(series.labels, ("path",)), False):
        return
    text, end = pick(series.labels, ("status",)), pick(series.labels, ("end",))
    status = int(text) if text.isascii() and text.isdigit() else 100 * _class(text)
    seen = watched.get(pick(series.labels, (INSTANCE,)), set())
    grown = growth.of((REQUESTS, series.labels), series.points, watched=seen, tell=False)
    for at, count in grown.by.items():
        minutes.setdefault((at, leg), _Ended()).add(count, status, end)
    for at in grown.broken:
        minutes.setdefault((at, leg), _Ended()).broken = True


def _class(text: str) -> int:
    """Of a folded status, ``5xx``."""
    return int(text[0]) if text[:1].isdigit() and text[:1].isascii() else 0


def _latencies(
    minutes: Minutes, series: Series, signal: str, growth: Growth, watched: Watched
) -> None:
    leg = LEGS.get(pick(series.labels, ("leg",)))
    bound = _bound(pick(series.labels, ("le",)))
    if leg is None or bound is None:
        return
    seen = watched.get(pick(series.labels, (INSTANCE,)), set())
    grown = growth.of((signal, series.labels), series.points, watched=seen, tell=False)
    for at, count in grown.by.items():
        if (at, leg) in minutes:
            buckets = minutes[at, leg].buckets.setdefault(signal, {})
            buckets[bound] = buckets.get(bound, 0.0) + count
    for at in grown.broken:
        if (at, leg) in minutes:
            minutes[at, leg].broken = True


def _bound(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _bounds(by: dict[float, float]) -> Bounds:
    return tuple(sorted(by.items()))
