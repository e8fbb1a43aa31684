"""``/api/v1/state``: a snapshot as plain JSON, for scripts and for the chaos side.

Keys are stable within v1; new ones may appear. What was not measured is null, never 0; so is a
number JSON cannot hold (NaN, infinity). Durations are seconds, times Unix seconds.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict

from sidecar.evaluation import Evaluation
from sidecar.export import alarms
from sidecar.legs.minute import JoinWindow
from sidecar.observe import coverage
from sidecar.readings import engines as readings
from sidecar.readings import gpus
from sidecar.signals import CollectorStatus
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm
from sidecar.windows import LegWindow

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


def state(snapshot: Snapshot, version: str, now: float) -> dict[str, Plain]:
    """A snapshot as plain data:

    ``version``; ``at``, ``age_seconds``, ``started``, ``sequence``; ``capped``;
    ``collectors`` [{name, state, absence, reason, age_seconds, duration_seconds, collections,
    failures {absence: n}, dropped, stand_in}];
    ``windows`` and ``totals`` {leg: {seconds, requests, failed, cancelled, ttft_seconds {p50, p99},
    itl_seconds {p50, p99, largest}, token_events_per_second, open_requests,
    oldest_open_seconds}};
    ``joins`` {seconds, requests, joined, joined_ratio, unjoined {reason: n}, refused, retried,
    hidden, broken, ttft_seconds {p50}, overhead_seconds {phase: {n, p50, p99}}} of the last minute,
    null while not both legs are watched;
    ``engines`` [{replica, engine, running, waiting, generated_tokens_total,
    generated_tokens_per_second, decode_seconds_total, decode_seconds_per_second,
    seconds_per_token, kv_cache_usage_ratio, preemptions_total, prefix_cache_hit_ratio,
    at_finish, parts [{rank, running, waiting, kv_usage}], …}];
    ``gpus`` [{gpu, uuid, name, state, memory_state, memory_used_bytes, memory_total_bytes,
    utilization_ratio, temperature_celsius, power_watts, needs [word]}];
    ``events`` [{at, kind, subject, text}], oldest first;
    ``observations`` [{kind, subject, signal, text}];
    ``drift`` [{series {signal, leg, server}, at, standing, n, tail {}, shape {}, ks {}, firing
    [rule], improved, mix, unknown, fewer, kept [day], dropped [{day, reason}], text}], the latest
    evaluation each;
    ``alarms`` [{rule, labels {}, state, severity, known, since, held_seconds, fired, resolved,
    text, evidence {}, marks [{kind, author, start, end, text}]}], the most urgent first;
    ``coverage`` {segment: whether a live source measures it};
    ``probes`` [{probe, process, pid, ns_pid, start, state, parts, absence, reason}], of each kernel
    probe by itself (``process`` empty) and with each process that it follows.
    """
    return {
        "version": version,
        "at": snapshot.at,
        "age_seconds": max(0.0, now - snapshot.at),
        "started": snapshot.started,
        "sequence": snapshot.sequence,
        "capped": snapshot.capped,
        "collectors": [_collector(status) for status in snapshot.collectors],
        "windows": {window.leg.value: _window(window) for window in snapshot.windows},
        "totals": {window.leg.value: _window(window) for window in snapshot.totals},
        "joins": None if snapshot.joins is None else _joins(snapshot.joins),
        "engines": [
            {
                **_listed(asdict(reading)),
                "seconds_per_token": reading.seconds_per_token,
                "prefix_cache_hit_ratio": reading.prefix_cache_hit_ratio,
            }
            for reading in readings.read(snapshot)
        ],
        "gpus": [_gpu(reading) for reading in gpus.read(snapshot)],
        "events": [asdict(event) for event in snapshot.events],
        "observations": [asdict(observation) for observation in snapshot.observations],
        "drift": [_evaluation(one) for one in snapshot.evaluations],
        "alarms": [_alarm(alarm) for alarm in alarms.ordered(snapshot.alarms)],
        "coverage": dict(coverage.covered(snapshot)),
        "probes": [asdict(one) for one in snapshot.coverage],
    }


def encode(value: Plain) -> bytes:
    """Strict JSON in ASCII: NaN and infinities are null, and no string can break out of it."""
    return json.dumps(_finite(value), allow_nan=False, separators=(",", ":")).encode("ascii")


def _collector(status: CollectorStatus) -> Plain:
    return {
        "name": status.name,
        "state": status.state.value,
        "absence": status.absence.value if status.absence else None,
        "reason": status.reason,
        "age_seconds": status.age_seconds,
        "duration_seconds": status.duration_seconds,
        "collections": status.collections,
        "failures": {absence.value: count for absence, count in status.failures},
        "dropped": status.dropped,
        "stand_in": status.stand_in,
    }


def _listed(values: dict[str, Plain]) -> dict[str, Plain]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _evaluation(one: Evaluation) -> Plain:
    dropped: list[Plain] = [{"day": day, "reason": reason} for day, reason in one.dropped]
    firing: list[Plain] = [*sorted(one.firing)]
    return {**_listed(asdict(one)), "firing": firing, "dropped": dropped}


def _alarm(alarm: Alarm) -> Plain:
    return {
        "rule": alarm.rule,
        "labels": dict(alarm.labels),
        "state": alarm.state.value,
        "severity": alarm.severity.value,
        "known": alarm.known,
        "since": alarm.since,
        "held_seconds": alarm.held_seconds,
        "fired": alarm.fired,
        "resolved": alarm.resolved,
        "text": alarm.text,
        "evidence": dict(alarm.evidence),
        "marks": [asdict(mark) for mark in alarm.marks],
    }


def _gpu(reading: gpus.GpuReading) -> Plain:
    return {**asdict(reading), "needs": list(reading.needs)}


def _window(window: LegWindow) -> Plain:
    return {
        "seconds": window.seconds,
        "requests": window.requests,
        "failed": window.failed,
        "cancelled": window.cancelled,
        "ttft_seconds": {"p50": window.ttft_p50, "p99": window.ttft_p99},
        "itl_seconds": {
            "p50": window.itl_p50,
            "p99": window.itl_p99,
            "largest": window.largest_gap,
        },
        "token_events_per_second": window.token_events_per_second,
        "open_requests": window.open_requests,
        "oldest_open_seconds": window.oldest_open_seconds,
    }


def _joins(window: JoinWindow) -> Plain:
    return {
        "seconds": window.seconds,
        "requests": window.requests,
        "joined": window.joined,
        "joined_ratio": window.ratio,
        "unjoined": {reason.value: n for reason, n in window.unjoined},
        "refused": window.refused,
        "retried": window.retried,
        "hidden": window.hidden,
        "broken": window.broken,
        "ttft_seconds": {"p50": window.ttft_p50},
        "overhead_seconds": {
            one.phase.value: {"n": one.n, "p50": one.p50, "p99": one.p99} for one in window.phases
        },
    }


def _finite(value: Plain) -> Plain:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
