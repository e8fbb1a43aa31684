"""The sidecar's metrics about itself: which collectors can be trusted, how old, at what cost.

Without them a missing series cannot be told from a healthy zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.observe import coverage
from sidecar.signals import CollectorState, CollectorStatus, Kind, Metric, Sample
from sidecar.snapshot import Snapshot

_COLLECTOR = ("collector",)
BUILD_INFO = Metric(
    "modelprobe_build_info", Kind.GAUGE, "Always 1; the version is a label.", ("version",)
)
STATE = Metric(
    "modelprobe_collector_state",
    Kind.GAUGE,
    "1 for what the collector is doing now, 0 for the other states: starting, attached (open but "
    "silent so far), firing (signals arrive), blind (they do not).",
    ("collector", "state"),
)
AVAILABLE = Metric(
    "modelprobe_collector_available",
    Kind.GAUGE,
    "1 when attached or firing, 0 when blind; no sample while starting.",
    _COLLECTOR,
)
ABSENCE = Metric(
    "modelprobe_collector_absence",
    Kind.GAUGE,
    "1 with the reason, only while the collector is blind.",
    ("collector", "absence"),
)
AGE = Metric(
    "modelprobe_collector_age_seconds",
    Kind.GAUGE,
    "Since the last good collection, at the time of the snapshot; no sample before the first.",
    _COLLECTOR,
)
DURATION = Metric(
    "modelprobe_collector_duration_seconds",
    Kind.GAUGE,
    "How long the last collection took.",
    _COLLECTOR,
)
COLLECTIONS = Metric(
    "modelprobe_collector_collections_total", Kind.COUNTER, "Good collections.", _COLLECTOR
)
FAILURES = Metric(
    "modelprobe_collector_failures_total",
    Kind.COUNTER,
    "Collections that gave nothing, by reason.",
    ("collector", "absence"),
)
DROPPED = Metric(
    "modelprobe_collector_dropped_total",
    Kind.COUNTER,
    "Signals lost to a full queue or ring.",
    _COLLECTOR,
)
STAND_IN = Metric(
    "modelprobe_collector_stand_in",
    Kind.GAUGE,
    "1 when the collector reads a stand-in instead of the real source.",
    _COLLECTOR,
)
CAPPED = Metric(
    "modelprobe_series_capped_total",
    Kind.COUNTER,
    "Signals folded into `other` or dropped by a cap.",
)
REJECTED = Metric(
    "modelprobe_export_rejected_series",
    Kind.GAUGE,
    "Series of this snapshot that were left out: undeclared name, wrong kind, labels or value, "
    "or a duplicate. Not 0 means a bug of the sidecar.",
    ("reason",),
)
OBSERVATION = Metric(
    "modelprobe_observation",
    Kind.GAUGE,
    "1 while the numbers show this together; the sentence is on the page and in `/api/v1/state`.",
    ("kind", "subject", "signal"),
)
SNAPSHOT_AGE = Metric(
    "modelprobe_snapshot_age_seconds",
    Kind.GAUGE,
    "Age of the snapshot at this scrape; it grows when the sidecar's own pipeline stands still.",
)
START_TIME = Metric(
    "modelprobe_start_time_seconds", Kind.GAUGE, "When the sidecar started, Unix time."
)
METRICS = (
    *(BUILD_INFO, STATE, AVAILABLE, ABSENCE, AGE, DURATION, COLLECTIONS, FAILURES, DROPPED),
    *(STAND_IN, CAPPED, REJECTED, OBSERVATION, SNAPSHOT_AGE, START_TIME),
    *coverage.METRICS,
)


def samples(snapshot: Snapshot, version: str) -> Iterator[Sample]:
    """Every self-metric a snapshot holds. Its age at the scrape and the rejected series are
    known only while rendering.
    """
    yield Sample(BUILD_INFO.name, 1.0, (("version", version),))
    yield Sample(START_TIME.name, snapshot.started)
    yield Sample(CAPPED.name, float(snapshot.capped))
    for status in snapshot.collectors:
        yield from _collector(status)
    yield from coverage.samples(snapshot)
    for kind, subject, signal in sorted(
        {(o.kind, o.subject, o.signal) for o in snapshot.observations}
    ):
        labels = (("kind", kind), ("subject", subject), ("signal", signal))
        yield Sample(OBSERVATION.name, 1.0, labels)


def _collector(status: CollectorStatus) -> Iterator[Sample]:
    who = (("collector", status.name),)
    for state in CollectorState:
        value = float(state is status.state)
        yield Sample(STATE.name, value, (*who, ("state", state.value)))
    if status.state is not CollectorState.STARTING:
        yield Sample(AVAILABLE.name, float(status.state is not CollectorState.BLIND), who)
    if status.state is CollectorState.BLIND and status.absence is not None:
        yield Sample(ABSENCE.name, 1.0, (*who, ("absence", status.absence.value)))
    if status.age_seconds is not None:
        yield Sample(AGE.name, status.age_seconds, who)
    if status.duration_seconds is not None:
        yield Sample(DURATION.name, status.duration_seconds, who)
    yield Sample(COLLECTIONS.name, float(status.collections), who)
    yield Sample(DROPPED.name, float(status.dropped), who)
    yield Sample(STAND_IN.name, float(status.stand_in), who)
    for absence, count in status.failures:
        yield Sample(FAILURES.name, float(count), (*who, ("absence", absence.value)))
