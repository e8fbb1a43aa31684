"""The user side of the wire tap (``wire.bpf.c``): attaches it, says which ports to watch, drains
finished requests and sweeps the table for long ones.

The tap is an AF_PACKET socket of this network namespace whose filter returns 0: the socket never
receives a byte, and closing it ends the tap. Nothing is pinned.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sidecar.probed import loaders
from sidecar.probed.frames import ENDS, KERNEL_COUNTERS, RECORD_BYTES, Flag, OpenCount
from sidecar.probed.kernel import Map, Ring, bind_all_devices, possible_cpus
from sidecar.probed.loaders import Kind, Program
from sidecar.signals import Absence, End, NoData

PROGRAMS = (Program("wire", Kind.SOCKET_FILTER),)
MAPS = ("ports", "conns", "tallies", "records")
_ETH_P_ALL = 3
_SO_ATTACH_BPF = 50
# struct wire_record: where the sweep writes the end of a request that has none yet.
_START = struct.Struct("=Q")
_END_AT_OFFSET, _PORT_OFFSET, _END_OFFSET, _FLAGS_OFFSET = 40, 82, 86, 87
_ADDRESS = slice(82, 104)  # with the ports before it
# What follows the record in struct conn: touched, client_fin, lock, open, pending, first; waiting.
_STATE = struct.Struct("=QQIBB10xB")
_WAITING_OFFSET, _WAITING = RECORD_BYTES + 48, struct.Struct("=8Q")
_NAMED = 2
UNUSED_NS = 30 * 10**9  # without a request a connection is kept for so long
_BATCH = 256
_ZERO = b"\0\0\0\0"


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found: progress reports of open requests (the oldest first, at most the limit),
    ends of those given up, and by port how many are open in all.
    """

    open: tuple[bytes, ...] = ()
    lost: tuple[bytes, ...] = ()
    counts: Mapping[int, OpenCount] = field(default_factory=dict)

    def of(self, port: int) -> OpenCount:
        """What is open on a port."""
        return self.counts.get(port) or OpenCount(port, 0, 0)


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
        self._loaded = loaded = loaders.load(loader, "wire", PROGRAMS, MAPS)
        self.loader = loaded.loader
        try:
            self.tap = _tap(self.program)
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
        return self._loaded.programs["wire"]

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
        """Looks at every connection once. Forgets those without a packet for ``idle_ns``, whose
        requests end when they were last heard of, and sooner those without a request.
        """
        reports: list[bytes] = []
        lost: list[bytes] = []
        counts: dict[int, OpenCount] = {}
        for keys, values, count in self._conns.batches(_BATCH):
            for i in range(count):
                at = i * self._conns.value_bytes
                state = _STATE.unpack_from(values, at + RECORD_BYTES)
                touched, _, lock, opened, pending, _ = state
                idle = now_ns - touched > (idle_ns if opened == _NAMED else min(idle_ns, UNUSED_NS))
                record = values[at : at + RECORD_BYTES].tobytes()
                if idle and self._give_up(keys[i * self._conns.key_bytes :], state):
                    if opened == _NAMED:
                        waiting = _WAITING.unpack_from(values, at + _WAITING_OFFSET)
                        lost.extend(_ends(record, state, waiting))
                elif opened == _NAMED:
                    _add(counts, record, 1 + pending)
                    if not lock:  # else a packet is being entered: half old, half new
                        reports.append(_ended(record, End.OPEN, now_ns))
        reports.sort(key=_start)
        return Sweep(tuple(reports[:limit]), tuple(lost), counts)

    def _give_up(self, keys: bytes, state: tuple[int, ...]) -> bool:
        """Deletes a connection, unless a packet came meanwhile."""
        key = keys[: self._conns.key_bytes]
        value = self._conns.lookup(key)
        if value is None or _STATE.unpack_from(value, RECORD_BYTES) != state or state[2]:
            return False
        self._conns.delete(key)
        return True

    def close(self) -> None:
        """Ends the tap: the kernel frees the program and its maps with the descriptors."""
        self.tap.close()
        self._ring.close()
        self._loaded.close()


def _start(record: bytes) -> int:
    return int(_START.unpack_from(record)[0])


def _add(counts: dict[int, OpenCount], record: bytes, more: int) -> None:
    port, start = port_of(record), _start(record)
    known = counts.get(port)
    if known is not None:
        more, start = more + known.count, min(start, known.oldest_ns)
    counts[port] = OpenCount(port, more, start)


def _ended(record: bytes, end: End, at_ns: int) -> bytes:
    """A copy of a record in the table, with the end it would have then."""
    copy = bytearray(record)
    _START.pack_into(copy, _END_AT_OFFSET, at_ns)
    copy[_END_OFFSET] = ENDS.index(end)
    return bytes(copy)


def _ends(record: bytes, state: tuple[int, ...], waiting: tuple[int, ...]) -> Iterator[bytes]:
    """The requests of a connection that is given up, timed at the last that was heard of it."""
    touched, client_fin, _, _, pending, first = state
    end = End.CLIENT_GONE if client_fin else End.LOST
    at = max(touched, client_fin)
    yield _ended(record, end, at)
    for i in range(min(pending, len(waiting))):  # of those the head was not kept
        bare = bytearray(RECORD_BYTES)
        _START.pack_into(bare, 0, waiting[(first + i) % len(waiting)])
        bare[_ADDRESS] = record[_ADDRESS]
        bare[_FLAGS_OFFSET] = record[_FLAGS_OFFSET] & Flag.IPV6 | Flag.RESYNCED
        yield _ended(bytes(bare), end, at)
