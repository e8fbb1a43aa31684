"""The user side of the wire tap (``wire.bpf.c``): attaches it, says which ports to watch, drains
finished requests and sweeps the table for long ones.

The tap is the filter of AF_PACKET sockets of this network namespace, see devices.py. It returns 0:
they never receive a byte, and closing them ends the tap. Nothing is pinned.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from sidecar.probed import loaders
from sidecar.probed.devices import Devices
from sidecar.probed.frames import COUNTER_NAMES, KERNEL_COUNTERS
from sidecar.probed.kernel import Map, Ring, possible_cpus
from sidecar.probed.loaders import Kind, Loaded, Program
from sidecar.probed.tcp_counts import TcpCounts, from_kernel
from sidecar.probed.wire_table import Sweep, Table
from sidecar.signals import Absence, End, NoData

PROGRAMS = (Program("wire", Kind.SOCKET_FILTER),)
MAPS = ("ports", "conns", "tallies", "records", "secrets", "healths")
SECRET_BYTES = 132 * 8  # struct secret
_ZERO = b"\0\0\0\0"
_FOLDED = COUNTER_NAMES.index("folded")


@cache
def own_secret() -> bytes:
    """One for all taps of the process, so that a request has the same keys in TLS and without."""
    return os.urandom(SECRET_BYTES)


class Place(Protocol):
    """Where the program is put, and what that says of itself."""

    @property
    def reason(self) -> str:
        """What is unusual about it; empty when nothing is."""

    def follow(self) -> None:
        """Looks whether there is more to be put in place."""

    def close(self) -> None:
        """Takes it out."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source with the maps of ``wire_state.h`` (and ``more``), and how it is put in place."""

    stem: str
    programs: tuple[Program, ...]
    attach: Callable[[Loaded], Place]
    more: tuple[str, ...] = ()


def _on_packets(loaded: Loaded) -> Devices:
    return Devices(loaded.programs["wire"])


PACKETS = Source("wire", PROGRAMS, _on_packets)


class WireProbe:
    """The loaded tap. Raises NoData when it cannot be loaded, attached or read. ``secret`` hides
    what the hashes of bodies and ids are of: the process's own unless a test brings another.
    """

    name = "wire"

    def __init__(
        self,
        loader: str,
        cpus: Path = Path("/sys/devices/system/cpu/possible"),
        secret: bytes | None = None,
        source: Source = PACKETS,
    ) -> None:
        maps = MAPS + source.more
        self._loaded = loaded = loaders.load(loader, source.stem, source.programs, maps)
        self.loader = loaded.loader
        try:
            Map(loaded.maps["secrets"]).update(_ZERO, secret or own_secret())
            self._ports, self._conns = Map(loaded.maps["ports"]), Map(loaded.maps["conns"])
            self._healths, self._table = Map(loaded.maps["healths"]), Table(self._conns)
            self._tallies = Map(loaded.maps["tallies"], possible_cpus(cpus.read_text()))
            records = loaded.maps["records"]
            self._ring = Ring(records, Map(records).max_entries)
            self.place = source.attach(loaded)  # last: from here on packets are read
        except (NoData, OSError) as error:
            loaded.close()
            if isinstance(error, NoData):
                raise
            raise NoData(Absence.UNSUPPORTED, f"the tap cannot be set up: {error}") from error
        self._watched: frozenset[int] = frozenset()

    @property
    def because(self) -> str:
        """Why not the loader before that one, and what is unusual about its place."""
        return "; ".join(filter(None, (self._loaded.because, self.place.reason)))

    @property
    def program(self) -> int:
        """The filter's descriptor, for BPF_PROG_TEST_RUN."""
        return self._loaded.programs["wire"]

    def watch(self, ports: Iterable[int]) -> None:
        """Sets the watched server ports; requests in flight on others end as LOST in time."""
        wanted = frozenset(ports)
        for port in self._watched - wanted:
            self._ports.delete(struct.pack("=H", port))
            self._healths.delete(struct.pack("=H", port))
        for port in wanted - self._watched:
            self._healths.update(struct.pack("=H", port), bytes(self._healths.value_bytes))
            self._ports.update(struct.pack("=H", port), b"\1")
        self._watched = wanted

    def drain(self) -> Iterator[bytes]:
        """The records of requests that ended since the last call."""
        return self._ring.drain()

    def counters(self) -> tuple[int, ...]:
        """The kernel's counters, summed over CPUs, and the table's, in the order of
        frames.COUNTER_NAMES.
        """
        raw = self._tallies.lookup(_ZERO) or b""
        values = struct.unpack(f"={len(raw) // 8}Q", raw)
        sums = [sum(values[i::KERNEL_COUNTERS]) for i in range(KERNEL_COUNTERS)]
        sums[_FOLDED] += self._table.folded
        return tuple(sums)

    def sweep(self, now_ns: int, idle_ns: int, limit: int) -> Sweep:
        """See :meth:`sidecar.probed.wire_table.Table.sweep`. Devices that came are taken up."""
        self.place.follow()
        return self._table.sweep(now_ns, idle_ns, limit)

    def tcp(self) -> dict[int, TcpCounts]:
        """What TCP suffered on each watched port, cumulative since it is watched."""
        found = ((port, self._healths.lookup(struct.pack("=H", port))) for port in self._watched)
        return {port: from_kernel(value) for port, value in found if value is not None}

    def drop(self, end_of: Callable[[bytes], End | None]) -> tuple[bytes, ...]:
        """See :meth:`sidecar.probed.wire_table.Table.drop`."""
        return self._table.drop(end_of)

    def close(self) -> None:
        """Ends the tap: the kernel frees the program and its maps with the descriptors."""
        self.place.close()
        self._ring.close()
        self._loaded.close()
