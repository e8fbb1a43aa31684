"""Keeps the probes of a network namespace on what its clients watch: ports at once, processes as
they come and go.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator

from sidecar.probed import coverage
from sidecar.probed.namespaces import Network
from sidecar.probed.probe import PROCESSLESS, Watched
from sidecar.probed.rescan import Rescan
from sidecar.probed.server import Client
from sidecar.probed.slots import Slot
from sidecar.probed.targets import MAX_TARGETS, By, Found, Missing, Selector, scan
from sidecar.signals import Absence, CollectorState, Coverage

Scan = Callable[..., Found]


class Following:
    """What is watched in one namespace."""

    def __init__(
        self,
        network: Network,
        look: Scan = scan,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self.network = network
        self._look, self._clock, self._cpu = look, clock, cpu
        self._rescan = Rescan()
        self._found = Found()

    def prompt(self) -> None:
        """Looks for processes soon."""
        self._rescan.prompt(self._clock())

    def step(self, slots: Iterable[Slot], clients: Iterable[Client]) -> None:
        """Scans if it is time; the probes hear of it only when something changed."""
        slots, clients = tuple(slots), tuple(clients)
        follows = any(slot.probe is not None and slot.name not in PROCESSLESS for slot in slots)
        if not follows or not self._rescan.due(self._clock()):
            return
        began = self._cpu()
        without = frozenset({os.getpid(), *(client.pid for client in clients)})
        found = self._look(_selectors(clients), self.network, without=without)
        changed = found != self._found
        self._rescan.done(self._clock(), self._cpu() - began, changed)
        if changed:
            self._found = found
            self.watch(slots, clients)

    def watch(self, slots: Iterable[Slot], clients: Iterable[Client]) -> None:
        """Tells the probes what is watched now: nobody's process once nobody asks for any."""
        clients = tuple(clients)
        ports = frozenset(port for client in clients for port in client.watch.ports)
        if not ports and not any(client.watch.selectors for client in clients):
            self._found = Found()
        watched = Watched(ports, self._found.targets)
        for slot in slots:
            slot.attempt("it could not be told what to watch", lambda probe: probe.watch(watched))

    def coverage(self, slots: Iterable[Slot]) -> Iterator[bytes]:
        """A frame for each process that is followed and each that is missing."""
        for slot in slots:
            if slot.name in PROCESSLESS:
                continue
            told = slot.attempt("its coverage could not be read", lambda p: tuple(p.coverage()))
            if told is None:
                continue
            yield from (coverage.pack(one) for one in told)
            yield from (coverage.pack(_absent(slot.name, one)) for one in self._found.missing)
            if self._found.left_out:
                yield coverage.pack(_left_out(slot.name, self._found.left_out))


def _selectors(clients: Iterable[Client]) -> Iterator[Selector]:
    """What is asked for, and who listens on the watched ports."""
    for client in clients:
        yield from client.watch.selectors
        yield from (Selector(By.PORT, str(port)) for port in sorted(client.watch.ports))


def _absent(probe: str, missing: Missing) -> Coverage:
    return Coverage(
        probe,
        str(missing.selector),
        0,
        0,
        0,
        CollectorState.BLIND,
        absence=missing.absence,
        reason=missing.reason,
    )


def _left_out(probe: str, count: int) -> Coverage:
    return Coverage(
        probe,
        "left out",
        0,
        0,
        0,
        CollectorState.BLIND,
        count,
        Absence.TOO_LARGE,
        f"{count} more processes match; at most {MAX_TARGETS} are followed: choose fewer",
    )
