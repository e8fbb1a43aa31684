"""Access logs of Envoy and nginx, as text or as JSON, one request a line.

Neither knows when the first token came (their upstream times end with the response's head, which
engines send before it), so such requests have no TTFT. Lines of other paths than those that make a
model generate are left out, counted: health checks would dilute every share.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

from sidecar import paths
from sidecar.history import log_lines
from sidecar.history.lines import lines
from sidecar.history.ordering import ROOM, ordered
from sidecar.history.records import Account, Flaw, Left, Record, Served
from sidecar.history.times import Clock
from sidecar.signals import Leg


class AccessLog:
    """One file; ``every_path`` keeps also requests that are none to a model."""

    def __init__(
        self,
        path: Path,
        now: float,
        leg: Leg = Leg.DOWNSTREAM,
        zone: ZoneInfo | None = None,
        every_path: bool = False,
        room: int = ROOM,
    ) -> None:
        self.name = str(path)
        self._path = path
        self._now = now
        self._leg = leg
        self._zone = zone
        self._every_path = every_path
        self._room = room

    def records(self, account: Account) -> Iterator[Record]:
        """Its requests in the order in which they ended; NoData where there is no file."""
        yield from ordered(self._served(account), account, self._room)

    def _served(self, account: Account) -> Iterator[Served]:
        clock = Clock(self._zone, self._now)
        for line in lines(self._path, account):
            account.read += 1
            try:
                found = log_lines.read(line, clock, account)
            except Left as error:
                account.leave(error.flaw)
                continue
            if not self._every_path and not paths.generates(_plain(found.path), False):
                account.leave(Flaw.NO_MODEL_PATH)
                continue
            yield Served(
                found.at,
                self._leg,
                found.name,
                found.status,
                found.duration,
                None,
                found.bytes,
                found.end,
            )


def _plain(path: str) -> str:
    return path.partition("?")[0]
