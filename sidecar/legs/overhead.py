"""Counts what pairing decides: joined, not joined and why, attempts, and what the gateway added.

Differences are taken request by request, so they have quantiles of their own. One that is negative
is no overhead: it is counted apart and never becomes a 0.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from sidecar.buckets import TTFT_BOUNDS, Buckets
from sidecar.legs.minute import WINDOW_SECONDS, JoinWindow, Phase, Slot, added, summarise
from sidecar.legs.pairing import Join, Pairing, Reason, Unjoined
from sidecar.legs.request import TRACE, Request
from sidecar.signals import Histogram, Kind, Leg, Metric, RequestTiming, Sample

JOINED = Metric(
    "modelprobe_wire_requests_joined_total",
    Kind.COUNTER,
    "Clients' requests whose upstream requests were found, by the key that decided.",
    ("by",),
)
UNJOINED = Metric(
    "modelprobe_wire_requests_unjoined_total",
    Kind.COUNTER,
    "Requests of either leg whose other side was not found, and why.",
    ("leg", "reason"),
)
PENDING = Metric(
    "modelprobe_wire_requests_unsettled",
    Kind.GAUGE,
    "Ended requests that still wait for their other side.",
    ("leg",),
)
RATIO = Metric(
    "modelprobe_wire_joined_ratio",
    Kind.GAUGE,
    "Share joined of clients' LLM requests decided in the last minute; those that the gateway "
    "refused by itself (3xx, 4xx) do not count. No sample where there was none.",
)
OVERHEAD = Metric(
    "modelprobe_wire_gateway_overhead_seconds",
    Kind.HISTOGRAM,
    "What the gateway added to one LLM request: until it asked an engine (phase=request), to the "
    "first token (first_token), after the engine's end (end).",
    ("phase",),
)
NEGATIVE = Metric(
    "modelprobe_wire_gateway_overhead_negative_total",
    Kind.COUNTER,
    "LLM requests in which the gateway was earlier than the engine; not in the histogram.",
    ("phase",),
)
ATTEMPTS = Metric(
    "modelprobe_wire_upstream_requests",
    Kind.HISTOGRAM,
    "Upstream requests that the gateway made for one joined request of a client, where all of them "
    "are surely known.",
)
METRICS = (JOINED, UNJOINED, PENDING, RATIO, OVERHEAD, NEGATIVE, ATTEMPTS)

# From what a proxy in C adds to a first token that is held back.
OVERHEAD_BOUNDS = (0.0001, 0.00025, 0.0005, *TTFT_BOUNDS)
ATTEMPT_BOUNDS = (1.0, 2.0, 3.0, float("inf"))


class Overhead:
    """Both legs' requests in, series and a window out. Owned by one thread; its clock is a
    monotonic one. Only LLM requests are measured, all are joined and counted.
    """

    def __init__(self, pairing: Pairing | None = None) -> None:
        self._pairing = pairing or Pairing()
        self._joined: Counter[str] = Counter()
        self._unjoined: Counter[tuple[Leg, Reason]] = Counter()
        self._negative: Counter[Phase] = Counter()
        self._added = {phase: Buckets.of(OVERHEAD_BOUNDS) for phase in Phase}
        self._attempts = Buckets.of(ATTEMPT_BOUNDS)
        self._slots: deque[Slot] = deque(maxlen=WINDOW_SECONDS + 1)
        self._since: float | None = None

    def add(self, timing: RequestTiming, now: float, generates: bool) -> None:
        """Takes in one timing while both legs are watched."""
        if self._since is None:
            self._since = now
        self._pairing.add(timing, now, generates)

    def settle(self, now: float) -> None:
        """Counts what can be decided by now; about once a second."""
        for outcome in self._pairing.settle(now):
            if isinstance(outcome, Join):
                self._count_join(outcome, now)
            else:
                self._count_unjoined(outcome, now)

    def lose(self) -> None:
        """The tap is blind, or watches one leg only."""
        self._since = None
        self._slots.clear()
        self._pairing.lose()

    def _count_unjoined(self, outcome: Unjoined, now: float) -> None:
        request = outcome.request
        self._unjoined[request.leg, outcome.reason] += 1
        if request.leg is Leg.DOWNSTREAM and request.generates and self._since is not None:
            self._slot(now).add_unjoined(outcome)

    def _count_join(self, join: Join, now: float) -> None:
        self._joined[join.by] += 1
        if join.whole:
            self._attempts.add(float(len(join.attempts)))
        if not join.downstream.generates:
            return
        slot = self._slot(now)
        slot.add_join(join)
        for phase, seconds in added(join):
            if seconds < 0:
                self._negative[phase] += 1
            else:
                slot.measure(phase, seconds)
                self._measure(phase, seconds, join.downstream)

    def _measure(self, phase: Phase, seconds: float, down: Request) -> None:
        trace = down.keys[TRACE]
        known = trace if isinstance(trace, str) else None
        self._added[phase].add(seconds, trace_id=known, at=down.finish)

    def _slot(self, now: float) -> Slot:
        if not self._slots or self._slots[-1].second < int(now):
            self._slots.append(Slot(int(now)))
        return self._slots[-1]

    def window(self, now: float) -> JoinWindow | None:
        """What was decided in the last minute; None while not both legs are watched."""
        if self._since is None:
            return None
        slots = [slot for slot in self._slots if slot.second > int(now) - WINDOW_SECONDS]
        return summarise(slots, min(float(WINDOW_SECONDS), now - self._since))

    def signals(self, window: JoinWindow | None) -> Iterator[Sample | Histogram]:
        """Everything of :data:`METRICS` that has been measured; ``window`` is the last minute."""
        for by, count in self._joined.items():
            yield Sample(JOINED.name, float(count), (("by", by),))
        for (leg, reason), count in self._unjoined.items():
            labels = (("leg", leg.value), ("reason", reason.value))
            yield Sample(UNJOINED.name, float(count), labels)
        for phase, count in self._negative.items():
            yield Sample(NEGATIVE.name, float(count), (("phase", phase.value),))
        for phase, buckets in self._added.items():
            if any(buckets.counts):
                yield buckets.view(OVERHEAD, (("phase", phase.value),))
        if any(self._attempts.counts):
            yield self._attempts.view(ATTEMPTS, ())
        if window is None:
            return
        for leg in Leg:
            pending = float(self._pairing.pending(leg))
            yield Sample(PENDING.name, pending, (("leg", leg.value),))
        if window.ratio is not None:
            yield Sample(RATIO.name, window.ratio)
