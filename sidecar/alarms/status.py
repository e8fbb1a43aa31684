"""How the file of alarms fares, as metrics: its state, what failed, what was lost, how far behind
it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.alarms.states import StoreState, StoreStatus
from sidecar.signals import Kind, Metric, Sample

STORE = Metric(
    "modelprobe_alarm_store_state",
    Kind.GAUGE,
    "1 for how the file of alarms fares, 0 for the other states. In every state but `ok` alarms "
    "are kept in memory only.",
    ("state",),
)
STORE_FAILURES = Metric(
    "modelprobe_alarm_store_failures_total",
    Kind.COUNTER,
    "Attempts to open or write the file of alarms that failed; each is tried again. No sample "
    "without a configured file.",
)
STORE_DROPPED = Metric(
    "modelprobe_alarm_store_dropped_total",
    Kind.COUNTER,
    "What will never be in the file, by kind: `transition` (too many waited), `level` (what a "
    "detector knows: too large, or one too many).",
    ("kind",),
)
STORE_LAG = Metric(
    "modelprobe_alarm_store_lag_seconds",
    Kind.GAUGE,
    "How much of the latest past a crash would take: the age of what the file holds, 0 when it "
    "holds everything.",
)
METRICS = (STORE, STORE_FAILURES, STORE_DROPPED, STORE_LAG)


def samples(status: StoreStatus) -> Iterator[Sample]:
    """All of :data:`METRICS`; without a configured file its state alone, as nothing fails then."""
    for state in StoreState:
        yield Sample(STORE.name, float(state is status.state), (("state", state.value),))
    if status.state is StoreState.DISABLED:
        return
    yield Sample(STORE_FAILURES.name, float(status.failures))
    for kind, count in (
        ("transition", status.dropped_transitions),
        ("level", status.dropped_levels),
    ):
        yield Sample(STORE_DROPPED.name, float(count), (("kind", kind),))
    yield Sample(STORE_LAG.name, status.lag_seconds)
