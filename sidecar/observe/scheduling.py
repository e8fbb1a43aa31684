"""Processes whose threads wait long for a CPU."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.collectors.processes import samples
from sidecar.signals import Observation
from sidecar.snapshot import Snapshot
from sidecar.units import duration

# A wait of up to a few turns of another thread (about 3 ms each) is what a busy machine gives; one
# that only passes 10 ms now and then costs nothing as long as little time is lost in all.
LONG_SECONDS = 0.008  # the bucket that 10 ms are in begins at 8.4 ms
SHARE = 0.10  # of the time that its threads had a CPU


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """One a process: the 99th percentile of the last minute's waits is long, and waiting in all
    is a good part of its CPU time. Both, since either alone is seen on a healthy busy machine.
    """
    lower: dict[str, float] = {}
    waiting: dict[str, float] = {}
    for sample in snapshot.scalars(samples.P99.name, samples.WAITING.name):
        labels = dict(sample.labels)
        process = labels.get("process", "")
        if sample.metric == samples.WAITING.name:
            waiting[process] = sample.value
        elif labels.get("bound") == "lower":
            lower[process] = sample.value
    for process, seconds in lower.items():
        ratio = waiting.get(process)
        if ratio is None or seconds < LONG_SECONDS or ratio <= SHARE:
            continue
        yield Observation(
            "run_queue",
            process,
            "run_queue",
            f"threads of {process} wait for a CPU: one in a hundred waits of the last minute took "
            f"{duration(seconds)} or longer, and waiting made up "
            f"{100 * ratio:.0f}\N{NO-BREAK SPACE}% of the time they ran",
        )
