"""How requests ended in the last minute, by the engines' own counters."""

from __future__ import annotations

from sidecar.engines.canonical import FINISHED
from sidecar.readings.engines import ENGINE_COLLECTOR
from sidecar.snapshot import Snapshot

ABORTS = frozenset({"abort", "aborted", "cancel", "cancelled", "canceled"})
ODD = ABORTS | {"error"}


def read(snapshot: Snapshot) -> dict[str, float]:
    """How many by reason, all engines together; empty where no engine counts them."""
    found: dict[str, float] = {}
    for collector, span in snapshot.spans.items():
        if not collector.startswith(ENGINE_COLLECTOR):
            continue
        for (metric, labels), grown in span.whole.items():
            if metric == FINISHED.name:
                reason = dict(labels).get("reason", "")
                found[reason] = found.get(reason, 0.0) + grown
    return found
