"""The metrics of a campaign, declared; ``docs/metrics.md`` can be written from these."""

from __future__ import annotations

from sidecar.signals import Kind as Type
from sidecar.signals import Metric

_WAY = ("fault", "method", "layer")
RUNS = Metric(
    "modelprobe_chaos_runs_total",
    Type.COUNTER,
    "Runs that ended, by what they were for and how they ended. Only `recovered` and "
    "`not_recovered` of kind `fault` count in a rate.",
    (*_WAY, "kind", "outcome"),
)
RECOVER = Metric(
    "modelprobe_chaos_recover_seconds",
    Type.HISTOGRAM,
    "T4 − T1 of runs that recovered, at the place that decides. Those that did not are in "
    "`modelprobe_chaos_runs_total` only.",
    _WAY,
)
INTERRUPTION = Metric(
    "modelprobe_chaos_interruption_seconds",
    Type.HISTOGRAM,
    "Time in which no request succeeded, in runs with proof of effect, give or take the probes' "
    "period; `place`: as users or as the engine itself saw it.",
    (*_WAY, "place"),
)
DETECT = Metric(
    "modelprobe_chaos_detect_seconds",
    Type.HISTOGRAM,
    "T2 − T1 of runs with proof of effect in which an alarm fired.",
    _WAY,
)
UNDETECTED = Metric(
    "modelprobe_chaos_undetected_total",
    Type.COUNTER,
    "Runs with proof of effect in which no alarm fired while they were watched.",
    _WAY,
)
FALSE_ALARMS = Metric(
    "modelprobe_chaos_false_alarms_total",
    Type.COUNTER,
    "Alarms that fired in sham runs.",
    ("fault", "method"),
)
SHAM_SECONDS = Metric(
    "modelprobe_chaos_sham_seconds_total",
    Type.COUNTER,
    "Time that sham runs were watched for false alarms.",
    ("fault", "method"),
)
ENDINGS = Metric(
    "modelprobe_chaos_endings_total",
    Type.COUNTER,
    "How undoing went: `healed`, `moot` (nothing was left to undo) or `failed`.",
    ("fault", "method", "ending"),
)
LEFT_BEHIND = Metric(
    "modelprobe_chaos_left_behind_total",
    Type.COUNTER,
    "Runs that left something behind: a person is needed.",
    ("fault", "method"),
)
ACTIVE = Metric(
    "modelprobe_chaos_active",
    Type.GAUGE,
    "1 while a fault is in force, else 0, for each that this campaign has let loose.",
    ("fault", "method"),
)
OUTSTANDING = Metric(
    "modelprobe_chaos_journal_outstanding",
    Type.GAUGE,
    "Undos in the journal that are not done yet; no sample while the journal cannot be read.",
)
SPANS_SENT = Metric(
    "modelprobe_chaos_spans_sent_total",
    Type.COUNTER,
    "Spans of runs that an OTLP receiver has accepted.",
)
SPANS_DROPPED = Metric(
    "modelprobe_chaos_spans_dropped_total",
    Type.COUNTER,
    "Spans of runs that were given up, by reason: `full` (too many waited), `ended` (the campaign "
    "did), or why the receiver did not take them.",
    ("reason",),
)
FOLDED = Metric(
    "modelprobe_chaos_labels_folded_total",
    Type.COUNTER,
    "Values that went into the label set `other`, for too many were known of their metric.",
)
METRICS = (
    *(RUNS, RECOVER, INTERRUPTION, DETECT, UNDETECTED, FALSE_ALARMS, SHAM_SECONDS, ENDINGS),
    *(LEFT_BEHIND, ACTIVE, OUTSTANDING, SPANS_SENT, SPANS_DROPPED, FOLDED),
)
