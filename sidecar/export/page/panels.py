"""Which plots the page holds: three pairs, the client side above the engine side.

The latencies of both legs share one axis, so that what the gateway adds is seen as height.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.export.page.cells import engine_silence, wire_silence
from sidecar.export.page.plot import Plot, Series, Span, plot, span_of, top_of
from sidecar.readings import gpus
from sidecar.signals import Leg
from sidecar.snapshot import Snapshot
from sidecar.units import duration, gibibytes, number, percent

_GIB = 2.0**30
_SIDE = {Leg.DOWNSTREAM: "client → gateway", Leg.UPSTREAM: "gateway → engine"}


def panels(snapshot: Snapshot) -> tuple[Plot, ...]:
    """The plots in reading order: both legs where both are watched, cards where there are any."""
    ttft = _latency(snapshot, "ttft", "TTFT")
    itl = _latency(snapshot, "itl", "ITL")
    down, up = Leg.DOWNSTREAM, Leg.UPSTREAM
    if snapshot.legs == (down,):
        service: tuple[Plot, ...] = (ttft[down], itl[down], _rate(snapshot), _queue(snapshot))
    else:
        service = (ttft[down], ttft[up], itl[down], itl[up], _rate(snapshot), _queue(snapshot))
    return (*service, *_gpus(snapshot))


def span(snapshot: Snapshot) -> Span:
    """The time that every plot of this snapshot shows."""
    return span_of(snapshot.at - snapshot.started)


def _series(snapshot: Snapshot, name: str, style: str, key: str) -> Series:
    return Series(name, style, snapshot.history.get(key, ()))


def _latency(snapshot: Snapshot, name: str, title: str) -> dict[Leg, Plot]:
    pairs = {
        leg: (
            _series(snapshot, "p50", leg.value, f"{leg}.{name}_p50"),
            _series(snapshot, "p99", f"{leg} second", f"{leg}.{name}_p99"),
        )
        for leg in Leg
    }
    top = top_of(
        tuple(line for pair in pairs.values() for line in pair), snapshot.at, span(snapshot)
    )
    return {
        leg: plot(
            f"{name}-{leg}",
            title if snapshot.legs == (Leg.DOWNSTREAM,) else f"{title}, {_SIDE[leg]}",
            pair,
            snapshot.at,
            duration,
            top=top,
            empty=_wire_empty(snapshot, leg),
            span=span(snapshot),
        )
        for leg, pair in pairs.items()
    }


def _rate(snapshot: Snapshot) -> Plot:
    series = (
        _series(
            snapshot,
            "wire, events",
            Leg.DOWNSTREAM.value,
            f"{Leg.DOWNSTREAM}.token_events_per_second",
        ),
        _series(snapshot, "engine, tokens", "engine second", canonical.GENERATED_TOKENS.name),
    )
    why = f"{_wire_empty(snapshot, Leg.DOWNSTREAM)} {_engine_empty(snapshot)}"
    title = "Tokens per second"
    return plot("rate", title, series, snapshot.at, number, empty=why, span=span(snapshot))


def _queue(snapshot: Snapshot) -> Plot:
    series = (
        _series(snapshot, "running", "engine", canonical.RUNNING.name),
        _series(snapshot, "waiting", "engine second", canonical.WAITING.name),
    )
    why = _engine_empty(snapshot)
    title = "Requests in the engine"
    return plot("queue", title, series, snapshot.at, number, empty=why, span=span(snapshot))


def _gib(value: float | None) -> str:
    return gibibytes(None if value is None else value * _GIB)


def _gpus(snapshot: Snapshot) -> tuple[Plot, ...]:
    """Memory of all cards and their mean utilisation; nothing where no card was ever seen."""
    held = _series(snapshot, "in use", "gpu", gpus.MEMORY_KEY)
    # In GiB, so that the axis is round in them.
    points = tuple((at, value and value / _GIB) for at, value in held.points)
    memory = Series(held.name, held.style, points)
    busy = _series(snapshot, "mean", "gpu", gpus.BUSY_KEY)
    if not any(value is not None for line in (memory, busy) for _, value in line.points):
        return ()
    why = "No card answers."
    within = span(snapshot)
    return (
        plot("memory", "GPU memory", (memory,), snapshot.at, _gib, empty=why, span=within),
        plot("busy", "GPU utilisation", (busy,), snapshot.at, percent, empty=why, span=within),
    )


def _wire_empty(snapshot: Snapshot, leg: Leg) -> str:
    return f"Wire: {wire_silence(snapshot, leg) or 'no token yet'}."


def _engine_empty(snapshot: Snapshot) -> str:
    return f"Engine: {engine_silence(snapshot) or 'no figure in this time'}."
