"""How the kernel treats the watched processes: what the probe ``sched`` of ``probed`` tells.

When ``probed`` or its probe is absent only this source is lost; the state says why.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from sidecar.collectors import probe_status
from sidecar.collectors.chosen import selectors
from sidecar.collectors.listening import Listening, listening
from sidecar.collectors.probe_status import Covered
from sidecar.collectors.processes import samples
from sidecar.collectors.processes.samples import SchedSamples
from sidecar.config import Settings
from sidecar.probed import frames
from sidecar.probed.frames import FrameType, Watch
from sidecar.probed.link import Link, absent
from sidecar.probed.targets import Selector
from sidecar.signals import Absence, Event, Metric, NoData, Signal

PROBE = "sched"
METRICS: tuple[Metric, ...] = samples.METRICS


def from_settings(settings: Settings) -> Iterable[ProcessesCollector]:
    """One collector when the probe is enabled and there is something to follow."""
    chosen = selectors(settings)
    if PROBE not in settings.probes.enabled or not (settings.wire.watches or chosen):
        return []
    return [ProcessesCollector(settings.wire.socket, listening(settings), chosen)]


class ProcessesCollector:
    """A client of one ``probed`` that watches processes: those that are chosen, and those that
    listen on the watched ports.
    """

    name = "processes"
    metrics = METRICS
    streamed = False
    interval_seconds = 1.0
    deadline_seconds = 5.0

    def __init__(
        self,
        path: Path,
        ports: Listening,
        chosen: tuple[Selector, ...],
        proc: Path = Path("/proc"),
    ) -> None:
        self._ports, self._chosen, self._link = ports, chosen, Link(path, proc)
        self._asked: Watch | None = None
        self._samples = SchedSamples()  # for life: counters go on over a new connection
        self._covered = Covered(PROBE)

    def open(self) -> None:
        """Connects and says what to watch; raises NoData until ``probed`` answers."""
        self._covered.clear()
        self._asked = self._watch()
        self._link.open(self._asked)

    def collect(self, now: float) -> Iterable[Signal]:
        """Everything that stands, and what has happened since the last call."""
        if (wanted := self._watch()) != self._asked:
            self._asked = wanted
            self._link.ask(wanted)
        clock = time.monotonic()
        told = self._take(self._link.read(), now - clock, clock)
        status = self._link.statuses.get(PROBE)
        if status is None:
            raise NoData(
                Absence.NOT_FOUND,
                f"probed runs without the probe {PROBE}: start it with --probe {PROBE}",
            )
        if (why := absent(status)) is not None and not told:
            raise why
        return [
            *told,
            *probe_status.of_status(status),
            *self._covered.signals(),
            *self._samples.signals(clock),
        ]

    def close(self) -> None:
        """Leaves probed; it goes on for others."""
        self._link.close()

    def _watch(self) -> Watch:
        # Requests are the wire collector's: thousands a second would push what is told here out.
        return Watch(self._ports.ports(), self._chosen, requests=False)

    def _take(self, received: Iterable[bytes], offset: float, clock: float) -> list[Event]:
        """What has happened; figures are kept, and what cannot be read is counted."""
        told: list[Event] = []
        for frame in received:
            try:
                kind = frames.frame_type(frame)
                if kind in (FrameType.SCHED, FrameType.PROCESS):
                    told += self._samples.take(frame, offset, clock)
                elif kind is FrameType.COVERAGE:
                    self._covered.keep(frame)
            except frames.FrameError:
                self._link.bad_frames += 1
        return told
