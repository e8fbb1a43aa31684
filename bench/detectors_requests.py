"""Requests that are made up one by one, as the wire would tell of them, and traffic of them.

A part of ``./run bench detectors``. Whoever makes traffic draws it in the order of time.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sidecar.signals import End, Leg, RequestTiming

LEG = Leg.DOWNSTREAM
_GAP_SECONDS = 0.03
_APART_SECONDS = 0.01  # of a batch: the wire tells requests apart by when they began


@dataclass(frozen=True, slots=True)
class Request:
    """It decodes from ``first`` to ``last`` and ends then; not streamed, nothing comes before."""

    begun: float
    first: float
    last: float
    streamed: bool = True

    def timing(self, now: float, brought: float) -> RequestTiming:
        """What the wire knows of it ``now``: an open one, or that it has ended well. Later than
        ``brought`` nothing came of it.
        """
        over = self.last <= brought
        events = 0
        if self.streamed and self.first <= brought:
            events = 1 + int((min(brought, self.last) - self.first) / _GAP_SECONDS)
        token = self.first - self.begun + (events - 1) * _GAP_SECONDS
        return RequestTiming(
            at=self.begun,
            leg=LEG,
            server="s",
            method="POST",
            path="/v1/chat/completions",
            status=200 if over or events else None,
            end=End.COMPLETE if over else End.OPEN,
            seconds=(self.last if over else now) - self.begun,
            ttft_seconds=self.first - self.begun if events else None,
            last_token_seconds=token if events else None,
            token_events=events,
            streamed=self.streamed,
        )


Traffic = Callable[[random.Random], Iterator[Request]]


def chats(
    rng: random.Random, every: float, wait: float, sigma: float, seconds: float
) -> Iterator[Request]:
    """Streams that begin independently, one in ``every`` seconds; the wait for the first token is
    log-normal around ``wait``, the answer takes ``seconds`` on average.
    """
    at = 0.0
    while True:
        at += rng.expovariate(1 / every)
        first = at + wait * rng.lognormvariate(0.0, sigma)
        yield Request(at, first, first + rng.expovariate(1 / seconds))


def batches(
    rng: random.Random, every: float, size: int, seconds: float, sigma: float
) -> Iterator[Request]:
    """``size`` answers asked for at once that come whole after log-normal times, one such batch in
    ``every`` seconds.
    """
    at = 0.0
    while True:
        at += rng.expovariate(1 / every)
        for begun in (at + _APART_SECONDS * i for i in range(size)):
            last = begun + seconds * rng.lognormvariate(0.0, sigma)
            yield Request(begun, min(last, begun + 1.0), last, streamed=False)


def prefills(
    rng: random.Random, every: float, size: int, seconds: float, sigma: float
) -> Iterator[Request]:
    """``size`` long prompts at once, one such meeting in ``every`` seconds: the first token comes
    after a log-normal time, half a minute of answer behind it.
    """
    at = 0.0
    while True:
        at += rng.expovariate(1 / every)
        for begun in (at + _APART_SECONDS * i for i in range(size)):
            first = begun + seconds * rng.lognormvariate(0.0, sigma)
            yield Request(begun, first, first + 30.0)


def together(*parts: Iterator[Request]) -> Iterator[Request]:
    """All of them, in the order of time."""
    return heapq.merge(*parts, key=lambda request: request.begun)
