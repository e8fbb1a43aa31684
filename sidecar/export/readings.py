"""What engines say about themselves, gathered per replica from the samples of a snapshot.

A figure an engine does not expose is None, and an engine that says nothing has no reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sidecar import engines as names
from sidecar.signals import CollectorState, CollectorStatus, Metric, Sample
from sidecar.state import Snapshot

ENGINE_COLLECTOR = "engine"  # collectors that read engines have names that start so


@dataclass(frozen=True, slots=True)
class EngineReading:
    """One replica's own words. Rates are per second between its last two good scrapes;
    ``seconds_per_token`` is the mean they imply, None when no token was counted in between.
    """

    replica: str
    engine: str
    running: float | None
    waiting: float | None
    generated_tokens_total: float | None
    generated_tokens_per_second: float | None
    decode_seconds_total: float | None
    decode_seconds_per_second: float | None
    prompt_tokens_computed_total: float | None = None
    prompt_tokens_cached_total: float | None = None

    @property
    def prefix_cache_hit_ratio(self) -> float | None:
        """Share of prompt tokens since the engine's start that the KV cache already held."""
        computed, cached = self.prompt_tokens_computed_total, self.prompt_tokens_cached_total
        if computed is None or cached is None:
            return None
        return ratio(cached, computed + cached)

    @property
    def seconds_per_token(self) -> float | None:
        """Mean decode time of a token, from two counters."""
        return ratio(self.decode_seconds_per_second, self.generated_tokens_per_second)


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """A quotient, None when a part is missing or nothing was counted (0/0 is not 0)."""
    if numerator is None or not denominator:
        return None
    return numerator / denominator


def total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known, None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def read(snapshot: Snapshot) -> tuple[EngineReading, ...]:
    """One reading a replica, in the order in which they first appear."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    rates: dict[tuple[str, str], dict[str, float]] = {}
    known = {metric.name for metric in names.CANONICAL}
    for sample in snapshot.samples:
        if isinstance(sample, Sample) and sample.metric in known:
            labels = dict(sample.labels)
            who = (labels.get("replica", ""), labels.get("engine", ""))
            said = values.setdefault(who, {})
            _add(said, sample.metric, sample.value)
            if sample.metric == names.PROMPT_TOKENS.name:
                _add(said, labels.get("source", ""), sample.value)
            rate = snapshot.rates.get((sample.metric, sample.labels))
            if rate is not None:
                _add(rates.setdefault(who, {}), sample.metric, rate)
    return tuple(_reading(who, said, rates.get(who, {})) for who, said in values.items())


def _add(sums: dict[str, float], name: str, value: float) -> None:
    sums[name] = sums.get(name, 0.0) + value


def _reading(
    who: tuple[str, str], said: dict[str, float], rates: dict[str, float]
) -> EngineReading:
    def value(metric: Metric) -> float | None:
        return said.get(metric.name)

    return EngineReading(
        replica=who[0],
        engine=who[1],
        running=value(names.RUNNING),
        waiting=value(names.WAITING),
        generated_tokens_total=value(names.GENERATED_TOKENS),
        generated_tokens_per_second=rates.get(names.GENERATED_TOKENS.name),
        decode_seconds_total=value(names.DECODE_SECONDS),
        decode_seconds_per_second=rates.get(names.DECODE_SECONDS.name),
        prompt_tokens_computed_total=said.get("computed"),
        prompt_tokens_cached_total=said.get("cached"),
    )


def collectors(snapshot: Snapshot) -> tuple[CollectorStatus, ...]:
    """The collectors that read engines."""
    return tuple(s for s in snapshot.collectors if s.name.startswith(ENGINE_COLLECTOR))


def blind(snapshot: Snapshot) -> tuple[CollectorStatus, ...]:
    """Those of them that are blind now."""
    return tuple(s for s in collectors(snapshot) if s.state is CollectorState.BLIND)
