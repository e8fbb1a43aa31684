"""The analyst's process: slots in on standard input, rounds out on standard output.

It ends with its input: then nobody is left to listen.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from sidecar.analyst.analysis import Analysis
from sidecar.analyst.file import File
from sidecar.analyst.slots import Slots
from sidecar.config import SloSettings
from sidecar.config.drift import DriftSettings, time_zone
from sidecar.drift import messages
from sidecar.drift.options import Options

_LATENCIES = ("ttft", "itl", "duration")


def options(drift: DriftSettings, slo: SloSettings) -> Options:
    """The numbers of the rules, with the strictest objective of each latency."""
    found = dict(Options().slo_seconds)
    given: dict[str, float] = {}
    for one in slo.objectives:
        if one.signal in _LATENCIES and one.threshold_seconds is not None:
            given[one.signal] = min(one.threshold_seconds, given.get(one.signal, float("inf")))
    return Options(
        slo_seconds={**found, **given},
        guard_slo_share=drift.guard_objective_ratio,
        guard_share=drift.guard_ratio,
        q=drift.false_discovery_ratio,
        ks_p=drift.ks_p,
        ks_delta_seconds=drift.ks_change_seconds,
    )


def main() -> None:
    """Runs until standard input ends."""
    # No death signal of the parent (prctl(2)): it comes when the *thread* that started us ends, and
    # a reload of the settings ends that one. The end of our input is enough.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is meant for the parent
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no report
    given = json.loads(sys.argv[1])
    drift = DriftSettings.model_validate(given["drift"])
    file = File()
    slots = Slots(time_zone(drift.zone), drift.days, drift.max_series, file=file)
    slots.open(Path(given["file"]) if given["file"] else None)
    analysis = Analysis(slots, options(drift, SloSettings.model_validate(given["slo"])), file)
    with os.fdopen(sys.stdin.fileno(), "rb") as lines:
        for line in lines:
            found = analysis.take(messages.decode_slot(line))
            reports.write(messages.encode_report(found))
            reports.flush()
    slots.close()


if __name__ == "__main__":
    main()
