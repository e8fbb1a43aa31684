"""Renders a snapshot as Prometheus text 0.0.4 or OpenMetrics 1.0.0, with the client's renderer.

The only module that imports prometheus_client. Nothing is registered globally, so its default
process and platform metrics are not served.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, repeat

from prometheus_client import exposition as text
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Exemplar as FamilyExemplar
from prometheus_client.samples import Sample as FamilySample
from prometheus_client.utils import floatToGoString

from sidecar.export import alarms, own
from sidecar.export.intake import Intake, Series, declarations
from sidecar.export.negotiation import Format
from sidecar.export.own import METRICS
from sidecar.signals import Exemplar, Histogram, Metric, Sample
from sidecar.snapshot import Snapshot

__all__ = ["METRICS", "Exposition"]

# OpenMetrics allows 128 characters for names and values together. An id cut short would be
# another id, so one that does not fit is left out.
_TRACE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_EOF = b"# EOF\n"
_GZIP = 31  # zlib's window bits for a gzip header


class Exposition:
    """Scrapes of snapshots. The body is rendered once for each snapshot and format and kept for
    the latest snapshot; only its age is rendered at every scrape, so that it still grows when
    snapshots stop. Not thread-safe: one event loop owns it. ValueError on bad declarations.
    """

    def __init__(self, metrics: tuple[Metric, ...], version: str) -> None:
        self._declared = declarations((*METRICS, *alarms.METRICS, *metrics))
        self._version = version
        self._kept: tuple[float, int] | None = None
        self._bodies: dict[Format, bytes] = {}
        self._packed: dict[Format, tuple[bytes, zlib._Compress]] = {}

    def render(self, snapshot: Snapshot, form: Format) -> bytes:
        """The exposition without the snapshot's age and without OpenMetrics' end; uncached."""
        intake = Intake(self._declared)
        for signal in chain(
            own.samples(snapshot, self._version), alarms.samples(snapshot), snapshot.samples
        ):
            intake.add(signal)
        for reason, count in intake.rejected.copy().items():
            intake.add(Sample(own.REJECTED.name, float(count), (("reason", reason.value),)))
        families = (_family(self._declared[name], series) for name, series in intake.series.items())
        return _render(families, form).removesuffix(_EOF)

    def scrape(self, snapshot: Snapshot, form: Format, now: float) -> bytes:
        """A whole answer; ``now`` is Unix time and makes the snapshot's age."""
        return self._body(snapshot, form) + self._age(snapshot, form, now)

    def scrape_gzip(self, snapshot: Snapshot, form: Format, now: float) -> bytes:
        """The same, compressed; what does not change between scrapes is compressed once."""
        body = self._body(snapshot, form)
        if form not in self._packed:
            stream = zlib.compressobj(level=6, wbits=_GZIP)
            self._packed[form] = (stream.compress(body) + stream.flush(zlib.Z_SYNC_FLUSH), stream)
        head, stream = self._packed[form]
        rest = stream.copy()
        return head + rest.compress(self._age(snapshot, form, now)) + rest.flush()

    def _body(self, snapshot: Snapshot, form: Format) -> bytes:
        identity = (snapshot.started, snapshot.sequence)
        if identity != self._kept:
            self._kept = identity
            self._bodies.clear()
            self._packed.clear()
        if form not in self._bodies:
            self._bodies[form] = self.render(snapshot, form)
        return self._bodies[form]

    def _age(self, snapshot: Snapshot, form: Format, now: float) -> bytes:
        age = Sample(own.SNAPSHOT_AGE.name, max(0.0, now - snapshot.at))
        return _render([_family(own.SNAPSHOT_AGE, [(age, {})])], form)


class _Families(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


def _render(families: Iterable[Family], form: Format) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Families(family for family in families if family.samples))
    if form is Format.TEXT:
        return text.generate_latest(registry)
    # Our names are legal under every scheme, so escaping changes no byte; but `underscores`
    # walks each name character by character and takes several times as long.
    body: bytes = openmetrics.generate_latest(  # type: ignore[no-untyped-call] # it has no types
        registry, escaping=openmetrics.ALLOWUTF8
    )
    return body


def _family(metric: Metric, series: list[Series]) -> Family:
    family = Family(metric.name.removesuffix("_total"), metric.help, metric.kind.value)
    for signal, labels in series:
        if isinstance(signal, Histogram):
            family.samples.extend(_buckets(signal, labels))
        else:
            family.samples.append(FamilySample(metric.name, labels, signal.value))
    return family


def _buckets(histogram: Histogram, labels: dict[str, str]) -> Iterator[FamilySample]:
    name = f"{histogram.metric}_bucket"
    exemplars = chain(histogram.exemplars, repeat(None))
    for le, count, exemplar in zip(
        _edges(histogram.bounds), histogram.counts, exemplars, strict=False
    ):
        yield FamilySample(name, {**labels, "le": le}, count, None, _exemplar(exemplar))
    yield FamilySample(f"{histogram.metric}_count", labels, histogram.counts[-1])
    yield FamilySample(f"{histogram.metric}_sum", labels, histogram.sum)


@lru_cache(maxsize=64)  # histograms of one metric share their bounds: 5 % of a rendering
def _edges(bounds: tuple[float, ...]) -> tuple[str, ...]:
    return tuple(
        floatToGoString(bound)  # type: ignore[no-untyped-call] # it has no types
        for bound in bounds
    )


def _exemplar(exemplar: Exemplar | None) -> FamilyExemplar | None:
    if exemplar is None or not _TRACE_ID.fullmatch(exemplar.trace_id):
        return None
    return FamilyExemplar({"trace_id": exemplar.trace_id}, exemplar.value, round(exemplar.at, 3))
