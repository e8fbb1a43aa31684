"""The user side of the wire tap (``wire.bpf.c``): attaches it, says which ports to watch, drains
finished requests and sweeps the table for long ones.

The tap is an AF_PACKET socket of this network namespace whose filter returns 0: the socket never
receives a byte, and closing it ends the tap. Nothing is pinned.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sidecar.probed import loaders
from sidecar.probed.frames import COUNTER_NAMES, KERNEL_COUNTERS
from sidecar.probed.kernel import Map, Ring, bind_all_devices, possible_cpus
from sidecar.probed.loaders import Kind, Loaded, Program
from sidecar.probed.tcp_counts import TcpCounts, from_kernel
from sidecar.probed.wire_table import Sweep, Table
from sidecar.signals import Absence, End, NoData

PROGRAMS = (Program("wire", Kind.SOCKET_FILTER),)
MAPS = ("ports", "conns", "tallies", "records", "secrets", "healths")
SECRET_BYTES = 132 * 8  # struct secret
_ETH_P_ALL = 3
_SO_ATTACH_BPF = 50
_ZERO = b"\0\0\0\0"
_FOLDED = COUNTER_NAMES.index("folded")


def _tap(program: int) -> socket.socket:
    """The packet socket. It is bound last, so that no packet comes before the filter."""
    try:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    except PermissionError as error:
        raise NoData(
            Absence.NO_PERMISSION,
            "no packet socket: give the process CAP_NET_RAW "
            "(container: securityContext.capabilities.add; by hand: run as root)",
        ) from error
    try:
        tap.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, program)
        bind_all_devices(tap.fileno(), _ETH_P_ALL)
    except OSError as error:
        tap.close()
        raise NoData(Absence.UNSUPPORTED, f"the tap cannot be attached: {error}") from error
    return tap


class Tap(Protocol):
    """What holds the program in its place."""

    def close(self) -> None:
        """Takes it out."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source with the maps of ``wire_state.h`` (and ``more``), and how it is put in place."""

    stem: str
    programs: tuple[Program, ...]
    attach: Callable[[Loaded], Tap]
    more: tuple[str, ...] = ()


def _on_packets(loaded: Loaded) -> Tap:
    return _tap(loaded.programs["wire"])


PACKETS = Source("wire", PROGRAMS, _on_packets)


class WireProbe:
    """The loaded tap. Raises NoData when it cannot be loaded, attached or read. ``secret`` hides
    what the hashes of bodies and ids are of: SECRET_BYTES, made anew unless a test brings its own.
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
        self.loader, self.because = loaded.loader, loaded.because
        try:
            Map(loaded.maps["secrets"]).update(_ZERO, secret or os.urandom(SECRET_BYTES))
            self.tap = source.attach(loaded)
            self._ports, self._conns = Map(loaded.maps["ports"]), Map(loaded.maps["conns"])
            self._healths, self._table = Map(loaded.maps["healths"]), Table(self._conns)
            self._tallies = Map(loaded.maps["tallies"], possible_cpus(cpus.read_text()))
            records = loaded.maps["records"]
            self._ring = Ring(records, Map(records).max_entries)
        except (NoData, OSError) as error:
            loaded.close()
            if isinstance(error, NoData):
                raise
            raise NoData(Absence.UNSUPPORTED, f"the tap cannot be set up: {error}") from error
        self._watched: frozenset[int] = frozenset()

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
        """See :meth:`sidecar.probed.wire_table.Table.sweep`."""
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
        self.tap.close()
        self._ring.close()
        self._loaded.close()
