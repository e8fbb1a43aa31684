"""Which ports are watched: those of the settings and, where that is asked for, every port on which
somebody listens in our network namespace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping

from sidecar import inet_diag
from sidecar.addresses import split_address
from sidecar.config import Settings
from sidecar.probed.frames import MAX_PORTS
from sidecar.signals import Absence, CollectorState, Coverage, Leg, NoData

LOOK_SECONDS = 5.0
STEADY_SECONDS, KEPT_SECONDS = 60.0, 3600.0
_WHAT = "listening ports"


class Listening(Mapping[int, Leg]):
    """The ports by leg, as they are now. ``leg`` is that of what is found, None to look for
    nothing; ports of ``without`` are left to themselves. A port that was listened on for a minute
    stays for an hour after that, so that a server which is gone is missed. Above MAX_PORTS the
    highest that were found are left out.
    """

    def __init__(
        self,
        fixed: Mapping[int, Leg],
        leg: Leg | None = None,
        without: Collection[int] = (),
        look: Callable[[], list[inet_diag.Listener]] = inet_diag.listeners,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fixed, self._leg, self._without = dict(fixed), leg, frozenset(without)
        self._look, self._clock = look, clock
        self._next = float("-inf")
        self._found: dict[int, tuple[float, float]] = {}  # when first and last heard
        self._trouble: NoData | None = None

    def ports(self) -> dict[int, Leg]:
        """What is to be watched; looks again when that is due. Those found stay while the kernel
        does not answer.
        """
        if self._leg is None:
            return self._fixed
        if self._clock() >= self._next:
            self._next = self._clock() + LOOK_SECONDS
            self._look_again(self._clock())
        return self._fixed | dict.fromkeys(self._new()[: self._room()], self._leg)

    def __getitem__(self, port: int) -> Leg:
        return self.ports()[port]

    def __iter__(self) -> Iterator[int]:
        return iter(self.ports())

    def __len__(self) -> int:
        return len(self.ports())

    def _look_again(self, now: float) -> None:
        try:
            heard = {one.port for one in self._look()}
        except NoData as trouble:
            self._trouble = trouble
            return
        self._trouble = None
        for port in heard:
            self._found[port] = (self._found.get(port, (now, now))[0], now)
        self._found = {
            port: (first, last)
            for port, (first, last) in self._found.items()
            if port in heard or (last - first >= STEADY_SECONDS and now - last < KEPT_SECONDS)
        }

    def coverage(self) -> Iterator[Coverage]:
        """How the looking goes; nothing where nobody asked for it."""
        if self._leg is None:
            return
        left_out = len(self._new()) - self._room()
        if self._trouble is not None:
            yield _told(CollectorState.BLIND, 0, self._trouble.absence, self._trouble.reason)
        elif left_out > 0:
            reason = f"{left_out} ports are too many: name the ones that matter in wire.ports"
            yield _told(CollectorState.BLIND, self._room(), Absence.TOO_LARGE, reason)
        else:
            yield _told(CollectorState.ATTACHED, len(self._new()), None, "")

    def _new(self) -> list[int]:
        return sorted(self._found.keys() - self._without - self._fixed.keys())

    def _room(self) -> int:
        return MAX_PORTS - len(self._fixed)


def _told(state: CollectorState, parts: int, absence: Absence | None, reason: str) -> Coverage:
    return Coverage("wire", _WHAT, 0, 0, 0, state, parts, absence, reason)


def listening(settings: Settings) -> Listening:
    """The ports that the settings ask for; each collector has its own."""
    wire = settings.wire
    leg = None if wire.listening == "off" else Leg(wire.listening)
    _, own = split_address(settings.export.listen)
    ports = {entry.port: entry.leg for entry in wire.ports}
    return Listening(ports, leg, (own, *wire.not_ports))
