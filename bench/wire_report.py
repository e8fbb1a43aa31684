"""The figures of the wire's bench under the keys by which they are asked for."""

from __future__ import annotations

import math
from statistics import median

from bench.wire_pairs import Pairs
from bench.wire_ratio import Ratio
from bench.wire_sidecar import Cost
from bench.wire_truth import Compared

Report = dict[str, object]


def ratios(pairs: Pairs) -> Report:
    """Of the server's CPU and of the bystander; its own is the worse of two."""
    cpu, sham = pairs.ratio("server"), pairs.sham()
    syscalls, loopback = pairs.ratio("syscalls"), pairs.ratio("loopback")
    each = median(half.server for half in pairs.halves if not half.tapped)
    return {
        "events_per_second": pairs.events_per_second,
        **_ratio("cpu_ratio", cpu),
        "half_width": cpu.half_width if math.isfinite(cpu.half_width) else None,
        "n": cpu.n,
        **(_ratio("sham_ratio", sham) if sham else {}),
        "server_seconds_per_event": each,
        "tap_seconds_per_event": each * (cpu.point - 1),
        "bystander_ratio": max(syscalls.point, loopback.point),
        **_ratio("bystander_syscalls_ratio", syscalls),
        **_ratio("bystander_loopback_ratio", loopback),
    }


def _ratio(name: str, found: Ratio) -> Report:
    """With bounds that are None where the pairs are too few for any."""
    known = math.isfinite(found.upper)
    return {
        name: found.point,
        f"{name}_lower": found.lower if known else None,
        f"{name}_upper": found.upper if known else None,
    }


def truth(usual: Compared, stalled: Compared) -> Report:
    """How far the tap's medians are from the server's own."""
    return {
        "ttft_error_seconds": usual.ttft_error_seconds,
        "itl_error_seconds": usual.itl_error_seconds,
        "ttft_seconds": usual.true_ttft_seconds,
        "itl_seconds": usual.true_itl_seconds,
        "ttft_each_p99_seconds": usual.ttft_p99_seconds,
        "requests": usual.requests,
        "stalled_ttft_error_seconds": stalled.ttft_error_seconds,
        "stalled_ttft_seconds": stalled.true_ttft_seconds,
        "stalled_told_seconds": stalled.ttft_seconds,
    }


def cost(found: Cost) -> Report:
    """What all our processes took."""
    return {
        "cpu_seconds_per_event": found.seconds_per_event,
        "cpu_seconds_per_event_by_process": found.parts,
        "idle_cpu_ratio": found.idle_cpu_ratio,
        "cost_events": found.events,
        "cost_requests": found.requests,
        "cost_seconds": found.seconds,
    }


def lost(usual: Compared, stalled: Compared, pairs: Pairs, found: Cost) -> Report:
    """Events that one side has and the other has not, and what the tap says it dropped."""
    by = {
        "events": usual.lost + stalled.lost,
        "records": usual.strange + stalled.strange,
        "events_sidecar": found.uncounted,
    }
    for drops in (pairs.drops, found.drops):
        for name, count in drops.items():
            by[name] = by.get(name, 0) + count
    return {"lost": sum(by.values()), "lost_by": by}
