"""Latencies by the engine's or gateway's own histograms beside those of the wire.

A bucket tells between which bounds a median lies, and the two are counted over minutes that differ
by one scrape; a disagreement is what neither explains.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.engines import canonical as names
from sidecar.readings import engines as readings
from sidecar.readings import quantiles
from sidecar.signals import CollectorState, Leg, Observation
from sidecar.snapshot import WIRE_COLLECTOR, Snapshot
from sidecar.units import duration
from sidecar.windows import LegWindow

_ENOUGH = 20  # requests in the minute
_SLACK = 0.25  # of a bound: the two minutes are not the same minute
_SLACK_SECONDS = 0.010  # what a server spends outside its own clock: accept, parse, write
_SIGNALS = {
    "time_to_first_token_seconds": ("ttft", "time to first token"),
    "inter_token_latency_seconds": ("itl", "inter-token latency"),
}


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """Medians that contradict each other; only where each side has one target or leg to say it."""
    tap = snapshot.collector(WIRE_COLLECTOR)
    if tap is None or tap.state is CollectorState.BLIND:
        return
    windows = {window.leg: window for window in snapshot.windows}
    for role, leg in (("engine:", readings.leg(snapshot)), ("gateway:", Leg.DOWNSTREAM)):
        names = [s.name for s in snapshot.collectors if s.name.startswith(role)]
        window = windows.get(leg)
        if len(names) == 1 and window is not None and window.requests >= _ENOUGH:
            yield from _compare(snapshot, names[0].removeprefix(role), window)


def _compare(snapshot: Snapshot, replica: str, window: LegWindow) -> Iterator[Observation]:
    for bounds in quantiles.read(snapshot):
        if bounds.replica != replica or bounds.quantile != "0.5" or bounds.signal not in _SIGNALS:
            continue
        key, words = _SIGNALS[bounds.signal]
        if key == "itl" and _definitions(snapshot, replica) != {"per_step"}:
            continue  # an event on the wire may bring several tokens
        seen = window.ttft_p50 if key == "ttft" else window.itl_p50
        if seen is None or _agree(seen, bounds.lower, bounds.upper):
            continue
        if bounds.upper is None:
            own = f"more than {duration(bounds.lower)}"
        else:
            own = f"{duration(bounds.lower)} to {duration(bounds.upper)}"
        text = (
            f"{replica} gives {own} as the median {words} of the last minute; on the wire it is "
            f"{duration(seen)}"
        )
        yield Observation("disagreement", replica, key, text)


def _definitions(snapshot: Snapshot, replica: str) -> set[str]:
    """What one observation of its inter-token latency is."""
    labels = [dict(s.labels) for s in snapshot.by_metric().get(names.ITL.name, ())]
    own = [found for found in labels if found.get("replica") == replica]
    return {found.get(names.DEFINITION, "") for found in own}


def _agree(seen: float, lower: float, upper: float | None) -> bool:
    if seen < lower * (1 - _SLACK) - _SLACK_SECONDS:
        return False
    return upper is None or seen <= upper * (1 + _SLACK) + _SLACK_SECONDS
