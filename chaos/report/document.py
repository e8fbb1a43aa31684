"""A summary for programs: JSON with fixed keys, null where there is nothing.

Every number is finite. Texts are the data's own, so that who shows them has to escape them. The
keys are documented in docs/chaos-report.md.
"""

from __future__ import annotations

import json

from chaos.report.summary import ENGINE, Aside, Figures, Place, Shams, Summary, Times
from chaos.statistics import Interval, Quantile, Share

VERSION = 1
Plain = dict[str, object]


def document(summary: Summary) -> str:
    """The whole summary as one JSON object."""
    return json.dumps(plain(summary), allow_nan=False, indent=1)


def plain(summary: Summary) -> Plain:
    """The same, not yet written."""
    controls = summary.controls
    return {
        "version": VERSION,
        "program": summary.version,
        "campaigns": list(summary.campaigns),
        "seeds": list(summary.seeds),
        "targets": list(summary.targets),
        "first_unix": summary.first,
        "last_unix": summary.last,
        "runs": len(summary.runs),
        "faults": [figures(one) for one in summary.faults],
        "shams": _shams(summary.shams),
        "controls": {
            "runs": controls.n,
            "not_injected": controls.not_injected,
            "inconclusive": controls.inconclusive,
            "wrong": [_aside(one) for one in controls.wrong],
        },
        "endings": {ending.value: many for ending, many in summary.endings},
        "left_behind": [
            {"id": one.id, "fault": one.fault, "target": one.target, "text": one.text}
            for one in summary.left
        ],
        "left_behind_unlooked": summary.unlooked or None,
        "settings": list(summary.settings),
        "notes": list(summary.notes),
    }


def by_fault(summary: Summary) -> dict[str, Plain]:
    """The figures by the fault's name; ValueError when one was caused in two ways, for these are
    never pooled.
    """
    found: dict[str, Plain] = {}
    for one in summary.faults:
        if one.fault in found:
            raise ValueError(
                f"{one.fault} was caused in several ways, which are never one figure; "
                "read the list `faults` of the summary instead"
            )
        found[one.fault] = figures(one)
    return found


def figures(one: Figures) -> Plain:
    """One fault by one method on one layer."""
    users = next((place for place in one.places if place.name != ENGINE), None)
    engine = next((place for place in one.places if place.name == ENGINE), None)
    seen = users or engine
    detection = one.detection
    return {
        "fault": one.fault,
        "method": one.method,
        "layer": one.layer.value,
        "heals_by": one.heals_by,
        "expects": list(one.expects),
        "runs": one.proven,
        "recovered": one.recovery.hits if one.recovery else None,
        "not_injected": one.not_injected,
        "inconclusive": one.inconclusive,
        **_share("", one.recovery, "recovered"),
        "without_failed_request": one.quiet,
        "recovered_without_time": one.unseen,
        "recover_censored": one.recover.censored if one.recover else None,
        **_quantile("recover_median", one.recover.median if one.recover else None),
        **_quantile("recover_p95", one.recover.p95 if one.recover else None),
        **_interruption("interruption", seen),
        **_interruption("engine_interruption", engine),
        "places": [_place(place) for place in one.places],
        "detected": detection.share.hits,
        **_share("detected_", detection.share, "detected"),
        **_quantile("detect_median", detection.median),
        **_quantile("detect_p95", detection.p95),
        "named": dict(detection.rules),
        "endings": dict(one.endings),
        "not_counted": [_aside(run) for run in one.aside],
    }


def _share(prefix: str, found: Share | None, name: str) -> Plain:
    wilson = found.wilson if found else Interval(0.0, None)
    clopper = found.clopper if found else Interval(0.0, None)
    return {
        f"{name}_ratio": found.rate if found else None,
        f"{prefix}wilson_lower": wilson.lower if found else None,
        f"{prefix}wilson_upper": wilson.upper,
        f"{prefix}clopper_lower": clopper.lower if found else None,
        f"{prefix}clopper_upper": clopper.upper,
    }


def _quantile(name: str, found: Quantile | None) -> Plain:
    bounds = found.interval if found else None
    return {
        f"{name}_seconds": found.seconds if found else None,
        f"{name}_lower_seconds": bounds.lower if bounds else None,
        f"{name}_upper_seconds": bounds.upper if bounds else None,
    }


def _interruption(name: str, place: Place | None) -> Plain:
    times: Times | None = place.interruption if place else None
    return {
        **_quantile(f"{name}_median", times.median if times else None),
        **_quantile(f"{name}_p95", times.p95 if times else None),
        f"{name}_period_seconds": place.period if place else None,
    }


def _place(place: Place) -> Plain:
    return {
        "place": place.name,
        "failed_requests": place.failures,
        "runs": place.interruption.ended + place.interruption.censored,
        "not_recovered": place.interruption.censored,
        **_interruption("interruption", place),
    }


def _shams(shams: Shams) -> Plain:
    return {
        "runs": shams.alarmed.n,
        "inconclusive": shams.inconclusive,
        "alarmed": shams.alarmed.hits,
        **_share("", shams.alarmed, "alarmed"),
        "alarms": shams.alarms,
        "hours": shams.hours,
        "false_alarms_per_hour": shams.per_hour,
        "false_alarms_per_hour_lower": shams.interval.lower,
        "false_alarms_per_hour_upper": shams.interval.upper,
        "named": dict(shams.rules),
    }


def _aside(run: Aside) -> Plain:
    return {
        "id": run.id,
        "number": run.number,
        "outcome": run.outcome.value,
        "reason": run.reason,
    }
