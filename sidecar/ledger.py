"""What a target and the wire counted in the same minute, so that the two can be compared.

Both are noted at each scrape of the target. They cannot agree exactly: a request may end between
the scrape and the frame that tells of it. So each count is a pair: over the whole span, and over
the span without its first and last scrape. What one side counts inside is the least that the other
must have counted over the whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from sidecar.signals import Labels, Leg

SPAN_SECONDS = 60.0
Key = tuple[str, Labels]


@dataclass(frozen=True, slots=True)
class Tally:
    """LLM requests of a leg: ended, answered (whole and 2xx), failed, cancelled by their client;
    and their token events so far.
    """

    ended: int = 0
    answered: int = 0
    failed: int = 0
    cancelled: int = 0
    token_events: int = 0

    def since(self, earlier: Tally) -> Tally:
        """What was counted in between."""
        return Tally(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Span:
    """The increases of one target's counters and of the wire's tallies, over the whole span and
    inside it. Of the wire nothing is said when the tap did not see the whole span.
    """

    seconds: float
    whole: Mapping[Key, float]
    inside: Mapping[Key, float]
    wire_whole: Mapping[Leg, Tally]
    wire_inside: Mapping[Leg, Tally]


@dataclass(frozen=True, slots=True)
class _Note:
    at: float
    counters: Mapping[Key, float]
    tallies: Mapping[Leg, Tally] | None


class Ledger:
    """The notes of one target; starts anew when a counter goes back or the tap loses sight."""

    def __init__(self, seconds: float = SPAN_SECONDS) -> None:
        self._seconds = seconds
        self._notes: deque[_Note] = deque()

    def note(
        self, at: float, counters: Mapping[Key, float], tallies: Mapping[Leg, Tally] | None
    ) -> None:
        """Takes in one scrape; ``tallies`` None while the tap is blind."""
        if self._notes:
            before = self._notes[-1]
            back = any(value < before.counters.get(key, 0.0) for key, value in counters.items())
            if back or (tallies is None) != (before.tallies is None):
                self._notes.clear()
        self._notes.append(_Note(at, counters, tallies))
        while len(self._notes) > 2 and self._notes[1].at <= at - self._seconds:
            self._notes.popleft()

    def span(self) -> Span | None:
        """What grew since the oldest note; None before there are four."""
        notes = self._notes
        if len(notes) < 4:
            return None
        first, second, last_but_one, last = notes[0], notes[1], notes[-2], notes[-1]
        return Span(
            last.at - first.at,
            _grown(last.counters, first.counters),
            _grown(last_but_one.counters, second.counters),
            _tallied(last.tallies, first.tallies),
            _tallied(last_but_one.tallies, second.tallies),
        )


def _grown(later: Mapping[Key, float], earlier: Mapping[Key, float]) -> Mapping[Key, float]:
    return MappingProxyType({key: value - earlier.get(key, 0.0) for key, value in later.items()})


def _tallied(
    later: Mapping[Leg, Tally] | None, earlier: Mapping[Leg, Tally] | None
) -> Mapping[Leg, Tally]:
    if later is None or earlier is None:
        return MappingProxyType({})
    return MappingProxyType(
        {leg: tally.since(earlier.get(leg, Tally())) for leg, tally in later.items()}
    )
