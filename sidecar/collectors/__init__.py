"""Sources: one file each, registered here by name and imported only when enabled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from sidecar.signals import Metric, Signal

# Every entry is a callable `(config: Settings) -> Iterable[Collector]`: none when the
# configuration asks for none, several when it names several targets.
COLLECTORS: dict[str, str] = {
    "engine": "sidecar.collectors.engine:from_settings",
    "kmsg": "sidecar.collectors.kmsg:from_settings",
    "listeners": "sidecar.collectors.listeners:from_settings",
    "node": "sidecar.collectors.node:from_settings",
    "nvml": "sidecar.collectors.nvml:from_settings",
    "pressure": "sidecar.collectors.pressure:from_settings",
    "processes": "sidecar.collectors.processes:from_settings",
    "probes": "sidecar.collectors.wire:from_settings",
    "tcp": "sidecar.collectors.tcp:from_settings",
}


@runtime_checkable
class Releasable(Protocol):
    """A collector that holds something others may need for themselves, such as a driver."""

    def release(self) -> None:
        """Gives it up until :meth:`retake`; safe from any thread."""

    def retake(self) -> None:
        """May have it again."""


class Collector(Protocol):
    """A source. One thread of its own calls it, one call at a time.

    ``open`` raises :class:`~sidecar.signals.NoData` when the source is absent and is retried with
    back-off. ``collect`` returns what is new: Samples and Histograms replace this collector's
    earlier ones, RequestTimings add up. It raises NoData when the source went away; the collector
    is then closed and opened again. ``interval_seconds`` is the time between two collections and
    ``deadline_seconds`` how long one may take before the collector is called stuck and its values
    are withdrawn. ``close`` must be safe at any time, also from another thread while ``collect``
    blocks. A ``streamed`` collector fires when timings arrive, a polled one with every answer.
    """

    name: str
    metrics: tuple[Metric, ...]
    streamed: bool
    interval_seconds: float
    deadline_seconds: float

    def open(self) -> None:
        """Reaches the source."""

    def collect(self, now: float) -> Iterable[Signal]:
        """What is new at ``now`` (Unix seconds)."""

    def close(self) -> None:
        """Lets go of the source."""
