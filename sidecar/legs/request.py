"""One ended request as the pairing keeps it, and what time alone rules out.

Time never decides that two requests belong together; it only says which cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from sidecar.signals import End, Leg, RequestTiming

_ROUNDING_SECONDS = 1e-5  # one clock stamps both legs; Unix seconds in a double hold 0.24 us
_GONE_SECONDS = 0.25  # after its client went away a gateway may still be on its way to the engine
_TRAILING_SECONDS = 0.25  # a gateway may close its answer before the engine's last bytes are in
_CANCELLED_SECONDS = 0.05  # an attempt given up may end just after the next one began

Value = str | int | None


class Key(StrEnum):
    """What two legs of one request have in common, in the order in which it is asked."""

    TRACE_ID = "trace_id"
    REQUEST_ID = "request_id"
    BODY_KEY = "body_key"
    RESPONSE_KEY = "response_key"


KEYS = tuple(Key)
TRACE, BODY, RESPONSE = map(KEYS.index, (Key.TRACE_ID, Key.BODY_KEY, Key.RESPONSE_KEY))


@dataclass(slots=True, eq=False)
class Request:
    """What pairing and counting need of a :class:`~sidecar.signals.RequestTiming`: Unix seconds,
    and ``keys`` in the order of :data:`KEYS`. ``told`` is the monotonic time of its report.

    ``closed`` was counted as not joined and stays only as a doubt for others. ``contested`` shared
    a key with a request of the other leg, and that decided nothing.
    """

    leg: Leg
    server: str
    start: float
    finish: float
    first_token: float | None
    end: End
    status: int | None
    keys: tuple[Value, Value, Value, Value]
    told: float
    generates: bool
    due: float = 0.0
    tries: int = 0
    contested: bool = False
    closed: bool = False

    @property
    def done(self) -> bool:
        """Whether it was answered whole and well."""
        return self.end is End.COMPLETE and (self.status or 500) < 400

    @property
    def lingers(self) -> bool:
        """Whether a gateway may go on with its upstream side for long after it ended."""
        return self.end is not End.COMPLETE or (self.status or 500) >= 500


def request_of(timing: RequestTiming, told: float, generates: bool) -> Request:
    """The part of a timing that is kept. Where bytes were missed the first token may have been
    among them, so there is none.
    """
    first = None if timing.resynced else timing.ttft_seconds
    return Request(
        timing.leg,
        timing.server,
        timing.at,
        timing.at + timing.seconds,
        None if first is None else timing.at + first,
        timing.end,
        timing.status,
        (timing.trace_id, timing.request_id, timing.body_key, timing.response_key),
        told,
        generates,
    )


def possible(down: Request, up: Request) -> bool:
    """Whether time allows that a gateway sent ``up`` because of ``down``; either may be open."""
    if up.start < down.start - _ROUNDING_SECONDS:
        return False
    if down.end is End.OPEN:
        return True
    # A gateway that has answered in full asks no more.
    whole = down.end is End.COMPLETE
    if up.start > down.finish + (0.0 if whole else _GONE_SECONDS):
        return False
    if down.lingers:
        return True
    return up.end is not End.OPEN and up.finish <= down.finish + _TRAILING_SECONDS


def attempts(found: Sequence[Request]) -> tuple[Request, ...]:
    """These upstream requests as attempts of one, in their order; empty when they cannot be: an
    attempt follows one that failed, and not before that ended.
    """
    ordered = tuple(sorted(found, key=lambda one: one.start))
    for before, after in pairwise(ordered):
        if before.done or before.finish > after.start + _CANCELLED_SECONDS:
            return ()
    return ordered if all(one.end is not End.OPEN for one in ordered) else ()


def answering(down: Request, tried: Sequence[Request]) -> Request:
    """The attempt whose answer the client got: the last whose first token is not after the
    client's, or the last one where none has such a token.
    """
    in_time = (one for one in reversed(tried) if early(down, one))
    return next(in_time, tried[-1])


def early(down: Request, up: Request) -> bool | None:
    """Whether the engine's first token was there before the client's; None without one of them."""
    if down.first_token is None or up.first_token is None:
        return None
    return up.first_token <= down.first_token + _ROUNDING_SECONDS
