"""The comparison at the top of the page: the wire's word on both legs, and the engine's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.export.page.cells import Cell, Engines, Wire, none
from sidecar.legs.minute import JoinWindow, Phase
from sidecar.signals import Leg
from sidecar.snapshot import Snapshot
from sidecar.units import difference, duration, number, percent
from sidecar.windows import LegWindow


@dataclass(frozen=True, slots=True)
class Row:
    """One signal; ``upstream`` None means that ``downstream`` speaks for both legs."""

    key: str
    name: str
    hint: str
    downstream: Cell
    upstream: Cell | None
    engine: Cell


def _ttft(window: LegWindow) -> Cell | None:
    if window.ttft_p50 is None:
        return None
    return Cell(duration(window.ttft_p50), f"p99 {duration(window.ttft_p99)}")


def _itl(window: LegWindow) -> Cell | None:
    if window.itl_p50 is None:
        return None
    tail = f"p99 {duration(window.itl_p99)}"
    if window.largest_gap is not None:
        tail += f" · max {duration(window.largest_gap)}"
    return Cell(duration(window.itl_p50), tail)


def _rate(window: LegWindow) -> Cell | None:
    if window.token_events_per_second is None:
        return None
    return Cell(f"{number(window.token_events_per_second)} /s", "token events")


def _open(window: LegWindow) -> Cell | None:
    if window.open_requests is None:
        return None
    oldest = window.oldest_open_seconds
    detail = f"oldest {duration(oldest)}" if oldest is not None else ""
    return Cell(f"{window.open_requests:,} open", detail)


def _requests(window: LegWindow) -> Cell:
    detail = f"{window.failed:,} failed"
    if window.cancelled:
        detail += f" · {window.cancelled:,} cancelled"
    return Cell(f"{window.requests:,}", detail, alarming=window.failed > 0)


def _medians(down: Wire, up: Wire) -> Cell:
    silence = down.silence or up.silence
    if silence or down.window is None or up.window is None:
        return none(f"needs both legs: {silence or 'no window'}")
    if down.window.ttft_p50 is None or up.window.ttft_p50 is None:
        return none("needs a first token on both legs")
    added = down.window.ttft_p50 - up.window.ttft_p50
    return Cell(difference(added), "difference of the medians")


def _overhead(down: Wire, up: Wire, joins: JoinWindow | None) -> Cell:
    """Request by request where the legs are joined, else the difference of what is known of all."""
    cell = _medians(down, up)
    if down.silence or up.silence or joins is None or joins.ratio is None:
        return cell
    first = joins.phase(Phase.FIRST_TOKEN)
    if first is not None:
        cell = Cell(difference(first.p50), f"p99 {duration(first.p99)}")
    parts = [cell.detail]
    for phase, words in ((Phase.REQUEST, "until it asks"), (Phase.END, "at the end")):
        one = joins.phase(phase)
        if one is not None:
            parts.append(f"{words} {duration(one.p50)}, p99 {duration(one.p99)}")
    parts.append(f"{percent(joins.ratio)} of {joins.requests:,} joined")
    return Cell(cell.value, " · ".join(parts))


_TTFT = "time_to_first_token_seconds"
_NO_TEXT, _NO_GAP = "no generated text seen", "no gap between tokens seen"


def _alone(wire: Wire, engine: Engines) -> tuple[Row, ...]:
    """The rows of a service without a gateway: one leg, nothing to compare it with."""
    text, gap, rate = (
        wire.cell(make, why)
        for make, why in ((_ttft, _NO_TEXT), (_itl, _NO_GAP), (_rate, _NO_TEXT))
    )
    ended = wire.count(_requests)
    return (
        Row("ttft", "Time to first token", "median of 60 s", text, None, engine.latency(_TTFT)),
        Row("itl", "Inter-token latency", "median of 60 s", gap, None, engine.gap()),
        Row("rate", "Token rate", "mean of 60 s", rate, None, engine.rate()),
        Row("queue", "In flight", "now", wire.count(_open), None, engine.queue()),
        Row("requests", "Requests ended", "last 60 s", ended, None, engine.finished()),
    )


def rows(snapshot: Snapshot) -> tuple[Row, ...]:
    """The table from top to bottom."""
    down, up = Wire(snapshot, Leg.DOWNSTREAM), Wire(snapshot, Leg.UPSTREAM)
    engine = Engines(snapshot)

    def both(make: Callable[[LegWindow], Cell | None], why: str) -> tuple[Cell, Cell]:
        return down.cell(make, why), up.cell(make, why)

    if snapshot.legs == (Leg.DOWNSTREAM,):
        return _alone(down, engine)
    added, unseeable = _overhead(down, up, snapshot.joins), none("cannot see it")
    ttft = engine.latency(_TTFT)
    in_flight = (down.count(_open), up.count(_open))
    ended = (down.count(_requests), up.count(_requests))
    return (
        Row("ttft", "Time to first token", "median of 60 s", *both(_ttft, _NO_TEXT), ttft),
        Row("overhead", "Gateway adds", "to the first token", added, None, unseeable),
        Row("itl", "Inter-token latency", "median of 60 s", *both(_itl, _NO_GAP), engine.gap()),
        Row("rate", "Token rate", "mean of 60 s", *both(_rate, _NO_TEXT), engine.rate()),
        Row("queue", "In flight", "now", *in_flight, engine.queue()),
        Row("requests", "Requests ended", "last 60 s", *ended, engine.finished()),
    )
