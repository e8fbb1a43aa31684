"""What a campaign says to Prometheus while it runs: its runs, their times, what is in force.

The only module of chaos that imports prometheus_client. Its registry is its own, and its endpoint
is on loopback unless somebody says otherwise. Nothing here blocks a run.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from math import inf, isfinite

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from chaos import metrics
from chaos.vocabulary import Kind, Outcome, Run
from sidecar.export.intake import safe_label
from sidecar.signals import Kind as Type
from sidecar.signals import Metric

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 300.0, 600.0, inf)
MAX_SETS = 256  # of labels, of each metric
OTHER = "other"
Labels = tuple[str, ...]


class Unservable(Exception):
    """The endpoint cannot be opened: the address, why, and the remedy."""


class Figures(Collector):
    """The counts of one campaign. Any thread may tell it something or scrape it.

    ``outstanding`` says how many undos the journal holds, None for not known; it is called at each
    scrape and has to be quick. ``sent`` and ``dropped`` are the spans', by reason.
    """

    def __init__(
        self,
        outstanding: Callable[[], int | None] = lambda: None,
        sent: Callable[[], int] = lambda: 0,
        dropped: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._lock = threading.Lock()
        self._values: dict[Metric, dict[Labels, float]] = {metric: {} for metric in metrics.METRICS}
        self._times: dict[tuple[Metric, Labels], Counter[float]] = {}
        self._folded = 0
        self._outstanding, self._sent, self._dropped = outstanding, sent, dropped
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def began(self, fault: str, method: str) -> None:
        """A fault is let loose."""
        with self._lock:
            self._set(metrics.ACTIVE, (fault, method), 1.0)

    def over(self, fault: str, method: str) -> None:
        """It is undone, or was never there."""
        with self._lock:
            self._set(metrics.ACTIVE, (fault, method), 0.0)

    def ended(self, run: Run) -> None:
        """All of a run that is over."""
        with self._lock:
            self._count(run)
            if run.kind is Kind.SHAM and run.outcome is not Outcome.INCONCLUSIVE:
                self._sham(run)
            elif run.kind is Kind.FAULT and run.outcome in (
                Outcome.RECOVERED,
                Outcome.NOT_RECOVERED,
            ):
                self._proven(run)

    def collect(self) -> Iterator[Family]:
        """The families of a scrape; those without a sample are there with their help."""
        outstanding = self._journal()
        spans: dict[Labels, float] = {(why,): many for why, many in self._dropped().items()}
        with self._lock:
            values = {metric: dict(found) for metric, found in self._values.items()}
            times = {key: found.copy() for key, found in self._times.items()}
            values[metrics.FOLDED][()] = float(self._folded)
        values[metrics.SPANS_SENT][()] = float(self._sent())
        values[metrics.SPANS_DROPPED] = spans
        values[metrics.OUTSTANDING] = {} if outstanding is None else {(): outstanding}
        for metric in metrics.METRICS:
            yield _family(metric, values[metric], times)

    def _journal(self) -> float | None:
        try:
            return self._outstanding()
        except (OSError, ValueError):  # a journal that cannot be read is no empty one
            return None

    def _count(self, run: Run) -> None:
        way = (run.fault, run.method, run.layer.value)
        self._add(metrics.RUNS, (*way, run.kind.value, run.outcome.value))
        if run.healing is not None:
            self._add(metrics.ENDINGS, (*way[:2], run.healing.ending.value))
        if run.left_behind:
            self._add(metrics.LEFT_BEHIND, way[:2])

    def _sham(self, run: Run) -> None:
        alarms = sum(alarm.at >= 0 for alarm in run.detected)
        self._add(metrics.FALSE_ALARMS, (run.fault, run.method), alarms)
        self._add(metrics.SHAM_SECONDS, (run.fault, run.method), max(0.0, run.watched))

    def _proven(self, run: Run) -> None:
        way = (run.fault, run.method, run.layer.value)
        took = run.time_to_recover
        if run.outcome is Outcome.RECOVERED and took is not None:
            self._observe(metrics.RECOVER, way, took)
        for place in run.places:
            self._observe(metrics.INTERRUPTION, (*way, place.place), place.interruption)
        effect = run.effect
        after = [] if effect is None else [a.at - effect for a in run.detected if a.at >= effect]
        if after:
            self._observe(metrics.DETECT, way, min(after))
        else:
            self._add(metrics.UNDETECTED, way)

    def _set(self, metric: Metric, labels: Labels, value: float) -> None:
        self._values[metric][self._capped(metric, labels, self._values[metric])] = value

    def _add(self, metric: Metric, labels: Labels, value: float = 1.0) -> None:
        known = self._values[metric]
        labels = self._capped(metric, labels, known)
        known[labels] = known.get(labels, 0.0) + value

    def _observe(self, metric: Metric, labels: Labels, seconds: float) -> None:
        if not isfinite(seconds):
            return
        sums = self._values[metric]
        labels = self._capped(metric, labels, sums)
        seconds = max(0.0, seconds)
        sums[labels] = sums.get(labels, 0.0) + seconds
        bound = BOUNDS[bisect_left(BOUNDS, seconds)]
        self._times.setdefault((metric, labels), Counter())[bound] += 1

    def _capped(self, metric: Metric, labels: Labels, known: Mapping[Labels, float]) -> Labels:
        """The labels made safe, or ``other`` for each when there are too many sets already."""
        safe = tuple(safe_label(value) for value in labels)
        if safe in known or len(known) < MAX_SETS:
            return safe
        self._folded += 1
        return (OTHER,) * len(metric.labels)


def _family(
    metric: Metric,
    values: Mapping[Labels, float],
    times: Mapping[tuple[Metric, Labels], Counter[float]],
) -> Family:
    if metric.kind is Type.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, total in values.items():
            found, many = times[metric, labels], 0
            buckets = []
            for bound in BOUNDS:
                many += found[bound]
                buckets.append((_word(bound), many))
            histogram.add_metric(labels, buckets, total)
        return histogram
    kind = CounterMetricFamily if metric.kind is Type.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _word(bound: float) -> str:
    return "+Inf" if bound == inf else str(bound)


@contextmanager
def served(
    figures: Figures, port: int, address: str = "127.0.0.1", *, exposed: bool = False
) -> Iterator[int]:
    """Serves ``/metrics`` while it is open and gives the port, which 0 lets the system choose;
    raises ``Unservable``. ``exposed`` allows an address that others can reach.
    """
    if not exposed and not _loopback(address):
        raise Unservable(f"metrics address {address!r} is not of this machine alone; use 127.0.0.1")
    try:
        server, thread = start_http_server(port, address, figures.registry)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise Unservable(f"metrics at {address}:{port}: {why}; choose another port") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:  # a name may mean anything tomorrow; this one does not
        return address == "localhost"
