"""Keeps user probes in the watched processes, a little at a time, so that draining goes on: taking
one out takes up to a tenth of a second.
"""

from __future__ import annotations

import os
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator

from sidecar.probed.kernel import Map
from sidecar.probed.namespaces import Network
from sidecar.probed.probe import Watched
from sidecar.probed.targets import Target, listens_on
from sidecar.probed.wire_tls_known import Tools
from sidecar.probed.wire_tls_process import Probed
from sidecar.signals import Absence, CollectorState, Coverage

BUDGET_SECONDS = 0.01  # of attaching, a round
CLOSE_EVERY = 0.25  # seconds
PORTS_EVERY = 5.0
_PROCESS = struct.Struct("=QQH6x")  # struct process


class Followed:
    """The processes that are probed. ``processes`` and ``served`` are the program's maps."""

    def __init__(
        self,
        tools: Tools,
        processes: Map,
        served: Map,
        network: Network,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tools, self._network, self._clock = tools, network, clock
        self._processes, self._served = processes, served
        self._probed: dict[tuple[int, int], Probed] = {}
        self._ended: dict[tuple[int, int], Target] = {}
        self._closing: deque[int] = deque()
        self._ports: frozenset[int] = frozenset()
        self._serving: frozenset[int] = frozenset()
        self._number = 0
        self._places_told = 0
        self._close_at = self._ports_at = 0.0

    def watch(self, watched: Watched) -> frozenset[int]:
        """Replaces what is watched; the numbers of processes that are followed no more."""
        self._ports = watched.ports
        wanted = {target.identity: target for target in watched.targets}
        for identity in self._ended.keys() - wanted.keys():
            del self._ended[identity]
        left = frozenset(self._leave(one) for one in self._probed.keys() - wanted.keys())
        for identity in wanted.keys() - self._probed.keys() - self._ended.keys():
            self._begin(wanted[identity])
        self._ports_at = 0.0
        return left

    def _begin(self, target: Target) -> None:
        self._number += 1
        self._probed[target.identity] = Probed(self._number, target, self._tools)
        self._processes.update(_key(self._number), _PROCESS.pack(0, 0, 0))

    def _leave(self, identity: tuple[int, int]) -> int:
        probed = self._probed.pop(identity)
        self._processes.delete(_key(probed.number))  # from here on its calls are not looked at
        probed.release()
        self._closing += probed.to_close()
        return probed.number

    def ended(self) -> frozenset[int]:
        """The numbers of processes that have ended since the last call."""
        gone = [identity for identity, probed in self._probed.items() if probed.has_ended]
        for identity in gone:
            self._ended[identity] = self._probed[identity].target
        return frozenset(self._leave(identity) for identity in gone)

    def step(self) -> None:
        """A round of attaching and detaching."""
        now = self._clock()
        end = now + BUDGET_SECONDS
        for probed in self._probed.values():
            while probed.step(now):
                if self._clock() >= end:
                    break
            self._closing += probed.to_close()
            if self._clock() >= end:
                break
        places = sum(probed.places for probed in self._probed.values())
        if now >= self._ports_at or places != self._places_told:
            self._tell_ports()
            self._ports_at, self._places_told = now + PORTS_EVERY, places
        if self._closing and now >= self._close_at:
            os.close(self._closing.popleft())
            self._close_at = self._clock() + CLOSE_EVERY

    def _tell_ports(self) -> None:
        """Which watched port each process listens on: what a session is of whose socket is hidden
        behind memory buffers.
        """
        serving: set[int] = set()
        for probed in self._probed.values():
            ports = listens_on(probed.target, self._ports, self._network, self._tools.proc)
            if probed.places:
                serving |= ports
            self._set_port(probed.number, next(iter(ports)) if len(ports) == 1 else 0)
        for port in self._serving - serving:
            self._served.delete(struct.pack("=H", port))
        for port in serving - self._serving:
            self._served.update(struct.pack("=H", port), b"\1")
        self._serving = frozenset(serving)

    def _set_port(self, number: int, port: int) -> None:
        calls, unjoined, known = self._counts(number)
        if port != known:
            self._processes.update(_key(number), _PROCESS.pack(calls, unjoined, port))

    def _counts(self, number: int) -> tuple[int, int, int]:
        found = self._processes.lookup(_key(number))
        calls, unjoined, port = _PROCESS.unpack(found) if found else (0, 0, 0)
        return calls, unjoined, port

    def coverage(self) -> Iterator[Coverage]:
        """One entry for each process."""
        for probed in self._probed.values():
            calls, unjoined, _ = self._counts(probed.number)
            yield _coverage(probed, calls, unjoined)
        for target in self._ended.values():
            yield _of(target, CollectorState.BLIND, 0, Absence.CLOSED, "the process has ended")

    def close(self) -> None:
        """Takes every probe out, which takes a tenth of a second each."""
        for identity in list(self._probed):
            self._leave(identity)
        while self._closing:
            os.close(self._closing.popleft())


def _key(number: int) -> bytes:
    return struct.pack("=I", number)


def _coverage(probed: Probed, calls: int, unjoined: int) -> Coverage:
    target, failure = probed.target, probed.blind
    if failure is not None:
        return _of(target, CollectorState.BLIND, probed.places, failure.absence, failure.reason)
    if not probed.looked:
        return _of(target, CollectorState.BLIND, probed.places, Absence.NO_SIGNAL, "being attached")
    state = CollectorState.FIRING if calls else CollectorState.ATTACHED
    reason = (
        f"{unjoined} connections use memory buffers (as asyncio does) to or from a port that "
        "cannot be told: they are not followed"
        if unjoined
        else ""
    )
    return _of(target, state, probed.places, None, reason)


def _of(
    target: Target, state: CollectorState, parts: int, absence: Absence | None, reason: str
) -> Coverage:
    return Coverage(
        "wire_tls", target.label, target.pid, target.ns_pid, target.start, state, parts, absence,
        reason,
    )  # fmt: skip
