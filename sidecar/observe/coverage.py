"""Which parts of a request's way have a live source: queue, prefill, decode, network, gateway."""

from __future__ import annotations

from sidecar.engines import canonical as names
from sidecar.signals import CollectorState, Kind, Leg, Metric, Sample
from sidecar.snapshot import WIRE_COLLECTOR, Snapshot

RATIO = Metric(
    "modelprobe_critical_path_coverage_ratio",
    Kind.GAUGE,
    "Share of the parts of a request's way that have a live source now.",
)
COVERED = Metric(
    "modelprobe_critical_path_covered",
    Kind.GAUGE,
    "1 when this part of a request's way has a live source, 0 when not; `gateway` has no sample "
    "where there is none.",
    ("segment",),
)
METRICS = (RATIO, COVERED)
_BY_ENGINE = {
    "queue": (names.WAITING, names.QUEUE),
    "prefill": (names.PREFILL, names.TTFT),
    "decode": (names.DECODE, names.ITL, names.TPOT),
}
_BY_GATEWAY = (names.GATEWAY_OVERHEAD, names.GATEWAY_UPSTREAM_DURATION)


def covered(snapshot: Snapshot) -> dict[str, bool]:
    """By segment, whether something measures it now."""
    metrics = snapshot.by_metric().keys()
    tap = snapshot.collector(WIRE_COLLECTOR)
    sees = tap is not None and tap.state in (CollectorState.ATTACHED, CollectorState.FIRING)
    legs = set(snapshot.legs) if sees else set()
    found = {
        segment: any(metric.name in metrics for metric in sources)
        for segment, sources in _BY_ENGINE.items()
    }
    # The wire sees first tokens and gaps of every request, but not what waits inside the engine.
    found["prefill"] |= bool(legs)
    found["decode"] |= bool(legs)
    found["network"] = bool(legs)
    gateways = any(s.name.startswith("gateway:") for s in snapshot.collectors)
    if gateways or snapshot.legs != (Leg.DOWNSTREAM,):
        told = any(metric.name in metrics for metric in _BY_GATEWAY)
        found["gateway"] = told or legs == set(Leg)
    return found


def samples(snapshot: Snapshot) -> tuple[Sample, ...]:
    """The ratio and its parts."""
    found = covered(snapshot)
    parts = tuple(Sample(COVERED.name, float(v), (("segment", k),)) for k, v in found.items())
    return (Sample(RATIO.name, sum(found.values()) / len(found)), *parts)
