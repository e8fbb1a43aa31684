"""How an engine's telemetry fares, as words: each is a state that can hold for some signals."""

from __future__ import annotations

from enum import StrEnum


class TelemetryState(StrEnum):
    """What can be the matter with numbers that arrive. None of them stops the others."""

    RENAMED = "renamed"
    MISSING = "missing"
    DOUBLED = "doubled"
    TYPE_CHANGED = "type_changed"
    AT_FINISH = "at_finish"
    FROZEN = "frozen"
    RESET = "reset"
    SEVERAL_REGISTRIES = "several_registries"
    IDENTITY_CHANGED = "identity_changed"
    SATURATED = "saturated"
    INSTRUMENT_FAULT = "instrument_fault"
    BROKEN_HISTOGRAM = "broken_histogram"
    MODEL_UNDEFINED = "model_undefined"
    EXPLOSION = "explosion"


MEANINGS = {
    TelemetryState.RENAMED: "The signal comes under a former name; dashboards on the new one are "
    "blank.",
    TelemetryState.MISSING: "The engine should expose the signal and does not.",
    TelemetryState.DOUBLED: "The same signal comes twice, under two names or as two equal series; "
    "one of them counts.",
    TelemetryState.TYPE_CHANGED: "The metric has another type than it had; it is left out.",
    TelemetryState.AT_FINISH: "The counter moves in one jump when a request ends: its rate is "
    "bursts, not speed. No fault, but no live rate either.",
    TelemetryState.FROZEN: "Gauges have not moved while the engine worked.",
    TelemetryState.RESET: "Counters went back in the last minute: the process restarted.",
    TelemetryState.SEVERAL_REGISTRIES: "The endpoint answers from several processes in turn, each "
    "with counters of its own; counters and histograms are left out.",
    TelemetryState.IDENTITY_CHANGED: "Another engine, model or process answers than a minute ago.",
    TelemetryState.SATURATED: "The 99th percentile is beyond the histogram's last bound: it is "
    "known as 'more than' only.",
    TelemetryState.INSTRUMENT_FAULT: "Every observation is next to zero where that cannot be.",
    TelemetryState.BROKEN_HISTOGRAM: "A histogram's parts contradict each other; it is left out.",
    TelemetryState.MODEL_UNDEFINED: "The engine does not say which model it serves.",
    TelemetryState.EXPLOSION: "One metric has thousands of series, which cost the engine time at "
    "each scrape.",
}
