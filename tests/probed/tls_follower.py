"""The probe wire_tls, driven by a test as the daemon would."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sidecar.probed import frames, wire_tls
from sidecar.probed.coverage import Coverage
from sidecar.probed.namespaces import network_of
from sidecar.probed.probe import Report, Watched
from sidecar.probed.targets import By, Selector, scan
from sidecar.probed.wire_tls import WireTls
from sidecar.signals import End, Leg, RequestTiming
from tests.probed.tls_rig import until


class Follower:
    """One loaded probe."""

    def __init__(self, release: str = "") -> None:
        self.probe: WireTls = wire_tls.load("prebuilt", network_of(), release=release)
        self.ports: frozenset[int] = frozenset()
        self.reports: list[Report] = []

    def follow(self, ports: Iterable[int], *pids: int) -> None:
        """Follows those who listen on the ports, and these processes, until each was looked at."""
        self.follow_only(ports, *pids, selectors=[Selector(By.PORT, str(p)) for p in ports])

    def follow_only(
        self, ports: Iterable[int], *pids: int, selectors: Iterable[Selector] = ()
    ) -> None:
        """Watches the ports, and follows these processes alone."""
        self.ports = frozenset(ports)
        chosen = [*selectors, *(Selector(By.PID, str(pid)) for pid in pids)]
        self.probe.watch(Watched(self.ports, scan(chosen, network_of()).targets))
        until(lambda: self.round() and all("being" not in c.reason for c in self.probe.coverage()))

    def round(self) -> bool:
        """What the daemon does 25 times a second."""
        self.reports += self.probe.drain()
        return True

    def second(self) -> bool:
        """What it does once a second."""
        self.reports += self.probe.second(time.monotonic_ns())
        return True

    @property
    def timings(self) -> list[RequestTiming]:
        """The requests that have ended so far."""
        legs = dict.fromkeys(self.ports, Leg.UPSTREAM)
        decoded = (frames.unpack_request(r.frame, legs, 0.0) for r in self.reports)
        return [timing for timing in decoded if timing.end is not End.OPEN]

    def ended(self, count: int) -> list[RequestTiming]:
        """Waits for as many requests; what is there then may be more."""
        until(lambda: self.round() and len(self.timings) >= count)
        return self.timings

    def coverage(self, pid: int) -> Coverage:
        """How a process is covered."""
        return next(c for c in self.probe.coverage() if c.pid == pid)

    def counted(self, name: str) -> int:
        """One of the kernel's counters."""
        return self.probe.counters()[name]

    def forget(self) -> None:
        """Follows nobody, and has seen nothing."""
        self.probe.watch(Watched())
        self.second()
        self.round()
        self.reports.clear()
