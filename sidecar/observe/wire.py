"""What both legs of the wire show together: lumps, and a share of requests that fails."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.signals import CollectorState, Leg, Observation
from sidecar.snapshot import WIRE_COLLECTOR, Snapshot
from sidecar.units import count, duration
from sidecar.windows import LegWindow

LUMP_GAP_SECONDS = 0.15  # a pause this long is seen by a reader
_TOGETHER_SECONDS = 0.001  # tokens this close came in one packet or two in a row
_FEW = 5  # requests; below, a share is an anecdote
_FAILING = 0.05


def lumps(downstream: LegWindow, upstream: LegWindow) -> Observation | None:
    """Tokens reach clients in lumps although the engine sends them one by one.

    Compares both legs: most gaps at the client are next to none and a few are long, while the
    engine's own are even. A fast engine (small gaps on both legs), a stall of the engine (long
    gaps on both) or an unwatched leg do not count.
    """
    near, largest = downstream.itl_p50, downstream.largest_gap
    even, worst = upstream.itl_p50, upstream.itl_p99
    if near is None or largest is None or even is None or worst is None:
        return None
    lumped = largest >= LUMP_GAP_SECONDS and near < _TOGETHER_SECONDS
    if not lumped or even < 2 * near or worst > largest / 2:
        return None
    return Observation(
        "lumps",
        Leg.DOWNSTREAM.value,
        "itl",
        f"clients receive tokens in lumps: half of the gaps between token events are under "
        f"{duration(_round_up(near))}, the largest is {duration(largest)}, while the engine "
        f"sends one every {duration(even)} (99\N{NO-BREAK SPACE}% within "
        f"{duration(_round_up(worst))}). The stream is held back between the two legs, in the "
        "gateway",
    )


def _round_up(seconds: float) -> float:
    milliseconds = seconds * 1000
    step = 0.1 if milliseconds < 1 else 1.0
    return (int(milliseconds / step) + 1) * step / 1000


def failing(window: LegWindow) -> Observation | None:
    """A share of the last minute's requests that failed, from 5 % of at least 5."""
    if window.requests < _FEW or window.failed < _FAILING * window.requests:
        return None
    who = "clients saw" if window.leg is Leg.DOWNSTREAM else "the gateway saw"
    share = 100 * window.failed / window.requests
    return Observation(
        "failing",
        window.leg.value,
        "requests",
        f"{who} {window.failed:,} of {count(window.requests, 'request')} fail in the last minute "
        f"({share:.0f}\N{NO-BREAK SPACE}%)",
    )


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """What holds now; nothing while the tap is blind."""
    tap = snapshot.collector(WIRE_COLLECTOR)
    if tap is None or tap.state is CollectorState.BLIND:
        return
    windows = {window.leg: window for window in snapshot.windows}
    down, up = windows.get(Leg.DOWNSTREAM), windows.get(Leg.UPSTREAM)
    found = [lumps(down, up) if down and up else None]
    found.extend(failing(window) for window in (down, up) if window)
    yield from (observation for observation in found if observation)
