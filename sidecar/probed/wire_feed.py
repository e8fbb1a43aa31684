"""What the wire tap tells its clients: ended requests as they are drained, and once a second those
that are open, ends of those given up, and the counts of open ones in its status.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from sidecar.privileges import Capability
from sidecar.probed import frames
from sidecar.probed.frames import FrameType, OpenCount
from sidecar.probed.namespaces import Network, within
from sidecar.probed.probe import Report, Watched
from sidecar.probed.tcp_counts import TcpCounts, pack_tcp
from sidecar.probed.wire import WireProbe
from sidecar.probed.wire_table import Sweep, port_of
from sidecar.signals import Coverage

IDLE_NS = 600 * 10**9  # a connection without a packet for so long is forgotten
OPEN_REPORTS = 256  # a second, at most
_YOUNG_NS = 10**9  # a request that ends within a second needs no report of progress


class Tap(Protocol):
    """What is needed of :class:`sidecar.probed.wire.WireProbe`."""

    @property
    def loader(self) -> str:
        """Which loader made it."""

    @property
    def because(self) -> str:
        """Why not the loader before that one, and what is unusual about its sockets."""

    def watch(self, ports: Iterable[int]) -> None:
        """Sets the watched server ports."""

    def drain(self) -> Iterable[bytes]:
        """Records of requests that ended."""

    def counters(self) -> tuple[int, ...]:
        """The kernel's counters in the order of frames.COUNTER_NAMES."""

    def sweep(self, now_ns: int, idle_ns: int, limit: int) -> Sweep:
        """What is open, and what was given up."""

    def tcp(self) -> dict[int, TcpCounts]:
        """What TCP suffered, by watched port."""

    def close(self) -> None:
        """Ends the tap."""


class WireFeed:
    """A tap as the daemon's probe."""

    keeps: frozenset[Capability] = frozenset()

    def __init__(self, tap: Tap, packets: bool = True) -> None:
        self._tap, self._sweep = tap, Sweep()
        self._packets = packets  # else it sees no TCP

    @property
    def loader(self) -> str:
        """Which loader made the tap."""
        return self._tap.loader

    @property
    def because(self) -> str:
        """Why not the loader before that one, and what is unusual about its sockets."""
        return self._tap.because

    def watch(self, watched: Watched) -> None:
        """Sets the watched ports; processes do not matter to it."""
        self._tap.watch(watched.ports)

    def drain(self) -> Iterator[Report]:
        """Requests that ended."""
        return _reports(self._tap.drain())

    def second(self, now_ns: int) -> Iterator[Report]:
        """Ends of what was given up, progress of what has been open for over a second, and what
        TCP suffered.
        """
        self._sweep = sweep = self._tap.sweep(now_ns, IDLE_NS, OPEN_REPORTS)
        yield from _reports(sweep.lost)
        yield from _reports(r for r in sweep.open if now_ns - _start_of(r) > _YOUNG_NS)
        for port, counts in sorted(self._tap.tcp().items()) if self._packets else ():
            yield Report(frames.pack(FrameType.TCP, pack_tcp({port: counts})), port=port)

    def counters(self) -> Mapping[str, int]:
        """The kernel's counters by name."""
        return dict(zip(frames.COUNTER_NAMES, self._tap.counters(), strict=False))

    def opened(self, ports: Iterable[int]) -> tuple[OpenCount, ...]:
        """How many requests were open on each of these ports at the last sweep."""
        return tuple(self._sweep.of(port) for port in ports)

    def coverage(self) -> Iterable[Coverage]:
        """It watches no processes."""
        return ()

    def close(self) -> None:
        """Ends the tap."""
        self._tap.close()


def _reports(records: Iterable[bytes]) -> Iterator[Report]:
    return (Report(frames.pack_request(record), port=port_of(record)) for record in records)


def _start_of(record: bytes) -> int:
    return int.from_bytes(record[:8], sys.byteorder)


def load(loader: str, network: Network, make: Callable[[str], Tap] = WireProbe) -> WireFeed:
    """The tap of a network namespace; raises NoData when it cannot be loaded there."""
    with within(network):
        return WireFeed(make(loader))
