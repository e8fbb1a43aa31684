"""Pairs the ended requests of both legs by what they have in common, never by order or time.

A pair is made only by a key that no other request, which time allows, shares on either leg. With
no record lost a pair is never wrong; docs/joining-legs.md says what lost records can do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from sidecar.legs.pool import MAX_REQUESTS, Pool
from sidecar.legs.request import KEYS, RESPONSE, Request, answering, attempts, request_of
from sidecar.legs.witness import Witness
from sidecar.signals import End, Leg, RequestTiming

SETTLE_SECONDS = 2.5  # until all that overlapped has been reported, open requests too
LINGER_SECONDS = 60.0  # that a request waits for its other side
_LONGEST_SECONDS = 660.0  # the same while an open request may be it; the tap itself gives up at 600
COMBINED = "combined"


class Reason(StrEnum):
    """Why a request is not joined."""

    NO_KEY = "no_key"  # nothing that the other leg could share
    NO_UPSTREAM = "no_upstream"
    NO_DOWNSTREAM = "no_downstream"
    AMBIGUOUS = "ambiguous"
    EVICTED = "evicted"
    BLIND = "blind"  # the tap lost sight meanwhile


@dataclass(frozen=True, slots=True)
class Join:
    """A client's request and the gateway's attempts at it in their order, of which ``answer`` is
    the one that the client got. ``by`` is a :class:`Key` or ``combined``. Where it is not
    ``whole`` there may have been more attempts: another request shared a key, or an answer's id
    decided, which an attempt that failed does not have.
    """

    downstream: Request
    attempts: tuple[Request, ...]
    answer: Request
    by: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Unjoined:
    """A request that will not be joined."""

    request: Request
    reason: Reason


Outcome = Join | Unjoined


class Pairing:
    """Takes timings as they come and says of each, once, what became of it. Bounded; one thread;
    its clock is a monotonic one.
    """

    def __init__(self, most: int = MAX_REQUESTS) -> None:
        self._pool = Pool(most)
        self._witness = Witness()
        self._undecided: deque[tuple[float, Request]] = deque()
        self._outcomes: list[Outcome] = []
        self._pending = dict.fromkeys(Leg, 0)

    def add(self, timing: RequestTiming, now: float, generates: bool = True) -> None:
        """Takes in one timing of either leg; one that is open is only a doubt for others."""
        request = request_of(timing, now, generates)
        if request.end is End.OPEN:
            self._pool.see_open(request)
            return
        if all(value is None for value in request.keys):
            self._outcomes.append(Unjoined(request, Reason.NO_KEY))
            return
        request.due = now + LINGER_SECONDS
        self._pending[request.leg] += 1
        for gone in self._pool.add(request):
            self._close(gone, Reason.EVICTED)
        if request.leg is Leg.DOWNSTREAM:
            self._undecided.append((now + SETTLE_SECONDS, request))

    def settle(self, now: float) -> list[Outcome]:
        """What was decided since the last call."""
        self._pool.tidy(now)
        while self._undecided and self._undecided[0][0] <= now:
            _, request = self._undecided.popleft()
            if not request.closed:
                self._decide(request, now)
        self._expire(now)
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def lose(self) -> None:
        """The tap is blind: what waits will not hear of its other side."""
        for request in self._pool.clear():
            self._close(request, Reason.BLIND)
        self._undecided.clear()

    def pending(self, leg: Leg) -> int:
        """How many ended requests of a leg wait to be decided."""
        return self._pending[leg]

    def _decide(self, down: Request, now: float) -> None:
        shared: dict[int, Request] = {}
        for fields, found in self._candidates(down, shared):
            tried = self._attempts(down, found, fields)
            if tried:
                # An attempt that failed has no answer whose id could be shared.
                alone = len(shared) == len(tried) and not down.contested
                whole = alone and fields != (RESPONSE,)
                self._join(Join(down, tried, answering(down, tried), _named(fields), whole))
                return
        down.tries += 1
        self._put_off(down, list(shared.values()), now)

    def _put_off(self, down: Request, shared: list[Request], now: float) -> None:
        """Lets an undecided request wait while waiting can help, else counts it."""
        ended = [up for up in shared if up.end is not End.OPEN]
        for up in ended:
            up.contested = True
        running = down.lingers and (not shared or len(ended) < len(shared))
        if (running or (shared and down.tries < 2)) and now + SETTLE_SECONDS < down.due:
            self._undecided.append((now + SETTLE_SECONDS, down))
            return
        # It stays in the pool, so that what it shares does not look unique to the next one.
        down.contested |= bool(shared)
        self._close(down, self._why(down))

    def _candidates(
        self, down: Request, shared: dict[int, Request]
    ) -> Iterator[tuple[tuple[int, ...], list[Request]]]:
        """The keys of a request one by one, then two by two, with what shares them upstream."""
        by_field: dict[int, list[Request]] = {}
        for field, value in enumerate(down.keys):
            if value is None:
                continue
            found = self._pool.upstream(down, field)
            if found is None:
                down.contested = True
            elif found:
                by_field[field] = found
                shared.update((id(one), one) for one in found)
                yield (field,), found
        for one, other in combinations(by_field, 2):
            both = [up for up in by_field[one] if up.keys[other] == down.keys[other]]
            if both:
                yield (one, other), both

    def _attempts(
        self, down: Request, found: Sequence[Request], fields: tuple[int, ...]
    ) -> tuple[Request, ...]:
        """What was found as the attempts of this request and of no other; empty in doubt."""
        tried = attempts(found)
        if not tried or not all(self._pool.only(down, up, fields) for up in tried):
            return ()
        learn = down.tries == 0
        return () if self._witness.contradicts(down, tried, fields, learn) else tried

    def _join(self, join: Join) -> None:
        # A client's request of which an attempt may be left stays as a doubt, as one that was not
        # joined does: else that attempt could come to look unique to another.
        for request in (join.downstream, *join.attempts):
            request.closed = True
            self._pending[request.leg] -= 1
            if join.whole or request is not join.downstream:
                self._pool.remove(request)
        self._outcomes.append(join)

    def _close(self, request: Request, reason: Reason) -> None:
        if not request.closed:
            request.closed = True
            self._pending[request.leg] -= 1
            self._outcomes.append(Unjoined(request, reason))

    def _expire(self, now: float) -> None:
        for request in self._pool.expired(now):
            old = now - request.told > _LONGEST_SECONDS
            if request.leg is Leg.UPSTREAM and not old and self._pool.awaited(request):
                self._pool.renew(request, now + LINGER_SECONDS)
                continue
            self._pool.remove(request)
            if not request.closed:
                self._close(request, self._why(request))

    def _why(self, request: Request) -> Reason:
        if request.leg is Leg.DOWNSTREAM:
            return Reason.AMBIGUOUS if request.contested else Reason.NO_UPSTREAM
        doubtful = request.contested or self._pool.contested(request)
        return Reason.AMBIGUOUS if doubtful else Reason.NO_DOWNSTREAM


def _named(fields: tuple[int, ...]) -> str:
    return KEYS[fields[0]].value if len(fields) == 1 else COMBINED
