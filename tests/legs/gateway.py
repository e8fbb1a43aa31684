"""A simulated gateway: what a tap would report of both its legs, and which belongs to which."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from sidecar.legs.pairing import Join, Outcome, Pairing, Unjoined
from sidecar.signals import End, Leg, RequestTiming
from sidecar.testing import timing

UNIX = 1_790_000_000.0  # minus the monotonic clock
REQUEST_ID = "req-{:x}"


@dataclass(frozen=True)
class Habits:
    """What clients send and what the gateway does with it; shares are of requests."""

    clients: int = 40
    traces: float = 1.0  # with a traceparent of their own
    calls_per_trace: int = 1  # of one client, that are sent at once
    trace_passed: bool = True
    id_passed: bool = False
    id_made: bool = False  # by the gateway, which the client's side does not show
    bodies: int | None = None  # that clients choose among; None: all differ
    body_kept: bool = True
    answer_ids: float = 1.0
    answer_id_kept: bool = True
    retried: float = 0.0
    cached: float = 0.0
    refused: float = 0.0
    gone: float = 0.0
    guarded: float = 0.0  # asks another model first, in the same trace
    own: float = 0.0  # requests of the gateway itself, for each of a client
    lost: float = 0.0  # records of either leg


@dataclass
class Traffic:
    """Reports in the order in which they came, and the truth: by the start of each request (all
    differ) the number of the client's request behind it; -1 is the gateway's own.
    """

    reports: list[tuple[float, RequestTiming]] = field(default_factory=list)
    truth: dict[float, int] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    fed: int = 0


class Gateway:
    """Makes traffic of ``number`` requests from clients that each send the next when one ended."""

    def __init__(self, rng: random.Random, habits: Habits) -> None:
        self._rng = rng
        self._habits = habits
        self._made = Traffic()
        self._number = 0

    def run(self, number: int) -> Traffic:
        """All of it, in the order in which it was reported."""
        free = [(self._rng.uniform(0, 1), client) for client in range(self._habits.clients)]
        heapq.heapify(free)
        while self._number < number:
            at, client = heapq.heappop(free)
            trace = self._hex() if self._rng.random() < self._habits.traces else None
            ends = [
                self._request(at + self._rng.uniform(0, 0.01), trace)
                for _ in range(self._habits.calls_per_trace)
            ]
            heapq.heappush(free, (max(ends) + self._rng.uniform(0, 0.02), client))
        self._made.reports.sort(key=lambda report: report[0])
        return self._made

    def _request(self, at: float, trace: str | None) -> float:
        rng, habits = self._rng, self._habits
        self._number += 1
        body = rng.getrandbits(63) if habits.bodies is None else rng.randrange(habits.bodies)
        down = timing(
            at=UNIX + at,
            trace_id=trace,
            request_id=REQUEST_ID.format(rng.getrandbits(64)) if habits.id_passed else None,
            body_key=body,
        )
        if rng.random() < habits.refused:
            refused = replace(down, status=rng.choice((401, 404, 429)), seconds=0.002)
            self._tell(without_tokens(refused))
            return at + 0.002
        if rng.random() < habits.cached:
            self._tell(replace(down, seconds=rng.uniform(0.002, 2.0), response_key=self._answer()))
            return at + 0.002
        if rng.random() < habits.own:
            self._tell(
                self._up(UNIX + at + 0.001, rng.uniform(0.001, 3), own(rng), self._answer()), -1
            )
        return self._answered(down, at) - UNIX

    def _answered(self, down: RequestTiming, at: float) -> float:
        rng, habits = self._rng, self._habits
        answer = self._answer()
        start = down.at + rng.uniform(0.0002, 0.01)
        if rng.random() < habits.guarded:
            guard = self._up(
                start, rng.uniform(0.01, 0.2), replace(down, body_key=-2), self._answer()
            )
            self._tell(guard, -1)
            start = guard.at + guard.seconds + rng.uniform(0.0002, 0.01)
        tries = 1
        while rng.random() < habits.retried and tries < 4:
            self._tell(self._failed(start, down))
            start = self._last.at + self._last.seconds + rng.uniform(0.0002, 0.3)
            tries += 1
        up = self._up(start, rng.lognormvariate(-0.7, 0.9) + 0.05, down, answer)
        self._made.attempts[self._number] = tries
        if rng.random() < habits.gone:
            return self._left(down, up)
        self._tell(up)
        added = rng.uniform(0.0002, 0.02)
        finish = up.at + up.seconds + added
        first = up.at + (up.ttft_seconds or 0.0) + added - down.at
        kept = answer if habits.answer_id_kept else self._answer()
        seconds = finish - down.at
        self._tell(replace(down, seconds=seconds, ttft_seconds=first, response_key=kept))
        return finish

    def _left(self, down: RequestTiming, up: RequestTiming) -> float:
        """The client goes away early; the engine hears of it much later, or never."""
        rng = self._rng
        seconds = up.at - down.at + up.seconds * rng.uniform(0.05, 0.9)
        self._tell(without_tokens(replace(down, seconds=seconds, end=End.CLIENT_GONE)))
        self._tell(replace(up, seconds=up.seconds * rng.choice((1, 3))))
        return down.at + seconds

    def _failed(self, start: float, down: RequestTiming) -> RequestTiming:
        rng = self._rng
        end = rng.choice((End.COMPLETE, End.SERVER_CLOSED, End.CLIENT_GONE))
        failed = self._up(start, rng.uniform(0.001, 0.5), down, None)
        status = 503 if end is End.COMPLETE else None
        self._last = without_tokens(replace(failed, status=status, end=end))
        return self._last

    def _up(
        self, start: float, seconds: float, down: RequestTiming, answer: int | None
    ) -> RequestTiming:
        habits = self._habits
        made = REQUEST_ID.format(self._rng.getrandbits(64)) if habits.id_made else None
        return replace(
            down,
            leg=Leg.UPSTREAM,
            server="127.0.0.1:8000",
            at=start,
            seconds=seconds,
            ttft_seconds=seconds * 0.3,
            trace_id=down.trace_id if habits.trace_passed else None,
            request_id=down.request_id if habits.id_passed else made,
            body_key=down.body_key if habits.body_kept else self._rng.getrandbits(63),
            response_key=answer,
        )

    def _tell(self, one: RequestTiming, number: int | None = None) -> None:
        """Reports of one request: each second while it is open, and up to a second after it."""
        while one.at in self._made.truth:  # two at the same 0.24 us would have one truth
            one = replace(one, at=one.at + 1e-6)
        self._made.truth[one.at] = self._number if number is None else number
        if self._rng.random() < self._habits.lost:
            return
        start, phase = one.at - UNIX, self._rng.random()
        second = int(start) + 1 + phase
        while second < start + one.seconds:
            if second > start + 1:
                self._made.reports.append((second, as_open(one, second - start)))
            second += 1
        told = start + one.seconds + self._rng.uniform(0, 1)
        self._made.reports.append((told, one))
        self._made.fed += 1

    def _answer(self) -> int | None:
        return self._rng.getrandbits(63) if self._rng.random() < self._habits.answer_ids else None

    def _hex(self) -> str:
        return f"{self._rng.getrandbits(128):032x}"


def own(rng: random.Random) -> RequestTiming:
    """A request that the gateway makes by itself, always with the same body."""
    return timing(body_key=-1, trace_id=f"{rng.getrandbits(128):032x}")


def without_tokens(one: RequestTiming) -> RequestTiming:
    """The same without a token, as most failures are."""
    return replace(one, ttft_seconds=None, last_token_seconds=None, token_events=0, gaps=())


def as_open(one: RequestTiming, age: float) -> RequestTiming:
    """What is reported of it while it is open."""
    return replace(one, end=End.OPEN, seconds=age, response_key=None)


def play(made: Traffic, pairing: Pairing) -> Iterator[tuple[list[Outcome], int, int]]:
    """Feeds it all, and 700 s of quiet; after each second what was decided, how many ended
    requests were fed and how many are pending.
    """
    fed, clock = 0, 0.0
    for told, one in made.reports:
        while told > clock:
            yield pairing.settle(clock), fed, pending(pairing)
            clock += 1.0
        pairing.add(one, told)
        fed += one.end is not End.OPEN
    for later in range(0, 700, 10):
        yield pairing.settle(clock + later), fed, pending(pairing)


def pending(pairing: Pairing) -> int:
    return sum(pairing.pending(leg) for leg in Leg)


def size(outcomes: Iterable[Outcome]) -> int:
    """How many requests these outcomes account for."""
    return sum(1 + len(one.attempts) if isinstance(one, Join) else 1 for one in outcomes)


def wrong(made: Traffic, outcomes: Iterable[Outcome]) -> list[Join]:
    """The joins that put together what does not belong together."""
    return [
        one
        for one in outcomes
        if isinstance(one, Join)
        and any(made.truth[up.start] != made.truth[one.downstream.start] for up in one.attempts)
    ]


def unjoined(outcomes: Iterable[Outcome]) -> list[Unjoined]:
    """Those that were not joined."""
    return [one for one in outcomes if isinstance(one, Unjoined)]
