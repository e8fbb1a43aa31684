"""What TCP suffered on a watched port, and the bytes in which it travels to the sidecar.

The kernel counts it from the packets that the tap reads anyway (``wire_health.h``): nobody else on
the machine pays for it, and only connections of this network namespace count.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace

HANDSHAKE_BUCKETS = 26
BODY_BYTES = 940  # of a frame, at most


@dataclass(frozen=True, slots=True)
class TcpCounts:
    """Cumulative counts of one server port since it is watched. What leaves this network namespace
    is *sent*, what comes in *received*; on loopback all is sent. Segments are those with data.

    ``handshakes[i]`` counts connects whose SYN was answered in less than 2**i microseconds and not
    less than the bucket before; the last one counts all longer ones. ``handshake_ns`` is their sum.
    """

    connects: int = 0  # SYNs, each counted once
    connect_failures: int = 0  # SYNs answered by RST
    syn_retransmits: int = 0
    retransmits_sent: int = 0  # segments, on connections that are followed
    retransmits_received: int = 0
    reordered: int = 0  # segments that were overtaken by less than 3 ms
    resets_by_client: int = 0
    resets_by_server: int = 0
    zero_windows_by_client: int = 0  # times that it took no more: a slow reader
    zero_windows_by_server: int = 0
    handshake_ns: int = 0
    handshakes: tuple[int, ...] = (0,) * HANDSHAKE_BUCKETS


COUNTS = len(fields(TcpCounts)) - 1 + HANDSHAKE_BUCKETS
_VALUE = struct.Struct(f"={COUNTS}Q")  # struct tcp_counts of wire_state.h
VALUE_BYTES = _VALUE.size
_COUNT, _PORT = struct.Struct("=B"), struct.Struct("=H")
MAX_PORTS_A_BODY = (BODY_BYTES - _COUNT.size) // (_PORT.size + VALUE_BYTES)


def from_kernel(value: bytes) -> TcpCounts:
    """A value of the map ``healths``; struct.error when it has another size."""
    numbers = _VALUE.unpack(value)
    counts = TcpCounts(*numbers[:-HANDSHAKE_BUCKETS])
    return replace(counts, handshakes=numbers[-HANDSHAKE_BUCKETS:])


def pack_tcp(counts: Mapping[int, TcpCounts]) -> bytes:
    """The body of a frame with the counts of up to MAX_PORTS_A_BODY ports; raises ValueError above
    that and on a port or count beyond range.
    """
    if len(counts) > MAX_PORTS_A_BODY:
        raise ValueError(f"{len(counts)} ports, a frame holds {MAX_PORTS_A_BODY}: send several")
    parts = [_COUNT.pack(len(counts))]
    for port, one in sorted(counts.items()):
        *numbers, handshakes = astuple(one)
        try:
            parts.append(_PORT.pack(port) + _VALUE.pack(*numbers, *handshakes))
        except struct.error as error:
            raise ValueError(f"counts of port {port} cannot be packed: {error}") from error
    return b"".join(parts)


def unpack_tcp(body: bytes) -> dict[int, TcpCounts]:
    """The counts by port of a body that may be padded; raises ValueError on a bad count of ports,
    on port 0 and on a body that is cut short.
    """
    count = body[0] if body else 0
    size = _PORT.size + VALUE_BYTES
    if not body or count > MAX_PORTS_A_BODY or len(body) < _COUNT.size + count * size:
        raise ValueError(f"TCP counts of {count} ports in a body of {len(body)} bytes")
    found: dict[int, TcpCounts] = {}
    for at in range(_COUNT.size, _COUNT.size + count * size, size):
        (port,) = _PORT.unpack_from(body, at)
        if port == 0:
            raise ValueError("TCP counts of port 0")
        found[port] = from_kernel(body[at + _PORT.size : at + size])
    return found
