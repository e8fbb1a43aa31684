"""Sliding windows over request timings: one slot a second, quantiles of what ended in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sidecar import gaps
from sidecar.signals import End, Leg, RequestTiming

_SLOT_VALUES = 2_000  # TTFTs kept a second; beyond, quantiles are of the first ones


def quantile(values: list[float], q: float) -> float | None:
    """The q-quantile of unsorted values by linear interpolation; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


@dataclass(frozen=True, slots=True)
class LegWindow:
    """What one leg did in a window; every quantile is None when nothing was measured."""

    leg: Leg
    seconds: float
    requests: int
    failed: int
    ttft_p50: float | None
    ttft_p99: float | None
    itl_p50: float | None
    itl_p99: float | None
    largest_gap: float | None
    token_events_per_second: float | None
    open_requests: int
    oldest_open_seconds: float | None


def failed(timing: RequestTiming) -> bool:
    """Whether a request failed for its client: cut short, no status, or a status from 400.

    One that the tap lost track of is unknown, which is not a failure.
    """
    if timing.end is End.LOST:
        return False
    return timing.end is not End.COMPLETE or timing.status is None or timing.status >= 400


@dataclass(slots=True)
class Slot:
    """What ended in one second, or since the start."""

    second: int
    requests: int = 0
    failed: int = 0
    token_events: int = 0
    ttft: list[float] = field(default_factory=list)
    gaps: Counter[int] = field(default_factory=Counter)
    largest_gap: float = 0.0

    def add(self, timing: RequestTiming) -> None:
        """Counts one ended LLM request."""
        self.requests += 1
        self.failed += failed(timing)
        self.token_events += timing.token_events
        if timing.ttft_seconds is not None and len(self.ttft) < _SLOT_VALUES:
            self.ttft.append(timing.ttft_seconds)
        for bucket, count in timing.gaps:
            self.gaps[bucket] += count
        self.largest_gap = max(self.largest_gap, timing.largest_gap_seconds or 0.0)


def summarise(
    leg: Leg,
    slots: Sequence[Slot],
    seconds: float,
    open_now: Sequence[RequestTiming],
    ttft: list[float] | None = None,
) -> LegWindow:
    """The window that these slots make; ``ttft`` replaces the values in them."""
    merged: Counter[int] = Counter()
    for slot in slots:
        merged.update(slot.gaps)
    if ttft is None:
        ttft = [value for slot in slots for value in slot.ttft]
    token_events = sum(slot.token_events for slot in slots)
    return LegWindow(
        leg=leg,
        seconds=seconds,
        requests=sum(slot.requests for slot in slots),
        failed=sum(slot.failed for slot in slots),
        ttft_p50=quantile(ttft, 0.5),
        ttft_p99=quantile(ttft, 0.99),
        itl_p50=gaps.quantile(merged.items(), 0.5),
        itl_p99=gaps.quantile(merged.items(), 0.99),
        largest_gap=max((slot.largest_gap for slot in slots), default=0.0) or None,
        token_events_per_second=token_events / seconds if slots and seconds > 0 else None,
        open_requests=len(open_now),
        oldest_open_seconds=max((timing.seconds for timing in open_now), default=None),
    )
