"""The user side of the wire tap (``wire.bpf.c``): attaches it, says which ports to watch, drains
finished requests and sweeps the table for long ones.

The tap is an AF_PACKET socket of this network namespace whose filter returns 0: the socket never
receives a byte, and closing it ends the tap. Nothing is pinned.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sidecar.probed import loaders
from sidecar.probed.frames import ENDS, KERNEL_COUNTERS, RECORD_BYTES
from sidecar.probed.kernel import Map, Ring, bind_all_devices, possible_cpus
from sidecar.signals import Absence, End, NoData

MAPS = ("ports", "conns", "tallies", "records")
_ETH_P_ALL = 3
_SO_ATTACH_BPF = 50
# struct wire_record: where the sweep writes the end of a request that has none yet.
_START = struct.Struct("=Q")
_END_AT_OFFSET, _PORT_OFFSET, _END_OFFSET = 40, 82, 86
# What follows the record in struct conn: touched, client_fin, open.
_STATE = struct.Struct("=QQB")
_NAMED = 2
_BATCH = 256
_ZERO = b"\0\0\0\0"


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found: progress reports of open requests (the oldest first, at most the limit),
    ends of those given up, and how many are open in all.
    """

    open: tuple[bytes, ...]
    lost: tuple[bytes, ...]
    count: int
    oldest_ns: int


def port_of(record: bytes) -> int:
    """The server port of a record."""
    return int.from_bytes(record[_PORT_OFFSET : _PORT_OFFSET + 2], "little")


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


class WireProbe:
    """The loaded tap. Raises NoData when it cannot be loaded, attached or read."""

    name = "wire"

    def __init__(self, loader: str, cpus: Path = Path("/sys/devices/system/cpu/possible")) -> None:
        self._loaded = loaded = loaders.load(loader, "wire", MAPS)
        self.loader = loaded.loader
        try:
            self.tap = _tap(loaded.program)
            self._ports, self._conns = Map(loaded.maps["ports"]), Map(loaded.maps["conns"])
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
        return self._loaded.program

    def watch(self, ports: Iterable[int]) -> None:
        """Sets the watched server ports; requests in flight on others end as LOST in time."""
        wanted = frozenset(ports)
        for port in self._watched - wanted:
            self._ports.delete(struct.pack("=H", port))
        for port in wanted - self._watched:
            self._ports.update(struct.pack("=H", port), b"\1")
        self._watched = wanted

    def drain(self) -> Iterator[bytes]:
        """The records of requests that ended since the last call."""
        return self._ring.drain()

    def counters(self) -> tuple[int, ...]:
        """The kernel's counters, summed over CPUs, in the order of frames.COUNTER_NAMES."""
        raw = self._tallies.lookup(_ZERO) or b""
        values = struct.unpack(f"={len(raw) // 8}Q", raw)
        return tuple(sum(values[i::KERNEL_COUNTERS]) for i in range(KERNEL_COUNTERS))

    def sweep(self, now_ns: int, idle_ns: int, limit: int) -> Sweep:
        """Looks at every connection once; forgets those without a packet for ``idle_ns``."""
        reports: list[bytes] = []
        lost: list[bytes] = []
        starts: list[tuple[int, int]] = []
        for keys, values, count in self._conns.batches(_BATCH):
            for i in range(count):
                at = i * self._conns.value_bytes
                touched, client_fin, state = _STATE.unpack_from(values, at + RECORD_BYTES)
                idle = now_ns - touched > idle_ns
                if state == _NAMED:
                    end = End.OPEN if not idle else End.CLIENT_GONE if client_fin else End.LOST
                    record = _ended(values[at : at + RECORD_BYTES], end, now_ns)
                    (lost if idle else reports).append(record)
                    starts.append((_START.unpack_from(record)[0], len(starts)))
                if idle:
                    self._conns.delete(keys[i * self._conns.key_bytes :][: self._conns.key_bytes])
        reports.sort(key=_start)
        oldest = max(now_ns - _start(reports[0]), 0) if reports else 0
        return Sweep(tuple(reports[:limit]), tuple(lost), len(reports), oldest)

    def close(self) -> None:
        """Ends the tap: the kernel frees the program and its maps with the descriptors."""
        self.tap.close()
        self._ring.close()
        self._loaded.close()


def _start(record: bytes) -> int:
    return int(_START.unpack_from(record)[0])


def _ended(record: memoryview, end: End, now_ns: int) -> bytes:
    """A copy of a record in the table, with the end it would have now."""
    copy = bytearray(record)
    _START.pack_into(copy, _END_AT_OFFSET, now_ns)
    copy[_END_OFFSET] = ENDS.index(end)
    return bytes(copy)
