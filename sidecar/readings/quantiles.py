"""Between which bounds the latencies of the last minute lie, by the targets' own histograms."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.engines.canonical import QUANTILE
from sidecar.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Bounds:
    """A quantile lies above ``lower`` and not above ``upper``; None: it has no upper bound."""

    replica: str
    signal: str
    quantile: str
    lower: float
    upper: float | None


def read(snapshot: Snapshot) -> tuple[Bounds, ...]:
    """Every quantile that a target's buckets give now."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for sample in snapshot.scalars(QUANTILE.name):
        labels = dict(sample.labels)
        who = (labels.get("replica", ""), labels.get("signal", ""), labels.get("quantile", ""))
        found.setdefault(who, {})[labels.get("bound", "")] = sample.value
    return tuple(
        Bounds(*who, bounds["lower"], bounds.get("upper"))
        for who, bounds in found.items()
        if "lower" in bounds
    )
