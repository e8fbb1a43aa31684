"""Decode rates out of requests that say how many tokens they had and how long these took.

A request is credited to the minute in which it ended, so a rate made of requests follows the real
one by as long as they last; a running sidecar credits tokens when they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sidecar.detect.concurrency import half_octave
from sidecar.detect.minutes import MINUTE_SECONDS, Minute, Series
from sidecar.history.records import FEWEST_TOKENS, Record, Served


@dataclass(frozen=True, slots=True)
class Answer:
    """One request and its tokens, None where they are not known."""

    served: Served
    tokens: float | None = None

    @property
    def at(self) -> float:
        """When it ended."""
        return self.served.at

    @property
    def decoded(self) -> tuple[float, float] | None:
        """Tokens after the first, and the seconds that they took; None where that is not known."""
        served = self.served
        if self.tokens is None or served.duration is None or served.ttft is None:
            return None
        seconds = served.duration - served.ttft
        return (self.tokens - 1, seconds) if self.tokens > 1 and seconds > 0 else None


@dataclass(slots=True)
class _Sum:
    tokens: float = 0.0
    seconds: float = 0.0
    open_seconds: float = 0.0


def with_rates(answers: Iterable[Answer]) -> Iterator[Record]:
    """The requests, in their order, and after each minute of them its rates by model: tokens over
    decode seconds. Concurrency is Little's: seconds of requests over seconds.
    """
    slot: int | None = None
    sums: dict[str, _Sum] = {}
    for answer in answers:
        now = int(answer.at // MINUTE_SECONDS)
        if slot is not None and now != slot:
            yield from _rates(sums, (slot + 1) * MINUTE_SECONDS)
            sums = {}
        slot = now
        yield answer.served
        if answer.decoded is not None:
            sum_ = sums.setdefault(answer.served.name, _Sum())
            sum_.tokens += answer.decoded[0]
            sum_.seconds += answer.decoded[1]
            sum_.open_seconds += answer.served.duration or 0.0
    if slot is not None:
        yield from _rates(sums, (slot + 1) * MINUTE_SECONDS)


def _rates(sums: dict[str, _Sum], at: float) -> Iterator[Minute]:
    for model, found in sums.items():
        rate = found.tokens / found.seconds if found.tokens >= FEWEST_TOKENS else None
        at_once = half_octave(found.open_seconds / MINUTE_SECONDS)
        yield Minute(Series("wire", "", model), at, rate, found.tokens, at_once)
