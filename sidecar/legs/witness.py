"""What speaks against a pair although its key is unique, learnt gateway by gateway.

A gateway mostly passes on the trace id and the body, and the id in the engine's answer; a first
token cannot reach the client before it left the engine, nor a good answer come of a bad one. Where
the legs contradict each other they are not one request, unless this gateway is seen to do that:
write ids or bodies of its own, begin answers by itself, turn to an engine that is not watched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sidecar.legs.request import BODY, KEYS, RESPONSE, TRACE, Request, answering, early

_SEEN = 13  # contradictions; fewer may be requests of which one leg was lost
_SHARE = 0.05  # of the pairs that could have contradicted
_MAX_SERVERS = 50


class Witness:
    """Counts by downstream server what agreed. Bounded: 50 servers, the rest share one."""

    def __init__(self) -> None:
        self._agreed: dict[tuple[str, str], int] = {}
        self._differed: dict[tuple[str, str], int] = {}
        self._servers: set[str] = set()

    def contradicts(
        self, down: Request, tried: Sequence[Request], fields: tuple[int, ...], learn: bool
    ) -> bool:
        """Whether something speaks against this pair that this gateway does not do usually.
        ``fields`` are those that decided; ``learn`` once for each request.
        """
        found = False
        for what, agrees in _said(down, tried, fields):
            place = (self._place(down.server), what)
            if learn:
                book = self._agreed if agrees else self._differed
                book[place] = book.get(place, 0) + 1
            found |= not agrees and not self._usual(place)
        return found

    def _usual(self, place: tuple[str, str]) -> bool:
        differed = self._differed.get(place, 0)
        return differed >= _SEEN and differed >= _SHARE * (differed + self._agreed.get(place, 0))

    def _place(self, server: str) -> str:
        if server not in self._servers:
            if len(self._servers) >= _MAX_SERVERS:
                return ""
            self._servers.add(server)
        return server


def _said(
    down: Request, tried: Sequence[Request], fields: tuple[int, ...]
) -> Iterator[tuple[str, bool]]:
    """What can be said of a pair, and whether it agrees."""
    for field in (TRACE, BODY, RESPONSE):
        own = down.keys[field]
        theirs = {one.keys[field] for one in tried} - {None}
        if field not in fields and own is not None and theirs:
            yield KEYS[field], own in theirs
    answer = answering(down, tried)
    in_time = early(down, answer)
    if in_time is not None:
        yield "first token", in_time
    if down.done:
        yield "status", (answer.status or 500) < 400
    elif not down.lingers:
        yield "refusal", not answer.done
