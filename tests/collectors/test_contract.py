"""What every collector of the table must keep, whoever wrote it."""

import re
from importlib import import_module

import pytest

from sidecar.app import declared_metrics, make_collectors
from sidecar.collectors import COLLECTORS, Collector
from sidecar.config import Settings
from sidecar.export import own
from sidecar.signals import Kind

SETTINGS = Settings.model_validate(
    {
        "engines": [{"name": "r0", "url": "http://127.0.0.1:9"}],
        "gpu": {"enabled": "always"},
        "kmsg": {"enabled": True},
        "kubernetes": {"node": "n-1"},
        "probes": {"enabled": ["wire", "sched"]},
        "wire": {"socket": "/nonexistent/p.sock", "ports": [{"port": 8080}]},
    }
)
UNITS = (
    "seconds",
    "bytes",
    "ratio",
    "joules",
    "watts",
    "celsius",
    "hertz",
    "info",
    "time",
    "requests",
)


@pytest.mark.parametrize("collector", make_collectors(SETTINGS), ids=lambda c: c.name)
def test_shape(collector: Collector) -> None:
    """Name, timing and metrics are declared, and closing an unopened collector is safe."""
    assert re.fullmatch(r"[a-z]+(:[A-Za-z0-9_.:-]+)?", collector.name)
    assert collector.interval_seconds >= 0
    assert 0 < collector.deadline_seconds <= 60
    assert collector.metrics
    collector.close()
    collector.close()


def test_every_entry_makes_a_collector_when_asked() -> None:
    """Each table entry makes a collector of full settings; empty ones make what needs none."""
    made = {collector.name.split(":")[0] for collector in make_collectors(SETTINGS)}
    assert made == set(COLLECTORS)
    assert [c.name for c in make_collectors(Settings())] == ["pressure"]


@pytest.mark.parametrize("metric", [*declared_metrics(), *own.METRICS], ids=lambda m: m.name)
def test_metric_names(metric) -> None:  # type: ignore[no-untyped-def]
    """One prefix, snake case, `_total` for counters only, no milli-units, a help text."""
    assert re.fullmatch(r"modelprobe_[a-z][a-z0-9_]*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert not re.search(r"_(ms|millis|micros|us|mb|kb|percent|perc)(_|$)", metric.name)
    assert metric.help.endswith(".")
    if metric.kind is Kind.HISTOGRAM:
        assert metric.name.endswith(UNITS)


def test_the_table_names_modules_that_declare_their_metrics() -> None:
    """Docs and exporter find a METRICS tuple in every collector's module."""
    for entry in COLLECTORS.values():
        assert import_module(entry.partition(":")[0]).METRICS
