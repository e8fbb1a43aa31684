"""What passes the watched ports and cannot be read: TLS, HTTP/2, compressed and over-long streams.

A tap that is attached and sees nothing looks like a service without users; this tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.collectors.probe_status import COUNTERS
from sidecar.signals import CollectorState, Leg, Observation
from sidecar.snapshot import WIRE_COLLECTOR, Snapshot
from sidecar.units import count
from sidecar.windows import LegWindow

_SHARE = 0.05  # of what was seen; below, a stray scanner or a single client
_COUNTED = {metric.name: metric for metric in COUNTERS}
_TLS, _HTTP2, _REQUESTS, _EVENTS, _LONG = (
    _COUNTED[f"modelprobe_probe_{name}_total"].name
    for name in ("blind_tls", "blind_http2", "requests", "events", "unclassified")
)
_WHY = {
    _TLS: "TLS. Their requests are not measured: the probe wire_tls reads those of servers with "
    "OpenSSL, and behind a proxy that ends TLS the plain leg can be watched",
    _HTTP2: "HTTP/2 (gRPC is too). Their requests are not measured: only HTTP/1.1 is read",
}


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """What holds since the start, and of compressed streams in the last minute."""
    tap = snapshot.collector(WIRE_COLLECTOR)
    if tap is None or tap.state is CollectorState.BLIND:
        return
    totals = _totals(snapshot)
    for metric, why in _WHY.items():
        blind, read = totals.get(metric, 0.0), totals.get(_REQUESTS, 0.0)
        if metric == _TLS and _tls_is_read(snapshot):
            continue
        if blind and blind >= _SHARE * (blind + read):
            text = f"{count(int(blind), 'connection')} to the watched ports spoke {why}"
            yield Observation("blind", "wire", metric.split("_")[3], text)
    yield from _long(totals)
    for window in snapshot.windows:
        yield from _compressed(window)


def _totals(snapshot: Snapshot) -> dict[str, float]:
    """The counters of the packets' tap."""
    found = snapshot.scalars(_TLS, _HTTP2, _REQUESTS, _EVENTS, _LONG)
    return {s.metric: s.value for s in found if dict(s.labels).get("probe") == "wire"}


def _tls_is_read(snapshot: Snapshot) -> bool:
    seen = (one for one in snapshot.coverage if one.probe == "wire_tls" and one.process)
    return any(one.state is CollectorState.FIRING for one in seen)


def _long(totals: dict[str, float]) -> Iterator[Observation]:
    unknown, events = totals.get(_LONG, 0.0), totals.get(_EVENTS, 0.0)
    if unknown and unknown >= _SHARE * events:
        text = (
            f"{unknown:,.0f} of {events:,.0f} events are so long that their text was not found in "
            "the first 512 bytes: where one of them was the first token, TTFT is an upper bound"
        )
        yield Observation("blind", "wire", "unclassified", text)


def _compressed(window: LegWindow) -> Iterator[Observation]:
    if not window.encoded or window.encoded < _SHARE * window.requests:
        return
    side = "clients" if window.leg is Leg.DOWNSTREAM else "the gateway"
    text = (
        f"{window.encoded:,} of {count(window.requests, 'answer')} to {side} in the last minute "
        "are compressed streams: their first token and gaps are not measured"
    )
    yield Observation("blind", window.leg.value, "encoded", text)
