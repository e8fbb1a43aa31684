"""Sliding windows over request timings: one slot a second, quantiles of what ended in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sidecar import gaps
from sidecar.signals import End, Leg, OpenRequests, RequestTiming

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
    """What one leg did in a window; every quantile and rate is None when nothing was measured.

    ``seconds`` is the time that was really watched. ``failed`` are the service's failures,
    ``cancelled`` requests that their client gave up. What is open is None while the tap is blind.
    """

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
    open_requests: int | None
    oldest_open_seconds: float | None
    cancelled: int = 0
    encoded: int = 0  # streams that are compressed: their events cannot be read


def failed(timing: RequestTiming) -> bool:
    """Whether the service failed a request: cut short, an error in the stream, no status, 5xx or
    429.

    A client that gives up or asks for something wrong is no failure of the service, and a request
    that the tap lost track of is unknown.
    """
    if timing.end in (End.LOST, End.CLIENT_GONE):
        return False
    if timing.end is not End.COMPLETE or timing.status is None:
        return True
    return timing.status >= 500 or timing.status == 429


@dataclass(slots=True)
class Slot:
    """What ended in one second, or since the start. Token events count when they were seen."""

    second: int
    requests: int = 0
    failed: int = 0
    cancelled: int = 0
    streams: int = 0  # that the tap can read: what makes a rate of token events mean anything
    encoded: int = 0
    token_events: int = 0
    ttft: list[float] = field(default_factory=list)
    gaps: Counter[int] = field(default_factory=Counter)
    largest_gap: float = 0.0

    def add(self, timing: RequestTiming) -> None:
        """Counts one ended LLM request, but not its token events."""
        self.requests += 1
        self.failed += failed(timing)
        self.cancelled += timing.end is End.CLIENT_GONE
        self.streams += timing.streamed and not timing.encoded
        self.encoded += timing.streamed and timing.encoded
        if timing.ttft_seconds is not None and len(self.ttft) < _SLOT_VALUES:
            self.ttft.append(timing.ttft_seconds)
        for bucket, count in timing.gaps:
            self.gaps[bucket] += count
        self.largest_gap = max(self.largest_gap, timing.largest_gap_seconds or 0.0)


def summarise(
    leg: Leg,
    slots: Sequence[Slot],
    seconds: float,
    open_now: OpenRequests | None,
    ttft: list[float] | None = None,
) -> LegWindow:
    """The window that these slots make; ``ttft`` replaces the values in them."""
    merged: Counter[int] = Counter()
    for slot in slots:
        merged.update(slot.gaps)
    if ttft is None:
        ttft = [value for slot in slots for value in slot.ttft]
    largest = max((slot.largest_gap for slot in slots), default=0.0) or None
    return LegWindow(
        leg=leg,
        seconds=seconds,
        requests=sum(slot.requests for slot in slots),
        failed=sum(slot.failed for slot in slots),
        cancelled=sum(slot.cancelled for slot in slots),
        encoded=sum(slot.encoded for slot in slots),
        ttft_p50=quantile(ttft, 0.5),
        ttft_p99=quantile(ttft, 0.99),
        itl_p50=_within(gaps.quantile(merged.items(), 0.5), largest),
        itl_p99=_within(gaps.quantile(merged.items(), 0.99), largest),
        largest_gap=largest,
        token_events_per_second=_rate(slots, seconds),
        open_requests=None if open_now is None else open_now.count,
        oldest_open_seconds=None if open_now is None else open_now.oldest_seconds,
    )


def _within(estimate: float | None, largest: float | None) -> float | None:
    """A quantile of buckets can lie above the largest gap, which is exact."""
    if estimate is None or largest is None:
        return estimate
    return min(estimate, largest)


def _rate(slots: Sequence[Slot], seconds: float) -> float | None:
    events = sum(slot.token_events for slot in slots)
    if seconds <= 0 or not (events or any(slot.streams for slot in slots)):
        return None
    return events / seconds
