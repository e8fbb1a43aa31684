"""The frames between ``probed`` and the sidecar over a ``SOCK_SEQPACKET`` Unix socket.

Every frame is ``FRAME_BYTES`` long: a header (magic, version, type) and one body, zero padded.
The REQUEST body is the kernel's own ``struct wire_record``, passed through untouched; decoding it
here keeps the privileged side free of parsing. Layouts are native-endian: both ends share a kernel.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, fields
from enum import IntEnum

from sidecar import gaps
from sidecar.probed.targets import MAX_SELECTORS, VALUE_BYTES, By, Selector
from sidecar.signals import End, Leg, RequestTiming

MAGIC = 0x6D70
VERSION = 4
FRAME_BYTES = 960
MAX_PORTS = 32

_HEADER = struct.Struct("=HBB4x")
HEADER_BYTES = _HEADER.size
_SELECTOR = struct.Struct(f"=BB{VALUE_BYTES}s")
_PORT = struct.Struct("=HB")
_OPEN = struct.Struct("=HIQ")
_NO_REQUESTS = 0x80  # a bit of a WATCH frame's count of ports
# The layout of struct wire_record in wire.bpf.c; tests compare it with the object's BTF.
_RECORD = struct.Struct(f"=9Q2I3H2B16s8s64s56s40s{gaps.BUCKETS}HI2Q")
RECORD_BYTES = _RECORD.size


class FrameType(IntEnum):
    """What a frame carries and who sends it."""

    WATCH = 1  # sidecar -> probed: the ports and processes to watch, replacing earlier ones
    STATUS = 2  # probed -> sidecar: once a second for each probe, also the heartbeat
    REQUEST = 3  # probed -> sidecar: one request ended, or one still open reports
    COVERAGE = 4  # probed -> sidecar: once a second for each probe and process, see coverage.py
    SCHED = 5  # probed -> sidecar: once a second for each process, see sched_frames.py
    PROCESS = 6  # probed -> sidecar: a process ended or was replaced, see sched_frames.py
    TCP = 7  # probed -> sidecar: once a second for each port, see tcp_counts.py


class Flag(IntEnum):
    """Bits of ``wire_record.flags``."""

    IPV6 = 1
    STREAMED = 2
    ENCODED = 4
    RESYNCED = 8
    TLS = 16


# wire_record.end is an index into this.
ENDS = (End.OPEN, End.COMPLETE, End.CLIENT_GONE, End.SERVER_CLOSED, End.ERROR_EVENT, End.LOST)
_LEGS = (Leg.DOWNSTREAM, Leg.UPSTREAM)


class FrameError(ValueError):
    """A frame of another size, magic, version or type than ours."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What the tap counted since it was loaded; every drop has its own name."""

    packets: int = 0  # of watched ports, copies included
    requests: int = 0
    events: int = 0
    lost_records: int = 0  # the ring was full
    table_full: int = 0  # requests not tracked: too many connections
    not_http: int = 0
    blind_tls: int = 0
    blind_http2: int = 0
    resyncs: int = 0  # bytes missed, reordered or framed against the standard
    pipelined: int = 0  # requests sent before the last was answered: head not kept
    contended: int = 0  # packets not read: another CPU held their connection for too long
    unclassified: int = 0  # events not told apart within the bounds of the search
    folded: int = 0  # connections given up to make room for new ones
    frames_dropped: int = 0  # the sidecar read too slowly


COUNTER_NAMES = tuple(f.name for f in fields(Counters))
KERNEL_COUNTERS = COUNTER_NAMES.index("frames_dropped")  # those before it are the kernel's
_STATUS = struct.Struct(f"=16s16s16s{len(COUNTER_NAMES)}Q256sB")


@dataclass(frozen=True, slots=True)
class OpenCount:
    """The requests of a watched server port that have begun and not ended, those that wait behind
    another on their connection too. ``oldest_ns`` is when the oldest began, in nanoseconds of
    CLOCK_MONOTONIC; 0 when none is open.
    """

    port: int
    count: int
    oldest_ns: int


@dataclass(frozen=True, slots=True)
class Status:
    """How one probe fares. ``absence`` is empty while it works, and ``reason`` then says how it was
    loaded; else ``absence`` is an ``Absence`` value and ``reason`` says what to do about it.
    ``loader`` is ``prebuilt``, ``bcc`` or empty. ``open`` has an entry for each port that the
    client watches, as of the last second; none while the probe is absent.
    """

    probe: str
    loader: str
    absence: str
    counters: Counters
    reason: str
    open: tuple[OpenCount, ...] = ()


