"""Scrapes made servers as the collector of engines does, for its tests."""

from __future__ import annotations

from sidecar.collectors.engine import EngineCollector
from sidecar.config import TargetSettings
from sidecar.signals import Sample, Signal


def opened(url: str, **settings: object) -> EngineCollector:
    """A collector of this address, ready to collect."""
    target = TargetSettings(name="r0", url=url, **settings)  # type: ignore[arg-type]
    collector = EngineCollector(target)
    collector.open()
    return collector


def collect(url: str, deadline: float = 5.0) -> list[Signal]:
    collector = opened(url, deadline_seconds=deadline)
    try:
        return list(collector.collect(0.0))
    finally:
        collector.close()


def samples(signals: list[Signal]) -> list[Sample]:
    return [signal for signal in signals if isinstance(signal, Sample)]


def total(signals: list[Signal], metric: str) -> float | None:
    """The sum of a metric's series, None where it has none."""
    values = [sample.value for sample in samples(signals) if sample.metric == metric]
    return sum(values) if values else None


def label(signals: list[Signal], metric: str, name: str) -> dict[str, float]:
    """A metric's series by one of their labels."""
    chosen = [sample for sample in samples(signals) if sample.metric == metric]
    return {dict(sample.labels)[name]: sample.value for sample in chosen}
