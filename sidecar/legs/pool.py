"""Requests of both legs that wait for their other side: found by key, bounded, oldest out first.

Open requests are here as far as they are reported, as doubts: a key that one of them shares is not
unique.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from math import inf

from sidecar.legs.request import Request, Value, possible
from sidecar.signals import Leg

MAX_REQUESTS = 20_000
_MAX_OPEN = 2_000
_FRESH_SECONDS = 3.5  # open requests are reported once a second
_LATE_SECONDS = 2.5  # reports of requests that ended at once may come so far apart
_MAX_STEPS = 256  # of one search; a key shared by more is no key

Bucket = dict[int, Request]  # by id(), in the order of arrival
_NONE: Bucket = {}


class Pool:
    """Ended requests by leg and key. ``offset`` turns their Unix times into monotonic ones."""

    def __init__(self, most: int = MAX_REQUESTS) -> None:
        self._most = most
        # A plain dict is slow to find its first entry behind many that were removed.
        self._all: OrderedDict[int, Request] = OrderedDict()
        self._by_key: dict[tuple[Leg, int, Value], Bucket] = {}
        self._open: dict[tuple[Leg, str, float], Request] = {}
        self._open_by_key: dict[tuple[Leg, int, Value], Bucket] = {}
        self._offset = inf

    def __len__(self) -> int:
        return len(self._all)

    def add(self, request: Request) -> list[Request]:
        """Takes in an ended request; what had to leave for it."""
        self._offset = min(self._offset, request.told - request.finish)
        self._forget_open((request.leg, request.server, request.start))
        self._all[id(request)] = request
        _enter(self._by_key, request)
        gone = []
        while len(self._all) > self._most:
            gone.append(next(iter(self._all.values())))
            self.remove(gone[-1])
        return gone

    def remove(self, request: Request) -> None:
        """Takes one out; it has to be there."""
        del self._all[id(request)]
        _leave(self._by_key, request)

    def expired(self, now: float) -> Iterable[Request]:
        """Those that are due, the first of them first; each must be removed or renewed."""
        while self._all:
            oldest = next(iter(self._all.values()))
            if oldest.due > now:
                return
            yield oldest

    def renew(self, request: Request, due: float) -> None:
        """Lets it wait longer."""
        request.due = due
        self._all.move_to_end(id(request))

    def see_open(self, request: Request) -> None:
        """An open request, or a newer report of one; beyond 2,000 they are not kept."""
        place = (request.leg, request.server, request.start)
        self._forget_open(place)
        if len(self._open) < _MAX_OPEN:
            self._open[place] = request
            _enter(self._open_by_key, request)

    def tidy(self, now: float) -> None:
        """Drops open requests that are reported no more."""
        gone = [key for key, one in self._open.items() if now - one.told > _FRESH_SECONDS]
        for key in gone:
            self._forget_open(key)

    def clear(self) -> list[Request]:
        """Forgets everything; what was there."""
        gone = list(self._all.values())
        for held in (self._all, self._by_key, self._open, self._open_by_key):
            held.clear()
        self._offset = inf
        return gone

    def upstream(self, down: Request, field: int) -> list[Request] | None:
        """Upstream requests, open ones too, that share this key and are possible; None when there
        are too many to look at.
        """
        value = down.keys[field]
        waiting = self._open_by_key.get((Leg.UPSTREAM, field, value), _NONE)
        found = [one for one in waiting.values() if possible(down, one)]
        since = down.start + self._offset - _LATE_SECONDS
        bucket = self._by_key.get((Leg.UPSTREAM, field, value), _NONE)
        for steps, one in enumerate(reversed(bucket.values())):
            if one.told < since:
                break
            if steps >= _MAX_STEPS:
                return None
            if possible(down, one):
                found.append(one)
        return found

    def only(self, down: Request, up: Request, fields: tuple[int, ...]) -> bool:
        """Whether no other downstream request, open ones too, shares these keys of ``up`` and is
        possible.
        """
        place = (Leg.DOWNSTREAM, fields[0], up.keys[fields[0]])
        for one in self._open_by_key.get(place, _NONE).values():
            if _alike(one, up, fields) and possible(one, up):
                return False
        since = up.start + self._offset - _LATE_SECONDS
        for steps, one in enumerate(reversed(self._by_key.get(place, _NONE).values())):
            if one.told < since:
                break
            if steps >= _MAX_STEPS:
                return False
            if one is not down and _alike(one, up, fields) and possible(one, up):
                return False
        return True

    def awaited(self, up: Request) -> bool:
        """Whether an open downstream request shares a key with it and is possible."""
        return any(
            possible(one, up)
            for place in _places(Leg.DOWNSTREAM, up)
            for one in self._open_by_key.get(place, _NONE).values()
        )

    def contested(self, up: Request) -> bool:
        """Whether an ended downstream request does, or more share a key than can be looked at."""
        for place in _places(Leg.DOWNSTREAM, up):
            bucket = self._by_key.get(place, _NONE)
            if len(bucket) > _MAX_STEPS or any(possible(one, up) for one in bucket.values()):
                return True
        return False

    def _forget_open(self, place: tuple[Leg, str, float]) -> None:
        known = self._open.pop(place, None)
        if known is not None:
            _leave(self._open_by_key, known)


def _alike(one: Request, other: Request, fields: tuple[int, ...]) -> bool:
    return all(one.keys[field] == other.keys[field] for field in fields)


def _places(leg: Leg, request: Request) -> list[tuple[Leg, int, Value]]:
    """Where requests of a leg are that share a key with this one."""
    return [(leg, field, value) for field, value in enumerate(request.keys) if value is not None]


def _enter(index: dict[tuple[Leg, int, Value], Bucket], request: Request) -> None:
    for place in _places(request.leg, request):
        index.setdefault(place, {})[id(request)] = request


def _leave(index: dict[tuple[Leg, int, Value], Bucket], request: Request) -> None:
    for place in _places(request.leg, request):
        bucket = index[place]
        del bucket[id(request)]
        if not bucket:
            del index[place]
