"""What a status of a wire probe, and TCP's counts of a port, say as samples."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from sidecar.collectors import probe_status
from sidecar.probed.frames import Status
from sidecar.probed.tcp_counts import TcpCounts
from sidecar.signals import (
    Histogram,
    Kind,
    Leg,
    Metric,
    OpenRequests,
    Sample,
    Signal,
)

BAD_FRAMES = Metric(
    "modelprobe_probe_bad_frames_total",
    Kind.COUNTER,
    "Frames of probed that could not be read.",
    (),
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
METRICS = (BAD_FRAMES, *probe_status.METRICS, *TCP)


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
