"""Engines and gateways beside each other and beside the wire: one idles while another queues, or
serves while its metrics do not answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.engines import canonical as names
from sidecar.readings import engines as readings
from sidecar.signals import Absence, Leg, Observation
from sidecar.snapshot import Snapshot
from sidecar.units import count

_ANSWERS = (Absence.HTTP_STATUS, Absence.NOT_METRICS)  # something is there


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """What holds now of engines."""
    said = readings.read(snapshot)
    for reading in said:
        parts = [(f"part {p.rank}", p.running, p.waiting) for p in reading.parts if p.rank]
        yield from imbalance(reading.replica, parts)
    models = _models(snapshot)
    for group in dict.fromkeys(models.values()):
        alike = [r for r in said if models.get(r.replica) == group]
        yield from imbalance("", [(r.replica, r.running, r.waiting) for r in alike])
    yield from unavailable(snapshot)


def _models(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """By replica, what it serves: requests for one model cannot go to an engine of another."""
    found: dict[str, frozenset[str]] = {}
    for sample in snapshot.scalars(names.RUNNING.name, names.WAITING.name):
        labels = dict(sample.labels)
        replica, model = labels.get("replica", ""), labels.get("model")
        found[replica] = found.get(replica, frozenset()) | ({model} if model else set())
    return found


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
    yield from _unavailable(snapshot, readings.ENGINE_COLLECTOR, readings.leg(snapshot))
    if Leg.DOWNSTREAM in snapshot.legs:  # what clients are answered there, a gateway answered
        yield from _unavailable(snapshot, readings.GATEWAY_COLLECTOR, Leg.DOWNSTREAM)


def _unavailable(snapshot: Snapshot, prefix: str, leg: Leg) -> Iterator[Observation]:
    window = next((w for w in snapshot.windows if w.leg is leg), None)
    if window is None:
        return
    answered = window.requests - window.failed - window.cancelled
    blind = readings.blind(snapshot, prefix)
    alone = len(blind) == len(readings.collectors(snapshot, prefix))
    # An engine serves on the port of its metrics; a gateway's admin port is another one.
    down = Absence.REFUSED if prefix == readings.ENGINE_COLLECTOR else None
    for status in blind:
        if status.absence is down or answered <= 0:
            continue
        if status.age_seconds is not None and status.age_seconds < window.seconds:
            continue  # they may have been answered before
        if not alone and status.absence not in _ANSWERS:
            continue  # others may have answered them
        replica = status.name.partition(":")[2]
        text = (
            f"the metrics of {replica} do not answer, but the service does: "
            f"{count(answered, 'request')} answered in the last minute"
        )
        yield Observation("metrics_unavailable", replica, "", text)
