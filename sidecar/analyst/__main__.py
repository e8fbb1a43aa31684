"""The analyst's process: slots in on standard input, rounds out on standard output.

It ends with its input: then nobody is left to listen.
"""

from __future__ import annotations

import ctypes
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

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LATENCIES = ("ttft", "itl", "duration")


def options(slo: SloSettings) -> Options:
    """The numbers of the rules, with the strictest objective of each latency."""
    found = dict(Options().slo_seconds)
    given: dict[str, float] = {}
    for one in slo.objectives:
        if one.signal in _LATENCIES and one.threshold_seconds is not None:
            given[one.signal] = min(one.threshold_seconds, given.get(one.signal, float("inf")))
    return Options(slo_seconds={**found, **given})


def main() -> None:
    """Runs until standard input ends."""
    # Ends with the thread that started us even if we are stopped, when no pipe would.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is meant for the parent
    given = json.loads(sys.argv[1])
    drift = DriftSettings.model_validate(given["drift"])
    file = File()
    slots = Slots(time_zone(drift.zone), drift.days, drift.max_series, file=file)
    slots.open(Path(given["file"]) if given["file"] else None)
    analysis = Analysis(slots, options(SloSettings.model_validate(given["slo"])), file)
    with os.fdopen(sys.stdin.fileno(), "rb") as lines:
        for line in lines:
            found = analysis.take(messages.decode_slot(line))
            sys.stdout.buffer.write(messages.encode_report(found))
            sys.stdout.buffer.flush()
    slots.close()


if __name__ == "__main__":
    main()