def text(raw: bytes) -> str:
    """A text field, up to its first zero byte. Processes and clients choose what many of them hold,
    and it goes to terminals and logs: what does not print (control characters, escapes, marks that
    turn the direction of writing) becomes U+FFFD.
    """
    found = raw.split(b"\0", 1)[0].decode("utf-8", "replace")
    if found.isprintable():  # nearly all
        return found
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in found)


def pack(kind: FrameType, body: bytes) -> bytes:
    """A frame around a body of at most FRAME_BYTES - HEADER_BYTES."""
    return (_HEADER.pack(MAGIC, VERSION, kind) + body).ljust(FRAME_BYTES, b"\0")


@dataclass(frozen=True, slots=True)
class Watch:
    """What a client asks for: server ports with their legs, and processes. Without ``requests``
    only the processes of the ports are meant, and no frames of what passes them are sent.
    """

    ports: dict[int, Leg]
    selectors: tuple[Selector, ...] = ()
    requests: bool = True


def pack_watch(watch: Watch) -> bytes:
    """The frame that asks for it; raises ValueError above MAX_PORTS or MAX_SELECTORS."""
    if len(watch.ports) > MAX_PORTS:
        raise ValueError(f"{len(watch.ports)} ports, at most {MAX_PORTS} can be watched")
    if len(watch.selectors) > MAX_SELECTORS:
        raise ValueError(f"{len(watch.selectors)} selectors, at most {MAX_SELECTORS} are taken")
    ports = (_PORT.pack(port, _LEGS.index(leg)) for port, leg in sorted(watch.ports.items()))
    chosen = b"".join(_pack_selector(selector) for selector in watch.selectors)
    flag = 0 if watch.requests else _NO_REQUESTS
    head = bytes([len(watch.ports) | flag, len(watch.selectors)])
    return pack(FrameType.WATCH, head + b"".join(ports) + chosen)


def _pack_selector(selector: Selector) -> bytes:
    value = selector.value.encode()
    if len(value) > VALUE_BYTES:
        raise ValueError(f"{selector}: longer than {VALUE_BYTES} bytes")
    return _SELECTOR.pack(selector.by, len(value), value)


def pack_status(status: Status) -> bytes:
    """One probe's status; over-long texts are cut. Raises ValueError above MAX_PORTS."""
    if len(status.open) > MAX_PORTS:
        raise ValueError(f"{len(status.open)} ports, at most {MAX_PORTS} can be watched")
    body = _STATUS.pack(
        status.probe.encode(),
        status.loader.encode(),
        status.absence.encode(),
        *(getattr(status.counters, name) for name in COUNTER_NAMES),
        status.reason.encode()[:255],
        len(status.open),
    )
    opened = (_OPEN.pack(entry.port, entry.count, entry.oldest_ns) for entry in status.open)
    return pack(FrameType.STATUS, body + b"".join(opened))


def pack_request(record: bytes) -> bytes:
    """A kernel record as it came out of the ring."""
    if len(record) < RECORD_BYTES:
        raise FrameError(f"record of {len(record)} bytes, {RECORD_BYTES} wanted")
    return pack(FrameType.REQUEST, record[:RECORD_BYTES])


def frame_type(frame: bytes) -> FrameType:
    """The type of a frame; raises FrameError for anything that is not one of ours."""
    if len(frame) != FRAME_BYTES:
        raise FrameError(f"frame of {len(frame)} bytes, {FRAME_BYTES} wanted")
    magic, version, kind = _HEADER.unpack_from(frame)
    if magic != MAGIC:
        raise FrameError(f"magic {magic:#06x} is not ours")
    if version != VERSION:
        raise FrameError(f"peer speaks version {version}, we speak {VERSION}: upgrade the older")
    try:
        return FrameType(kind)
    except ValueError as error:
        raise FrameError(f"frame type {kind} is unknown") from error


def unpack_watch(frame: bytes) -> Watch:
    """What a WATCH frame asks for; raises FrameError on a bad count, port, leg or selector."""
    count, chosen = frame[HEADER_BYTES] & ~_NO_REQUESTS, frame[HEADER_BYTES + 1]
    if count > MAX_PORTS:
        raise FrameError(f"{count} ports, at most {MAX_PORTS} can be watched")
    if chosen > MAX_SELECTORS:
        raise FrameError(f"{chosen} selectors, at most {MAX_SELECTORS} are taken")
    at = HEADER_BYTES + 2
    ports: dict[int, Leg] = {}
    for i in range(count):
        port, leg = _PORT.unpack_from(frame, at + i * _PORT.size)
        if port == 0 or leg >= len(_LEGS):
            raise FrameError(f"port {port} with leg {leg} is not valid")
        ports[port] = _LEGS[leg]
    at += count * _PORT.size
    selectors = tuple(_unpack_selector(frame, at + i * _SELECTOR.size) for i in range(chosen))
    return Watch(ports, selectors, not frame[HEADER_BYTES] & _NO_REQUESTS)


