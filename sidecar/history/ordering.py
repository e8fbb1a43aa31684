"""Puts records into the order of time with bounded memory, and rows into minutes.

Exports are often newest first, and logs are written when requests end, not when they began. Up to
``ROOM`` records are held back, so that any file smaller than that comes out in order, whole.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sidecar.detect.concurrency import half_octave
from sidecar.detect.minutes import MINUTE_SECONDS, Minute, Series
from sidecar.history.records import Account, Flaw, Record

ROOM = 200_000
_MINUTE = MINUTE_SECONDS - 1.0  # rows stamped each minute come a little early or late


class Timed(Protocol):
    """Anything that has its time."""

    @property
    def at(self) -> float:
        """Unix seconds."""


R = TypeVar("R", bound=Timed)


def ordered(records: Iterable[R], account: Account, room: int = ROOM) -> Iterator[R]:
    """The records by time. One that is further back than ``room`` records is left out, counted."""
    held: list[tuple[float, int, R]] = []
    newest = emitted = -math.inf
    for number, record in enumerate(records):
        if record.at < emitted:
            account.leave(Flaw.TOO_LATE)
            continue
        account.sorted += record.at < newest
        newest = max(newest, record.at)
        heapq.heappush(held, (record.at, number, record))
        if len(held) > room:
            emitted, _, first = heapq.heappop(held)
            yield first
    while held:
        yield heapq.heappop(held)[2]


def merged(streams: Iterable[Iterator[Record]]) -> Iterator[Record]:
    """Several ordered streams as one."""
    return heapq.merge(*streams, key=lambda record: record.at)


@dataclass(slots=True)
class _Minute:
    """The rows of one series since ``begun``. Without tokens each row counts alike."""

    begun: float
    seen: set[float] = field(default_factory=set)
    rates: list[float] = field(default_factory=list)
    tokens: float = 0.0
    seconds: float = 0.0
    at_once: float = 0.0

    def add(self, row: Minute) -> None:
        """One more row; of a second one at the same moment the caller knows."""
        self.seen.add(row.at)
        self.at_once += row.concurrency
        if row.rate is None:
            return
        self.rates.append(row.rate)
        self.tokens += row.tokens
        self.seconds += row.tokens / row.rate if row.rate else math.inf

    def close(self, series: Series) -> Minute:
        """The minute: tokens over decode seconds, or the plain mean where rows have no tokens."""
        rate: float | None = None
        if self.rates:
            weighted = len(self.rates) > 1 and self.tokens > 0 and self.seconds < math.inf
            mean = math.fsum(self.rates) / len(self.rates)
            rate = self.tokens / self.seconds if weighted and self.seconds else mean
        at_once = half_octave(self.at_once / len(self.seen))
        return Minute(series, self.begun, rate, self.tokens, at_once)


def by_the_minute(rows: Iterable[Minute], account: Account) -> Iterator[Minute]:
    """Ordered rows of a rate as one record a minute and series, at the time of its first row; a
    second row for one moment is left out, counted.

    A row of a minute is a minute: only finer ones are put together.
    """
    open_: dict[Series, _Minute] = {}  # the one that began first is first
    for row in rows:
        yield from _due(open_, row.at - _MINUTE)
        minute = open_.setdefault(row.series, _Minute(row.at))
        if row.at in minute.seen:
            account.leave(Flaw.DUPLICATE)
        else:
            minute.add(row)
    yield from _due(open_, math.inf)


def _due(open_: dict[Series, _Minute], until: float) -> Iterator[Minute]:
    """Ends the minutes that began by ``until``, the oldest first."""
    while open_:
        series, minute = next(iter(open_.items()))
        if minute.begun > until:
            return
        del open_[series]
        yield minute.close(series)
