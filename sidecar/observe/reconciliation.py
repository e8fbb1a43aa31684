"""Counts of the engine, the gateway and the wire beside each other.

A disagreement is one that no request in flight can explain: what the wire saw well inside the span
exceeds what the other counted over all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sidecar.engines import canonical as names
from sidecar.ledger import Key, Span, Tally, seen
from sidecar.readings import engines as readings
from sidecar.readings.ends import ABORTS
from sidecar.signals import CollectorState, Leg, Observation
from sidecar.snapshot import Snapshot
from sidecar.units import count

_SHARE = 0.02  # of a count may differ: a request repeated, or with several choices
_EDGE_SECONDS = 5.0  # frames of the tap come up to 1 s late, scrapes take up to their deadline
_STEADY_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the wire tallies and a target's counters say of the same thing."""

    signal: str
    words: str
    wire: Callable[[Tally], int]
    metrics: tuple[str, ...]
    reasons: frozenset[str] = frozenset()  # only series of these reasons or kinds


ENGINE = (
    Comparison(
        "aborts",
        "clients that went away",
        lambda tally: tally.cancelled,
        (names.FINISHED.name, names.ERRORS.name),
        ABORTS,
    ),
    Comparison(
        "finished",
        "answered requests",
        lambda tally: tally.answered,
        (names.FINISHED.name,),
    ),
    Comparison(
        "generated_tokens",
        "token events",
        lambda tally: tally.token_events,
        (names.GENERATED_TOKENS.name,),
    ),
)
GATEWAY = (
    Comparison(
        "requests",
        "answered requests",
        lambda tally: tally.answered,
        (names.GATEWAY_REQUESTS.name,),
    ),
    Comparison(
        "aborts",
        "clients that went away",
        lambda tally: tally.cancelled,
        (names.GATEWAY_ABORTS.name,),
    ),
)


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """Every disagreement that holds now."""
    yield from _compare(snapshot, "engine:", readings.leg(snapshot), ENGINE)
    yield from _compare(snapshot, "gateway:", Leg.DOWNSTREAM, GATEWAY)
    yield from phantom(snapshot)


def _compare(
    snapshot: Snapshot, role: str, leg: Leg, comparisons: tuple[Comparison, ...]
) -> Iterator[Observation]:
    """All targets of a role together, as the wire sees them together; not while one is blind."""
    statuses = [s for s in snapshot.collectors if s.name.startswith(role)]
    spans = [snapshot.spans[s.name] for s in statuses if s.name in snapshot.spans]
    lost = any(s.state is CollectorState.BLIND for s in statuses)
    if lost or not spans or len(spans) < len(statuses):
        return
    bursts = any(reading.at_finish for reading in readings.read(snapshot))
    opened = next((w.open_requests for w in snapshot.windows if w.leg is leg), None)
    for comparison in comparisons:
        spare = 0
        if comparison.signal == "generated_tokens":
            ended = seen(spans, leg)
            if bursts or ended is None or opened is None:
                continue  # what open requests have generated is not counted yet
            spare = ended.ended + opened  # an engine may not count what prefill generates
        found = _disagreement(comparison, spans, leg, role, spare)
        if found is not None:
            yield found


def _disagreement(
    comparison: Comparison, spans: list[Span], leg: Leg, role: str, spare: int
) -> Observation | None:
    """One when the targets count less than they must, although ``spare`` need not be counted."""
    own = [_sum(span.whole, comparison) for span in spans]
    inside = seen(spans, leg, _EDGE_SECONDS)
    if any(value is None for value in own) or inside is None:
        return None
    counted = sum(value for value in own if value is not None)
    least = comparison.wire(inside)
    if counted >= (least - spare) * (1 - _SHARE):
        return None
    seconds = max(span.seconds for span in spans)
    who = role.rstrip(":")
    said = "none" if counted == 0 else f"{counted:,.0f}"
    text = (
        f"the {who} counts {said} of at least {least:,} {comparison.words} that the wire saw in "
        f"{seconds:.0f} s"
    )
    return Observation("disagreement", who, comparison.signal, text)


def _sum(counters: Mapping[Key, float], comparison: Comparison) -> float | None:
    """The increase of what is compared; None when the target does not count it at all."""
    values = [
        value
        for (metric, labels), value in counters.items()
        if metric in comparison.metrics and _chosen(dict(labels), comparison.reasons)
    ]
    return sum(values) if values else None


def _chosen(labels: dict[str, str], reasons: frozenset[str]) -> bool:
    word = labels.get("reason") or labels.get("kind") or ""
    return not reasons or word.lower() in reasons


def phantom(snapshot: Snapshot) -> Iterator[Observation]:
    """Requests that the engine says run while none is open on its leg, for half a minute.

    Gauges that are only renewed by a step keep their last value when requests are aborted at once.
    """
    leg = readings.leg(snapshot)
    running = _recent(snapshot, names.RUNNING.name)
    opened = _recent(snapshot, f"{leg}.open")
    if not running or not opened or not all(running) or any(opened):
        return
    if any(reading.generated_tokens_per_second for reading in readings.read(snapshot)):
        return  # it works for others, whose requests do not come this way
    text = (
        f"the engine says that {count(int(min(running)), 'request')} run; on the wire none has "
        f"been open for {_STEADY_SECONDS} s"
    )
    yield Observation("frozen", "engine", "requests_running", text)


def _recent(snapshot: Snapshot, key: str) -> list[float]:
    """The points of the last half minute, none if one of them is missing."""
    since = snapshot.at - _STEADY_SECONDS
    points = [value for at, value in snapshot.history.get(key, ()) if at > since]
    known = [value for value in points if value is not None]
    return known if len(known) == len(points) >= _STEADY_SECONDS - 2 else []
