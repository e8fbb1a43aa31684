"""Everything the page shows, as data: the templates decide nothing and format nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sidecar.export.intake import safe_label
from sidecar.export.page.alarms import Strip, strip
from sidecar.export.page.cards import Card, cards
from sidecar.export.page.drift import Table, table
from sidecar.export.page.headline import Row, rows
from sidecar.export.page.panels import panels, span
from sidecar.export.page.plot import Plot, Span
from sidecar.export.page.sentences import sentences
from sidecar.observe.coverage import covered
from sidecar.signals import CollectorState, CollectorStatus, Coverage, Leg
from sidecar.snapshot import Snapshot
from sidecar.units import ago, count

STALE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Chip:
    """One collector of the strip: ``read`` is when it last did, ``why`` is for people, ``facts``
    are figures that should be 0.
    """

    name: str
    state: str
    read: str
    absence: str
    why: str
    facts: str
    stand_in: bool


@dataclass(frozen=True, slots=True)
class View:
    """The whole page."""

    version: str
    time: str
    age: str
    stale: bool
    uptime: str
    stand_ins: tuple[str, ...]
    alarms: Strip
    observations: tuple[str, ...]
    alone: bool  # one leg is watched: there is no gateway to look behind
    rows: tuple[Row, ...]
    unseen: str  # parts of a request's way that nothing measures now
    chips: tuple[Chip, ...]
    probes: tuple[Chip, ...]
    tally: str
    cards: tuple[Card, ...]
    drift: Table
    plots: tuple[Plot, ...]
    span: Span


def view(snapshot: Snapshot, version: str, now: float) -> View:
    """What the page says about a snapshot at a time."""
    age = max(0.0, now - snapshot.at)
    return View(
        version=version,
        time=datetime.fromtimestamp(snapshot.at, UTC).strftime("%H:%M:%S UTC"),
        age=ago(age),
        stale=age > STALE_SECONDS,
        uptime=ago(max(0.0, now - snapshot.started)),
        stand_ins=tuple(
            safe_label(status.name) for status in snapshot.collectors if status.stand_in
        ),
        alarms=strip(snapshot),
        observations=sentences(snapshot.observations),
        alone=snapshot.legs == (Leg.DOWNSTREAM,),
        rows=rows(snapshot),
        unseen=", ".join(name for name, seen in covered(snapshot).items() if not seen),
        chips=tuple(_chip(status) for status in snapshot.collectors),
        probes=tuple(_probe(one) for one in snapshot.coverage),
        tally=_tally(snapshot),
        cards=cards(snapshot),
        drift=table(snapshot),
        plots=panels(snapshot),
        span=span(snapshot),
    )


def _tally(snapshot: Snapshot) -> str:
    states = [status.state for status in snapshot.collectors]
    parts = [f"{states.count(state)} {state.value}" for state in CollectorState if state in states]
    return ", ".join(parts)


def _chip(status: CollectorStatus) -> Chip:
    blind = status.state is CollectorState.BLIND
    why = safe_label(status.reason) if blind else ""
    if status.state is CollectorState.ATTACHED:
        why = "Open; nothing to report so far."
    return Chip(
        name=safe_label(status.name),
        state=status.state.value,
        read=_read(status),
        absence=(status.absence or "no reason given").replace("_", " ") if blind else "",
        why=why,
        facts=" · ".join(_facts(status)),
        stand_in=status.stand_in,
    )


def _probe(one: Coverage) -> Chip:
    """A kernel probe by itself, or with one process."""
    pids = str(one.pid) if one.pid == one.ns_pid else f"{one.pid}, {one.ns_pid} inside"
    process = f" · {one.process}" if one.process else ""
    return Chip(
        name=safe_label(f"{one.probe}{process}"),
        state=one.state.value,
        read=f"pid {pids}" if one.pid else "",
        absence=(one.absence or "").replace("_", " "),
        why=safe_label(one.reason),
        facts=f"{count(one.parts, 'attachment')}" if one.parts else "",
        stand_in=False,
    )


def _read(status: CollectorStatus) -> str:
    if status.age_seconds is None:
        return "never read"
    return "read just now" if status.age_seconds < 1 else f"read {ago(status.age_seconds)} ago"


def _facts(status: CollectorStatus) -> list[str]:
    facts = [f"{n:,} × {absence.replace('_', ' ')}" for absence, n in status.failures]
    return [*facts, f"{status.dropped:,} dropped"] if status.dropped else facts
