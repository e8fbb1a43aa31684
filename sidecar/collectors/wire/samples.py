"""What a status of a wire probe, and TCP's counts of a port, say as samples."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from sidecar.probed import frames, link
from sidecar.probed.frames import Status
from sidecar.probed.tcp_counts import TcpCounts
from sidecar.signals import (
    CollectorState,
    Coverage,
    Histogram,
    Kind,
    Leg,
    Metric,
    OpenRequests,
    Sample,
    Signal,
)

INFO = Metric(
    "modelprobe_probe_info",
    Kind.GAUGE,
    "1; a loaded kernel program and the loader that brought it in.",
    ("probe", "loader"),
)
BAD_FRAMES = Metric(
    "modelprobe_probe_bad_frames_total",
    Kind.COUNTER,
    "Frames of probed that could not be read.",
    (),
)
_COUNTER_HELP = {
    "packets": "Packets of watched ports that the program looked at.",
    "requests": "Requests whose head was seen.",
    "events": "Server-sent events counted in the kernel.",
    "lost_records": "Ended requests lost because the ring was full.",
    "table_full": "Connections not followed because the table was full.",
    "not_http": "Connections whose first bytes were not HTTP/1.",
    "blind_tls": "Connections that are TLS: the tap cannot read them.",
    "blind_http2": "Connections that are HTTP/2: the tap does not read it yet.",
    "resyncs": "Times bytes of a connection were missed or came out of order.",
    "pipelined": "Requests sent before the one before was answered; their heads are not kept.",
    "contended": "Packets not read: another CPU held their connection for too long.",
    "unclassified": "Events too long to be told apart within the bounds of the search.",
    "folded": "Connections given up early because the table was nearly full.",
    "frames_dropped": "Frames not sent because the sidecar read too slowly.",
}
COUNTERS = tuple(
    Metric(f"modelprobe_probe_{name}_total", Kind.COUNTER, _COUNTER_HELP[name], ("probe",))
    for name in frames.COUNTER_NAMES
)
_PORT = ("port", "leg")
CONNECTS = Metric(
    "modelprobe_wire_connects_total",
    Kind.COUNTER,
    "Connections that clients began to a watched port (SYN), each counted once.",
    _PORT,
)
CONNECT_FAILURES = Metric(
    "modelprobe_wire_connect_failures_total",
    Kind.COUNTER,
    "Connections that were refused (RST in answer to a SYN).",
    _PORT,
)
SYN_RETRANSMITS = Metric(
    "modelprobe_wire_syn_retransmits_total",
    Kind.COUNTER,
    "SYNs sent again: the server did not answer in time, as with a full accept queue.",
    _PORT,
)
RETRANSMITS = Metric(
    "modelprobe_wire_retransmitted_segments_total",
    Kind.COUNTER,
    "Segments with data that were sent again, by whether they left this network namespace or came "
    "in; on loopback all are sent.",
    (*_PORT, "direction"),
)
REORDERED = Metric(
    "modelprobe_wire_reordered_segments_total",
    Kind.COUNTER,
    "Segments that were overtaken by later ones.",
    _PORT,
)
RESETS = Metric(
    "modelprobe_wire_resets_total",
    Kind.COUNTER,
    "Connections ended by RST, by who sent it.",
    (*_PORT, "by"),
)
ZERO_WINDOWS = Metric(
    "modelprobe_wire_zero_windows_total",
    Kind.COUNTER,
    "Times that a side took no more data because its reader is slow, by which side.",
    (*_PORT, "by"),
)
HANDSHAKE = Metric(
    "modelprobe_wire_handshake_seconds",
    Kind.HISTOGRAM,
    "Time from a client's SYN to the server's answer.",
    _PORT,
)
TCP = (
    CONNECTS,
    CONNECT_FAILURES,
    SYN_RETRANSMITS,
    RETRANSMITS,
    REORDERED,
    RESETS,
    ZERO_WINDOWS,
    HANDSHAKE,
)
METRICS = (INFO, BAD_FRAMES, *COUNTERS, *TCP)


def of_status(status: Status) -> Iterator[Signal]:
    """The probe's counters, and how it fares; its counters only while it works."""
    probe = ("probe", status.probe)
    state = CollectorState.BLIND if status.absence else CollectorState.ATTACHED
    if status.counters.requests and not status.absence:
        state = CollectorState.FIRING
    absence = link.absent(status)
    yield Coverage(
        status.probe,
        "",
        0,
        0,
        0,
        state,
        absence=absence.absence if absence else None,
        reason=status.reason,
    )
    if absence is not None:
        return
    yield Sample(INFO.name, 1.0, (probe, ("loader", status.loader)))
    for metric, name in zip(COUNTERS, frames.COUNTER_NAMES, strict=True):
        yield Sample(metric.name, float(getattr(status.counters, name)), (probe,))


def opened(statuses: Iterable[Status], ports: Mapping[int, Leg]) -> Iterator[OpenRequests]:
    """What is open on each leg, over all probes that know."""
    known = [one for status in statuses for one in status.open]
    now = time.monotonic_ns()
    for leg in sorted(set(ports.values())):
        found = [one for one in known if ports.get(one.port) is leg]
        ages = [(now - one.oldest_ns) / 1e9 for one in found if one.count]
        yield OpenRequests(leg, sum(one.count for one in found), max(ages, default=None))


def of_tcp(port: int, leg: Leg, counts: TcpCounts) -> Iterator[Signal]:
    """TCP's counts of one port."""
    where = (("port", str(port)), ("leg", leg.value))
    for metric, value, more in (
        (CONNECTS, counts.connects, ()),
        (CONNECT_FAILURES, counts.connect_failures, ()),
        (SYN_RETRANSMITS, counts.syn_retransmits, ()),
        (RETRANSMITS, counts.retransmits_sent, (("direction", "sent"),)),
        (RETRANSMITS, counts.retransmits_received, (("direction", "received"),)),
        (REORDERED, counts.reordered, ()),
        (RESETS, counts.resets_by_client, (("by", "client"),)),
        (RESETS, counts.resets_by_server, (("by", "server"),)),
        (ZERO_WINDOWS, counts.zero_windows_by_client, (("by", "client"),)),
        (ZERO_WINDOWS, counts.zero_windows_by_server, (("by", "server"),)),
    ):
        yield Sample(metric.name, float(value), where + more)
    yield _handshakes(counts, where)


def _handshakes(counts: TcpCounts, where: tuple[tuple[str, str], ...]) -> Histogram:
    """Bucket i of the kernel ends at 2**i microseconds; the last one has no end."""
    total, cumulative = 0, []
    for one in counts.handshakes:
        total += one
        cumulative.append(total)
    bounds = (*(2.0**i / 1e6 for i in range(len(cumulative) - 1)), float("inf"))
    return Histogram(HANDSHAKE.name, bounds, tuple(cumulative), counts.handshake_ns / 1e9, where)
