"""Engines beside each other and beside the wire: one idles while another queues, or serves while
its metrics do not answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.readings import engines as readings
from sidecar.signals import Absence, Observation
from sidecar.state import Snapshot
from sidecar.units import count


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """What holds now of engines."""
    said = readings.read(snapshot)
    for reading in said:
        parts = [(f"part {p.rank}", p.running, p.waiting) for p in reading.parts if p.rank]
        yield from imbalance(reading.replica, parts)
    yield from imbalance("", [(r.replica, r.running, r.waiting) for r in said])
    yield from unavailable(snapshot)


def imbalance(
    replica: str, parts: list[tuple[str, float | None, float | None]]
) -> Iterator[Observation]:
    """Some queue while others have nothing to do: requests are not spread by need."""
    queueing = [(name, waiting) for name, _, waiting in parts if waiting]
    idle = [name for name, running, waiting in parts if running == 0 and waiting == 0]
    if not queueing or not idle:
        return
    name, waiting = max(queueing, key=lambda item: item[1])
    of = f" of {replica}" if replica else ""
    text = f"{name}{of} queues {count(int(waiting), 'request')} while {', '.join(idle)} idles"
    yield Observation("imbalance", replica or name, "requests_waiting", text)


def unavailable(snapshot: Snapshot) -> Iterator[Observation]:
    """Metrics that do not answer while requests do: blind, and not down."""
    leg = readings.leg(snapshot)
    window = next((w for w in snapshot.windows if w.leg is leg), None)
    if window is None:
        return
    answered = window.requests - window.failed - window.cancelled
    for status in readings.blind(snapshot):
        if status.absence is Absence.REFUSED or answered <= 0:
            continue
        replica = status.name.partition(":")[2]
        text = (
            f"the metrics of {replica} do not answer, but the service does: "
            f"{count(answered, 'request')} answered in the last minute"
        )
        yield Observation("metrics_unavailable", replica, "", text)
