"""Requests as the wire shows them: what the wire taps of ``probed`` (plain and TLS) send.

When ``probed`` or its tap is absent, refused, stopped or killed, only this source is lost; the
state says which.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from sidecar.collectors import probe_status
from sidecar.collectors.chosen import selectors
from sidecar.collectors.listening import Listening, listening
from sidecar.collectors.probe_status import Covered
from sidecar.collectors.wire import samples
from sidecar.config import Settings
from sidecar.probed import frames
from sidecar.probed.frames import FrameType, Watch
from sidecar.probed.link import Link, absent
from sidecar.probed.targets import Selector
from sidecar.probed.tcp_counts import unpack_tcp
from sidecar.signals import Leg, RequestTiming, Sample, Signal

METRICS = samples.METRICS
TAPS = ("wire", "wire_tls")  # probes whose records are requests
_CLOCK_STEP_SECONDS = 0.5


def from_settings(settings: Settings) -> Iterable[WireCollector]:
    """One collector when ports or processes are to be watched, none otherwise."""
    chosen = selectors(settings)
    if not settings.wire.watches and not chosen:
        return []
    return [WireCollector(settings.wire.socket, listening(settings), chosen)]


class WireCollector:
    """A client of one ``probed`` that watches ports, and names the processes that matter."""

    name = "probes"
    metrics = METRICS
    streamed = True
    interval_seconds = 0.0  # collect itself waits for frames
    deadline_seconds = 5.0

    def __init__(
        self,
        path: Path,
        listening: Listening,
        chosen: tuple[Selector, ...] = (),
        proc: Path = Path("/proc"),
    ) -> None:
        self._listening, self._chosen, self._link = listening, chosen, Link(path, proc)
        self._ports: dict[int, Leg] = {}
        self._offset = 0.0  # Unix time minus CLOCK_MONOTONIC, the kernel program's clock
        self._bad = 0
        self._tcp: dict[int, tuple[Signal, ...]] = {}
        self._covered = Covered(*TAPS)

    def open(self) -> None:
        """Connects and asks for the ports; raises NoData until ``probed`` answers."""
        self._tcp.clear()
        self._covered.clear()
        self._link.open(self.watch())

    def collect(self, now: float) -> Iterable[Signal]:
        """The requests since the last call and the taps' counters; waits up to 0.25 s."""
        self._keep_time(now)
        if self._ports != self._listening.ports():
            self._link.ask(self.watch())
        signals: list[Signal] = [*self._requests(self._link.read())]
        statuses = [s for s in self._link.statuses.values() if s.probe in TAPS]
        missing = [absent(status) for status in statuses]
        if not signals and missing and all(missing):
            raise next(why for why in missing if why is not None)
        for status in statuses:
            signals.extend(probe_status.of_status(status))
        signals.extend(samples.opened(statuses, self._ports))
        signals.extend(one for counts in self._tcp.values() for one in counts)
        signals.extend(self._covered.signals())
        signals.extend(self._listening.coverage())
        bad = self._link.bad_frames + self._bad
        signals.append(Sample(samples.BAD_FRAMES.name, float(bad)))
        return signals

    def close(self) -> None:
        """Leaves probed; it goes on for others."""
        self._link.close()

    def watch(self) -> Watch:
        """What is asked for now."""
        self._ports = self._listening.ports()
        self._tcp = {port: counts for port, counts in self._tcp.items() if port in self._ports}
        return Watch(self._ports, self._chosen)

    def _keep_time(self, now: float) -> None:
        """Unix time minus the kernel program's clock, kept while it holds, so that the reports of
        one request agree to the bit on its start.
        """
        offset = now - time.monotonic()
        if abs(offset - self._offset) > _CLOCK_STEP_SECONDS:
            self._offset = offset

    def _requests(self, received: Iterable[bytes]) -> Iterable[RequestTiming]:
        """The requests among these frames; what else they say is kept."""
        for frame in received:
            try:
                kind = frames.frame_type(frame)
                if kind is FrameType.REQUEST:
                    yield frames.unpack_request(frame, self._ports, self._offset)
                elif kind is FrameType.TCP:
                    self._keep_tcp(frame)
                elif kind is FrameType.COVERAGE:
                    self._covered.keep(frame)
            except (frames.FrameError, ValueError):
                self._bad += 1

    def _keep_tcp(self, frame: bytes) -> None:
        for port, counts in unpack_tcp(frame[frames.HEADER_BYTES :]).items():
            if port in self._ports:
                self._tcp[port] = tuple(samples.of_tcp(port, self._ports[port], counts))
