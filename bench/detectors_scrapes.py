"""What a target does to scrapes of its metrics and to its port, and how a collector fares by it.

A part of ``./run bench detectors``. The collector is a model of ``sidecar.worker.Worker`` in
simulated time: its interval, deadline and backing off, and the status that it makes of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from sidecar.config import TargetSettings
from sidecar.signals import Absence, CollectorState, CollectorStatus
from sidecar.worker import MAX_BACKOFF_SECONDS

_SETTINGS = TargetSettings(name="r0", url="http://10.0.0.7:8000")
INTERVAL, DEADLINE = _SETTINGS.interval_seconds, _SETTINGS.deadline_seconds
_SECONDS = 0.02  # of a scrape that goes well
Answer = tuple[Absence | None, float]  # what came instead of metrics, and after how long
Span = tuple[float, float]
WELL: Answer = (None, _SECONDS)


@dataclass(frozen=True, slots=True)
class Target:
    """``share`` of its scrapes fail independently, as one of ``kinds``. Within ``closed`` nobody
    listens on its port; within ``paused`` nothing is answered until the pause is over.
    """

    rng: random.Random
    share: float = 0.0
    kinds: tuple[Absence, ...] = (Absence.CLOSED,)
    closed: tuple[Span, ...] = ()
    paused: tuple[Span, ...] = ()

    def answer(self, at: float) -> Answer:
        """To a scrape that begins now."""
        if not self.listens(at):
            return Absence.REFUSED, 0.0
        rest = max((end - at for begin, end in self.paused if begin <= at < end), default=0.0)
        if rest > DEADLINE:
            return Absence.TIMEOUT, DEADLINE
        if self.rng.random() < self.share:
            kind = self.rng.choice(self.kinds)
            return kind, DEADLINE if kind is Absence.TIMEOUT else _SECONDS
        return None, rest + _SECONDS

    def listens(self, at: float) -> bool:
        """Whether its port is open."""
        return not any(begin <= at < end for begin, end in self.closed)


@dataclass(slots=True)
class Scrapes:
    """The collector of one target; ``advance`` runs it up to a moment."""

    name: str
    answer: Callable[[float], Answer]
    rng: random.Random
    begins: float = 0.0
    blind: Absence | None = None
    good: float | None = None
    failures: dict[Absence, int] = field(default_factory=dict)
    row: int = 0
    running: tuple[float, float, Absence | None] | None = None  # since, until, what comes instead

    def advance(self, now: float) -> None:
        """Begins and ends the scrapes that are due."""
        while True:
            if self.running is None:
                if self.begins > now:
                    return
                absence, seconds = self.answer(self.begins)
                self.running = self.begins, self.begins + seconds, absence
            if self.running[1] > now:
                return
            self._end(*self.running)
            self.running = None

    def _end(self, since: float, until: float, absence: Absence | None) -> None:
        self.blind = absence
        if absence is None:
            self.good, self.row = until, 0
            self.begins = max(since + INTERVAL, until)
            return
        self.failures[absence] = self.failures.get(absence, 0) + 1
        self.row += 1
        doubled = max(0.5, INTERVAL / 2) * 2.0 ** min(self.row - 1, 10)
        self.begins = until + min(MAX_BACKOFF_SECONDS, doubled) * self.rng.uniform(0.75, 1.25)

    def status(self, now: float) -> CollectorStatus:
        """As the worker says it."""
        state = CollectorState.FIRING
        if self.blind is not None:
            state = CollectorState.BLIND
        elif self.good is None:
            state = CollectorState.STARTING
        return CollectorStatus(
            name=self.name,
            state=state,
            absence=self.blind,
            reason="" if self.blind is None else self.blind.value,
            age_seconds=None if self.good is None else now - self.good,
            failures=tuple(sorted(self.failures.items())),
        )
