"""Adds up request timings of the wire: totals for Prometheus, sliding windows for the page.

Memory is bounded: windows are one slot a second, servers are capped and the rest folds into
``other``. Only ended requests count; what is open is shown as such. Time here is monotonic, so a
step of the wall clock changes no rate.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sidecar import gaps, paths
from sidecar.buckets import ITL_BOUNDS, REQUEST_BOUNDS, TTFT_BOUNDS, Buckets
from sidecar.ledger import Tally
from sidecar.signals import (
    End,
    Histogram,
    Kind,
    Labels,
    Leg,
    Metric,
    OpenRequests,
    RequestTiming,
    Sample,
)
from sidecar.windows import LegWindow, Slot, failed, summarise

_LEG = ("leg", "server")
REQUESTS = Metric(
    "modelprobe_wire_requests_total",
    Kind.COUNTER,
    "Requests that ended, by templated path, status (0: none was sent) and how they ended.",
    (*_LEG, "path", "status", "end"),
)
TTFT = Metric(
    "modelprobe_wire_ttft_seconds",
    Kind.HISTOGRAM,
    "From the request's first byte to the first event that carries generated text.",
    _LEG,
)
ITL = Metric(
    "modelprobe_wire_itl_seconds",
    Kind.HISTOGRAM,
    "Gap between consecutive token events of one request. An event may carry several tokens.",
    _LEG,
)
DURATION = Metric(
    "modelprobe_wire_request_seconds",
    Kind.HISTOGRAM,
    "From an LLM request's first byte to its end.",
    _LEG,
)
EVENTS = Metric(
    "modelprobe_wire_events_total",
    Kind.COUNTER,
    "Server-sent events of ended LLM requests; kind=token carries generated text.",
    (*_LEG, "kind"),
)
LARGEST_GAP = Metric(
    "modelprobe_wire_largest_gap_seconds",
    Kind.GAUGE,
    "Largest gap between token events among the requests that ended in the last minute.",
    ("leg",),
)
OPEN = Metric(
    "modelprobe_wire_open_requests",
    Kind.GAUGE,
    "Requests that have not ended; no sample while the tap is blind.",
    ("leg",),
)
METRICS = (REQUESTS, TTFT, ITL, DURATION, EVENTS, LARGEST_GAP, OPEN)

WINDOW_SECONDS = 60
_MAX_OPEN = 5_000
_MAX_COUNTS = 2_000
_OPEN_FRESH_SECONDS = 3.5  # what is open is reported once a second


class Traffic:
    """All requests of the wire. Owned by one thread; its clock is a monotonic one."""

    def __init__(self, max_servers: int = 50, history_seconds: int = 300) -> None:
        self._max_servers = max_servers
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._histograms: dict[tuple[str, Labels], Buckets] = {}
        self._slots: dict[Leg, deque[Slot]] = {leg: deque(maxlen=history_seconds) for leg in Leg}
        self._total: dict[Leg, Slot] = {}
        self._recent_ttft: dict[Leg, deque[float]] = {leg: deque(maxlen=20_000) for leg in Leg}
        self._told: dict[tuple[Leg, str, float], int] = {}  # token events of open requests so far
        self._open: dict[Leg, tuple[float, OpenRequests]] = {}
        self._tallies: dict[Leg, Tally] = {}
        self._servers: set[tuple[Leg, str]] = set()
        self._watching_since: float | None = None
        self.folded = 0

    def watch(self, now: float) -> None:
        """The tap sees: what it does not report from now on did not happen."""
        if self._watching_since is None:
            self._watching_since = now

    def lose(self) -> None:
        """The tap is blind: what is open, and what happens meanwhile, is unknown."""
        self._watching_since = None
        self._open.clear()
        self._told.clear()

    def set_open(self, found: OpenRequests, now: float) -> None:
        """What the kernel's table holds of a leg."""
        self._open[found.leg] = (now, found)

    def legs(self) -> tuple[Leg, ...]:
        """The legs that the tap has spoken of."""
        return tuple(leg for leg in Leg if leg in self._open)

    def add(self, timing: RequestTiming, now: float) -> None:
        """Counts one ended request, or the progress of an open one."""
        generates = paths.generates(timing.path, timing.streamed)
        key = (timing.leg, timing.server, timing.at)
        if generates:
            self._add_token_events(key, timing, now)
        if timing.end is End.OPEN:
            return
        self._told.pop(key, None)
        where = self._where(timing)
        self._counts[REQUESTS.name, self._outcome(timing, where)] += 1
        if generates:
            self._add_generation(timing, where, now)

    def _add_token_events(
        self, key: tuple[Leg, str, float], timing: RequestTiming, now: float
    ) -> None:
        """Credits token events to the second in which they were reported, not to the end."""
        fresh = timing.token_events - self._told.get(key, 0)
        if timing.end is End.OPEN:
            if key not in self._told and len(self._told) >= _MAX_OPEN:
                return
            self._told[key] = timing.token_events
        if fresh > 0:
            self._slot(timing.leg, int(now)).token_events += fresh
            tally = self._tallies.get(timing.leg, Tally())
            self._tallies[timing.leg] = replace(tally, token_events=tally.token_events + fresh)

    def _where(self, timing: RequestTiming) -> Labels:
        server = (timing.leg, timing.server)
        if server not in self._servers:
            if len(self._servers) >= self._max_servers:
                self.folded += 1
                return (("leg", timing.leg.value), ("server", paths.OTHER))
            self._servers.add(server)
        return (("leg", timing.leg.value), ("server", timing.server))

    def _outcome(self, timing: RequestTiming, where: Labels) -> Labels:
        end = ("end", timing.end.value)
        path = ("path", paths.template(timing.path))
        labels: Labels = (*where, path, ("status", str(timing.status or 0)), end)
        if (REQUESTS.name, labels) in self._counts or len(self._counts) < _MAX_COUNTS:
            return labels
        # A server may answer with a thousand statuses; what is folded keeps its class.
        self.folded += 1
        status = ("status", f"{(timing.status or 0) // 100}xx")
        return (where[0], ("server", paths.OTHER), ("path", paths.OTHER), status, end)

    def _add_generation(self, timing: RequestTiming, where: Labels, now: float) -> None:
        self._slot(timing.leg, int(now)).add(timing)
        self._tally(timing)
        total = self._total.setdefault(timing.leg, Slot(0))
        total.add(timing)
        total.ttft.clear()
        total.token_events += timing.token_events
        if not timing.encoded:
            self._count_events(timing, where)
        ended = timing.at + timing.seconds
        trace = timing.trace_id
        if timing.end is not End.LOST:
            self._buckets(DURATION, where, REQUEST_BOUNDS).add(
                timing.seconds, trace_id=trace, at=ended
            )
        if timing.ttft_seconds is not None:
            self._recent_ttft[timing.leg].append(timing.ttft_seconds)
            self._buckets(TTFT, where, TTFT_BOUNDS).add(
                timing.ttft_seconds, trace_id=trace, at=ended
            )
        itl = self._buckets(ITL, where, ITL_BOUNDS)
        for bucket, count in timing.gaps:
            itl.add(gaps.middle_seconds(bucket), count)

    def _tally(self, timing: RequestTiming) -> None:
        tally = self._tallies.get(timing.leg, Tally())
        whole = timing.end is End.COMPLETE and (timing.status or 0) // 100 == 2
        self._tallies[timing.leg] = replace(
            tally,
            ended=tally.ended + 1,
            answered=tally.answered + whole,
            failed=tally.failed + failed(timing),
            cancelled=tally.cancelled + (timing.end is End.CLIENT_GONE),
        )

    def tallies(self) -> Mapping[Leg, Tally] | None:
        """What was counted since the start, by leg; None while the tap is blind."""
        if self._watching_since is None:
            return None
        return {leg: self._tallies.get(leg, Tally()) for leg in self.legs()}

    def _count_events(self, timing: RequestTiming, where: Labels) -> None:
        other = timing.events - timing.token_events
        self._counts[EVENTS.name, (*where, ("kind", "token"))] += timing.token_events
        self._counts[EVENTS.name, (*where, ("kind", "other"))] += other

    def _slot(self, leg: Leg, second: int) -> Slot:
        slots = self._slots[leg]
        if not slots or slots[-1].second < second:
            slots.append(Slot(second))
        return slots[-1]

    def _buckets(self, metric: Metric, labels: Labels, bounds: tuple[float, ...]) -> Buckets:
        key = (metric.name, labels)
        if key not in self._histograms:
            self._histograms[key] = Buckets.of(bounds)
        return self._histograms[key]

    def window(self, leg: Leg, now: float, seconds: int = WINDOW_SECONDS) -> LegWindow:
        """What ended in the last seconds, and what is open now."""
        since = int(now) - seconds
        slots = [slot for slot in self._slots[leg] if slot.second > since]
        watched = now - self._watching_since if self._watching_since is not None else 0.0
        return summarise(leg, slots, min(float(seconds), watched), self._open_now(leg, now))

    def total(self, leg: Leg, now: float, seconds: float) -> LegWindow:
        """What ended since the start; TTFT quantiles are of the last 20,000 requests."""
        slot = self._total.get(leg)
        open_now = self._open_now(leg, now)
        ttft = list(self._recent_ttft[leg])
        return summarise(leg, [slot] if slot else [], seconds, open_now, ttft)

    def _open_now(self, leg: Leg, now: float) -> OpenRequests | None:
        heard, found = self._open.get(leg, (0.0, None))
        return found if found is not None and now - heard <= _OPEN_FRESH_SECONDS else None

    def signals(self, windows: Iterable[LegWindow]) -> Iterable[Sample | Histogram]:
        """Everything of :data:`METRICS` that has been measured; ``windows`` are the last minute."""
        for (name, labels), count in self._counts.items():
            yield Sample(name, float(count), labels)
        by_name = {metric.name: metric for metric in METRICS}
        for (name, labels), buckets in self._histograms.items():
            yield buckets.view(by_name[name], labels)
        for window in windows:
            labels = (("leg", window.leg.value),)
            if window.open_requests is not None:
                yield Sample(OPEN.name, float(window.open_requests), labels)
            if window.largest_gap is not None and self._watching_since is not None:
                yield Sample(LARGEST_GAP.name, window.largest_gap, labels)
