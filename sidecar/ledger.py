"""What a target and the wire counted in the same minute, so that the two can be compared.

Both are noted at each scrape of the target. They cannot agree exactly: a request may end between
the scrape and the frame that tells of it. So what the wire saw well inside a span is the least that
the target must have counted over the whole of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType

from sidecar.signals import Labels, Leg

SPAN_SECONDS = 60.0
_FEWEST = 4  # notes: two at the ends and two inside
Key = tuple[str, Labels]


@dataclass(frozen=True, slots=True)
class Tally:
    """LLM requests of a leg: ended, answered (whole and 2xx), failed, with a status of 5xx,
    cancelled by their client; and token events so far, those of open requests too, with the gaps
    between them and the summed length of those gaps.
    """

    ended: int = 0
    answered: int = 0
    failed: int = 0
    server_errors: int = 0
    cancelled: int = 0
    token_events: int = 0
    gaps: int = 0
    decode_seconds: float = 0.0

    def since(self, earlier: Tally) -> Tally:
        """What was counted in between."""
        return Tally(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Span:
    """By how much one target's counters grew from ``start`` to ``end``, and what the wire had
    tallied at each scrape in between; none of that when the tap did not see the whole span.
    """

    start: float
    end: float
    whole: Mapping[Key, float]
    wire: tuple[tuple[float, Mapping[Leg, Tally]], ...]

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


def seen(spans: Sequence[Span], leg: Leg, edge: float = 0.0) -> Tally | None:
    """What the wire saw of a leg while all of these spans lasted, without ``edge`` seconds at
    either end; None when the tap was blind or nothing was noted there.
    """
    since = max(span.start for span in spans) + edge
    until = min(span.end for span in spans) - edge
    points = [point for span in spans for point in span.wire if since <= point[0] <= until]
    if len(points) < 2 or not all(span.wire for span in spans):
        return None
    points.sort(key=lambda point: point[0])
    first, last = points[0][1].get(leg), points[-1][1].get(leg)
    return None if first is None or last is None else last.since(first)


@dataclass(frozen=True, slots=True)
class _Note:
    at: float
    counters: Mapping[Key, float]
    tallies: Mapping[Leg, Tally] | None


class Ledger:
    """The notes of one target; starts anew when a counter goes back or away, or the tap loses
    sight.
    """

    def __init__(self, seconds: float = SPAN_SECONDS) -> None:
        self._seconds = seconds
        self._notes: deque[_Note] = deque()

    def note(
        self, at: float, counters: Mapping[Key, float], tallies: Mapping[Leg, Tally] | None
    ) -> None:
        """Takes in one scrape; ``tallies`` None while the tap is blind."""
        if self._notes:
            before = self._notes[-1]
            back = any(counters.get(key, -1.0) < value for key, value in before.counters.items())
            if back or (tallies is None) != (before.tallies is None):
                self._notes.clear()
        self._notes.append(_Note(at, counters, tallies))
        while len(self._notes) > _FEWEST and self._notes[1].at <= at - self._seconds:
            self._notes.popleft()

    def span(self) -> Span | None:
        """What grew since the oldest note; None before there are four."""
        if len(self._notes) < _FEWEST:
            return None
        first, last = self._notes[0], self._notes[-1]
        grown = {k: value - first.counters.get(k, 0.0) for k, value in last.counters.items()}
        wire = tuple((n.at, n.tallies) for n in self._notes if n.tallies is not None)
        return Span(first.at, last.at, MappingProxyType(grown), wire)