def _unpack_selector(frame: bytes, at: int) -> Selector:
    by, length, raw = _SELECTOR.unpack_from(frame, at)
    try:
        selector = Selector(By(by), raw[:length].decode())
    except ValueError as error:  # UnicodeDecodeError is one
        raise FrameError(f"a selector by {by} that is none") from error
    if not selector.value:
        raise FrameError(f"an empty selector by {selector.by.name.lower()}")
    number = selector.value.isascii() and selector.value.isdigit()
    if selector.by in (By.PORT, By.PID) and not number:
        raise FrameError(f"{selector} is no number")
    return selector


def unpack_status(frame: bytes) -> Status:
    """The body of a STATUS frame; raises FrameError on a bad count of ports."""
    probe, loader, absence, *counters, reason, count = _STATUS.unpack_from(frame, _HEADER.size)
    if count > MAX_PORTS:
        raise FrameError(f"{count} ports, at most {MAX_PORTS} can be watched")
    at = _HEADER.size + _STATUS.size
    opened = (OpenCount(*_OPEN.unpack_from(frame, at + i * _OPEN.size)) for i in range(count))
    return Status(
        text(probe),
        text(loader),
        text(absence),
        Counters(*counters),
        text(reason),
        tuple(opened),
    )


def _since(start: int, then: int) -> float | None:
    return (then - start) / 1e9 if then else None


def _trace_id(traceparent: str) -> str | None:
    """The trace id of a W3C traceparent, None unless it is well formed."""
    parts = traceparent.lower().split("-")
    if len(parts) < 4 or len(parts[1]) != 32 or set(parts[1]) - set("0123456789abcdef"):
        return None
    return parts[1] if parts[1].strip("0") else None


def _server(address: bytes, port: int, flags: int) -> str:
    if flags & Flag.IPV6:
        return f"[{ipaddress.IPv6Address(address)}]:{port}"
    return f"{ipaddress.IPv4Address(address[:4])}:{port}"


def unpack_request(frame: bytes, ports: dict[int, Leg], unix_offset: float) -> RequestTiming:
    """The timing in a REQUEST frame. ``unix_offset`` is Unix time minus CLOCK_MONOTONIC in
    seconds. Raises FrameError when the port is not watched or a field is out of range.
    """
    raw = _RECORD.unpack_from(frame, _HEADER.size)
    start, byte0, _event0, token0, token_last, end_ns, largest, sent, received = raw[:9]
    events, token_events, status, port, _client_port, end, flags = raw[9:16]
    address, method, path, traceparent, request_id = raw[16:21]
    *counts, unclassified, body_key, response_key = raw[21:]
    if port not in ports or end >= len(ENDS):
        raise FrameError(f"record of port {port} with end {end}")
    if end_ns < start or any(0 < at < start for at in (byte0, token0, token_last)):
        raise FrameError(f"record of port {port} with a time before its start")
    if token_events > events:
        raise FrameError(f"record of port {port}: {token_events} of {events} events are tokens")
    return RequestTiming(
        at=start / 1e9 + unix_offset,
        leg=ports[port],
        server=_server(address, port, flags),
        method=text(method),
        path=text(path),
        status=status or None,
        end=ENDS[end],
        seconds=(end_ns - start) / 1e9,
        ttfb_seconds=_since(start, byte0),
        ttft_seconds=_since(start, token0),
        last_token_seconds=_since(start, token_last),
        events=events,
        token_events=token_events,
        gaps=tuple((i, n) for i, n in enumerate(counts) if n),
        largest_gap_seconds=largest / 1e9 if token_events > 1 else None,
        request_bytes=sent,
        response_bytes=received,
        trace_id=_trace_id(text(traceparent)),
        request_id=text(request_id) or None,
        streamed=bool(flags & Flag.STREAMED),
        encoded=bool(flags & Flag.ENCODED),
        resynced=bool(flags & Flag.RESYNCED),
        body_key=body_key or None,
        response_key=response_key or None,
        unclassified=unclassified,
        tls=bool(flags & Flag.TLS),
    )
