"""Made-up TCP segments for the socket filter, run through BPF_PROG_TEST_RUN: every order, loss
and copy of packets can be played, and no test waits for anything.
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import itertools
import os
import struct
from dataclasses import dataclass

from sidecar.probed import frames
from sidecar.probed.frames import Counters
from sidecar.probed.wire import WireProbe
from sidecar.signals import Leg, RequestTiming

PORT = 18080
SERVER, CLIENT = "192.0.2.1", "198.51.100."
FIN, SYN, RST, ACK = 1, 2, 4, 16
LIMIT = 3000  # of a test run's packet: one page less the kernel's own
_TEST_RUN = 10
_ports = itertools.count(20000)
_libc = ctypes.CDLL(None, use_errno=True)


def run_filter(program: int, frame: bytes) -> int:
    """Runs the filter over an Ethernet frame and returns the nanoseconds it took."""
    data = ctypes.create_string_buffer(frame, len(frame))
    attr = ctypes.create_string_buffer(
        struct.pack("=IIIIQQII", program, 0, len(frame), 0, ctypes.addressof(data), 0, 1, 0)
        + b"\0" * 40
    )
    if _libc.syscall(321 if os.uname().machine == "x86_64" else 280, _TEST_RUN, attr, 80) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"test run: {os.strerror(code)}")
    returned, duration = struct.unpack_from("=I", attr, 4)[0], struct.unpack_from("=I", attr, 36)
    if returned != 0:
        raise OSError(errno.EIO, f"the filter returned {returned}: packets would be copied")
    return int(duration[0])


def ethernet(packet: bytes, protocol: int, vlan: tuple[int, ...] = ()) -> bytes:
    """An Ethernet frame, with VLAN tags of the given types before the protocol."""
    types = struct.pack(">H", protocol)
    for tag in reversed(vlan):
        types = struct.pack(">HH", tag, 5) + types
    return b"\2\0\0\0\0\1\2\0\0\0\0\2" + types + packet


@dataclass
class Flow:
    """One end of a connection: what it sends, with its own sequence numbers."""

    tap: Tap
    source: tuple[str, int]
    target: tuple[str, int]
    seq: int
    peer: Flow | None = None
    vlan: tuple[int, ...] = ()
    extension: bytes = b""
    padding: bytes = b""

    def segment(self, payload: bytes, flags: int, seq: int | None = None) -> bytes:
        """A whole frame. ``extension`` are IPv6 extension headers, the last one leading to TCP."""
        at = self.seq if seq is None else seq
        ack = self.peer.seq if self.peer else 0
        ports = (self.source[1], self.target[1])
        tcp = struct.pack(">HHIIBBHHH", *ports, at % 2**32, ack % 2**32, 0x80, flags, 65535, 0, 0)
        tcp += b"\1" * 12 + payload  # twelve bytes of options
        pair = [ipaddress.ip_address(end[0]).packed for end in (self.source, self.target)]
        if len(pair[0]) == 4:
            head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0x4000, 64, 6, 0)
            return ethernet(head + b"".join(pair) + tcp + self.padding, 0x0800, self.vlan)
        following = (self.extension[:1] and b"\0") or b"\6"
        head = struct.pack(">IH", 6 << 28, len(self.extension) + len(tcp)) + following + b"\x40"
        return ethernet(head + b"".join(pair) + self.extension + tcp, 0x86DD, self.vlan)

    def send(self, payload: bytes, flags: int = ACK, copies: int = 1, size: int = LIMIT) -> None:
        """Sends bytes in segments of up to ``size``, each seen ``copies`` times as on ``lo``."""
        for start in range(0, len(payload), size) or (0,):
            part = payload[start : start + size]
            last = start + size >= len(payload)
            frame = self.segment(part, flags if last else ACK)
            for _ in range(copies):
                self.tap.run(frame)
            self.seq += len(part)
        self.seq += bool(flags & (SYN | FIN))

    def fin(self) -> None:
        """Says that this end sends no more."""
        self.send(b"", FIN | ACK)

    def reset(self) -> None:
        """Ends the connection at once."""
        self.send(b"", RST | ACK)

    def skip(self, count: int) -> None:
        """Bytes that the tap does not get to see."""
        self.seq += count


class Tap:
    """The filter and what came out of it."""

    def __init__(self, probe: WireProbe) -> None:
        self.probe = probe
        probe.watch([PORT])
        list(probe.drain())
        self.nanoseconds: list[int] = []
        self._ports = _ports
        self._before = self._read()

    def restart_ports(self) -> None:
        """Numbers the clients' ports anew, in a range of this tap's own."""
        self._ports = itertools.count(5000)

    def run(self, frame: bytes) -> None:
        """One packet."""
        self.nanoseconds.append(run_filter(self.probe.program, frame))

    def connect(self, *, opened: bool = True, **options: object) -> tuple[Flow, Flow]:
        """A new connection as (client, server). Not ``opened``: the tap came late to it."""
        six = bool(options.pop("ipv6", False))
        number = next(self._ports)
        host = 7 + number // 45_000 % 200  # a client has so many ports only
        client = (f"2001:db8::{host:x}" if six else f"{CLIENT}{host}", 20_000 + number % 45_000)
        server = ("2001:db8::1" if six else SERVER, PORT)
        a = Flow(self, client, server, 2**32 - 90, **options)  # type: ignore[arg-type]  # test
        b = Flow(self, server, client, 2**31 - 40, a, **options)  # type: ignore[arg-type]  # test
        a.peer = b
        if opened:
            a.send(b"", SYN, copies=2)
            b.send(b"", SYN | ACK, copies=2)
        return a, b

    def _read(self) -> tuple[int, ...]:
        return self.probe.counters()

    def counted(self) -> Counters:
        """What was counted since this fixture began."""
        return Counters(*(b - a for a, b in zip(self._before, self._read(), strict=True)))

    def records(self) -> list[RequestTiming]:
        """The requests that ended."""
        return [self.decode(record) for record in self.probe.drain()]

    def decode(self, record: bytes) -> RequestTiming:
        """A record as the sidecar sees it."""
        frame = frames.pack_request(record)
        return frames.unpack_request(frame, {PORT: Leg.UPSTREAM}, 0.0)

    def only(self) -> RequestTiming:
        """The one request that ended."""
        (record,) = self.records()
        return record

    def forget_all(self) -> None:
        """Empties the table: a sweep for which every connection is idle."""
        self.probe.sweep(2**63, 0, 0)
        list(self.probe.drain())


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


def chunk(data: bytes) -> bytes:
    """One chunk of chunked framing."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def token(text: str = "a") -> bytes:
    """An event with generated text, as the OpenAI protocol has it."""
    return b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % text.encode()


DONE = b"data: [DONE]\n\n"
LAST = b"0\r\n\r\n"
