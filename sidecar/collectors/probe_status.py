"""How the kernel programs fare: their counters, the loader, and with which processes they are on.

The collectors that are clients of ``probed`` share it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sidecar.probed import coverage, frames, link
from sidecar.probed.frames import FrameError, Status
from sidecar.signals import CollectorState, Coverage, Kind, Metric, Sample, Signal

_COVERED_SECONDS = 3.0  # probed tells it once a second
_MOST_COVERED = 1_000  # in that time; probed tells of far fewer
INFO = Metric(
    "modelprobe_probe_info",
    Kind.GAUGE,
    "1; a loaded kernel program and the loader that brought it in.",
    ("probe", "loader"),
)
_COUNTER_HELP = {
    "packets": "Packets of watched ports that the program looked at.",
    "requests": "Requests whose head was seen.",
    "events": "Server-sent events counted in the kernel.",
    "lost_records": "Ended requests lost because the ring was full.",
    "table_full": "Connections not followed because the table was full.",
    "not_http": "Connections whose first bytes were not HTTP/1.",
    "blind_tls": "Connections that are TLS: the tap cannot read them.",
    "blind_http2": "Connections that are HTTP/2: the tap does not read it yet.",
    "resyncs": "Times bytes of a connection were missed or came out of order.",
    "pipelined": "Requests sent before the one before was answered; their heads are not kept.",
    "contended": "Packets not read: another CPU held their connection for too long.",
    "unclassified": "Events too long to be told apart within the bounds of the search.",
    "folded": "Connections given up early because the table was nearly full.",
    "frames_dropped": "Frames not sent because the sidecar read too slowly.",
}
COUNTERS = tuple(
    Metric(f"modelprobe_probe_{name}_total", Kind.COUNTER, _COUNTER_HELP[name], ("probe",))
    for name in frames.COUNTER_NAMES
)
METRICS = (INFO, *COUNTERS)


def of_status(status: Status) -> Iterator[Signal]:
    """The probe's counters, and how it fares; its counters only while it works."""
    probe = ("probe", status.probe)
    state = CollectorState.BLIND if status.absence else CollectorState.ATTACHED
    if status.counters.requests and not status.absence:
        state = CollectorState.FIRING
    absence = link.absent(status)
    yield Coverage(
        status.probe,
        "",
        0,
        0,
        0,
        state,
        absence=absence.absence if absence else None,
        reason=status.reason,
    )
    if absence is not None:
        return
    yield Sample(INFO.name, 1.0, (probe, ("loader", status.loader)))
    for metric, name in zip(COUNTERS, frames.COUNTER_NAMES, strict=True):
        yield Sample(metric.name, float(getattr(status.counters, name)), (probe,))


class Covered:
    """What was told lately of the processes that these probes follow; one that has ended is told
    no more.
    """

    def __init__(self, *probes: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._probes, self._clock = frozenset(probes), clock
        self._kept: dict[tuple[str, int, str], tuple[float, Coverage]] = {}

    def keep(self, frame: bytes) -> None:
        """Takes in a COVERAGE frame; raises FrameError, also for one process too many."""
        one = coverage.unpack(frame)
        if one.probe not in self._probes:
            return
        key = (one.probe, one.pid, one.process)
        if key not in self._kept and len(self._kept) >= _MOST_COVERED:
            raise FrameError(f"coverage of more than {_MOST_COVERED} processes")
        self._kept[key] = (self._clock(), one)

    def clear(self) -> None:
        """Forgets all."""
        self._kept.clear()

    def signals(self) -> Iterator[Coverage]:
        """What holds."""
        since = self._clock() - _COVERED_SECONDS
        self._kept = {key: kept for key, kept in self._kept.items() if kept[0] >= since}
        return (one for _, one in self._kept.values())
