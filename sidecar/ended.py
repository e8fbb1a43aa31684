"""Series of ended requests: counters and histograms by server, capped.

Servers beyond the cap fold into ``other``, and so do outcomes beyond theirs; both are counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from sidecar import gaps, paths
from sidecar.buckets import ITL_BOUNDS, REQUEST_BOUNDS, TTFT_BOUNDS, Buckets
from sidecar.signals import End, Histogram, Kind, Labels, Leg, Metric, RequestTiming, Sample

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
METRICS = (REQUESTS, TTFT, ITL, DURATION, EVENTS)
_BY_NAME = {metric.name: metric for metric in METRICS}
_MAX_COUNTS = 2_000
# In which bucket of the histogram the gaps of one of gaps.py's count.
_ITL_PLACES = tuple(
    bisect_left(ITL_BOUNDS, gaps.middle_seconds(bucket)) for bucket in range(gaps.BUCKETS)
)


class Ended:
    """Counts ended requests, those of LLMs with their latencies. Owned by one thread."""

    def __init__(self, max_servers: int) -> None:
        self._max_servers = max_servers
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._histograms: dict[tuple[str, Labels], Buckets] = {}
        self._servers: set[tuple[Leg, str]] = set()
        self.folded = 0

    def add(self, timing: RequestTiming, generates: bool) -> None:
        """Counts one request; its latencies too if it ``generates``."""
        where = self._where(timing)
        self._counts[REQUESTS.name, self._outcome(timing, where)] += 1
        if not generates:
            return
        if not timing.encoded:
            self._count_events(timing, where)
        self._add_latencies(timing, where)

    def series(self) -> Iterator[Sample | Histogram]:
        """Everything of :data:`METRICS` that has been measured."""
        for (name, labels), count in self._counts.items():
            yield Sample(name, float(count), labels)
        for (name, labels), buckets in self._histograms.items():
            yield buckets.view(_BY_NAME[name], labels)

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

    def _count_events(self, timing: RequestTiming, where: Labels) -> None:
        other = timing.events - timing.token_events
        self._counts[EVENTS.name, (*where, ("kind", "token"))] += timing.token_events
        self._counts[EVENTS.name, (*where, ("kind", "other"))] += other

    def _add_latencies(self, timing: RequestTiming, where: Labels) -> None:
        ended, trace = timing.at + timing.seconds, timing.trace_id
        if timing.end is not End.LOST:
            self._buckets(DURATION, where, REQUEST_BOUNDS).add(
                timing.seconds, trace_id=trace, at=ended
            )
        if timing.ttft_seconds is not None:
            self._buckets(TTFT, where, TTFT_BOUNDS).add(
                timing.ttft_seconds, trace_id=trace, at=ended
            )
        itl = self._buckets(ITL, where, ITL_BOUNDS)
        for bucket, count in timing.gaps:  # dozens a request
            itl.counts[_ITL_PLACES[bucket]] += count
            itl.sum += gaps.MIDDLES[bucket] * count

    def _buckets(self, metric: Metric, labels: Labels, bounds: tuple[float, ...]) -> Buckets:
        key = (metric.name, labels)
        if key not in self._histograms:
            self._histograms[key] = Buckets.of(bounds)
        return self._histograms[key]
