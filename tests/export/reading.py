"""Reads an exposition back with the client library's own parsers."""

from __future__ import annotations

import pytest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text

from sidecar.export.negotiation import Format
from sidecar.export.prometheus import Exposition
from sidecar.signals import Kind, Metric
from sidecar.snapshot import Snapshot
from tests.export import made

BOTH = pytest.mark.parametrize("form", list(Format), ids=lambda form: form.name.lower())
GAUGE = Metric("modelprobe_test", Kind.GAUGE, "A gauge.", ("who",))


def scrape(snapshot: Snapshot, form: Format, *more: Metric, now: float = made.AT) -> str:
    """One answer as text."""
    exposition = Exposition((*made.METRICS, *more), "0.1.0")
    return exposition.scrape(snapshot, form, now).decode()


def parse(body: str, form: Format) -> dict[str, Family]:
    """Families by name."""
    families = text(body) if form is Format.TEXT else openmetrics(body)
    return {family.name: family for family in families}


def values(body: str, form: Format, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Samples of one name by their labels."""
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in parse(body, form).values()
        for sample in family.samples
        if sample.name == name
    }
