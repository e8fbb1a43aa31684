"""Which ports are watched: those of the settings and, where that is asked for, every port on which
somebody listens in our network namespace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping

from sidecar import inet_diag
from sidecar.probed.frames import MAX_PORTS
from sidecar.signals import Absence, CollectorState, Coverage, Leg, NoData

LOOK_SECONDS = 5.0
_WHAT = "listening ports"


class Listening:
    """The ports by leg. ``leg`` is that of what is found, None to look for nothing; ports of
    ``without`` are left to themselves. Above MAX_PORTS the highest that were found are left out.
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
        self._found: frozenset[int] = frozenset()
        self._trouble: NoData | None = None

    def ports(self) -> dict[int, Leg]:
        """What is to be watched; looks again when that is due. Those found stay while the kernel
        does not answer.
        """
        if self._leg is None:
            return self._fixed
        if self._clock() >= self._next:
            self._next = self._clock() + LOOK_SECONDS
            try:
                self._found = frozenset(one.port for one in self._look())
                self._trouble = None
            except NoData as trouble:
                self._trouble = trouble
        return self._fixed | dict.fromkeys(self._new()[: self._room()], self._leg)

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
        return sorted(self._found - self._without - self._fixed.keys())

    def _room(self) -> int:
        return MAX_PORTS - len(self._fixed)


def _told(state: CollectorState, parts: int, absence: Absence | None, reason: str) -> Coverage:
    return Coverage("wire", _WHAT, 0, 0, 0, state, parts, absence, reason)
