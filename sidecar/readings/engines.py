"""What engines say about themselves, gathered per replica from the samples of a snapshot.

A figure an engine does not expose is None, and an engine that says nothing has no reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sidecar.engines import canonical as names
from sidecar.engines.table import Clock
from sidecar.engines.telemetry import CLOCK
from sidecar.signals import CollectorState, CollectorStatus, Leg, Metric, Sample
from sidecar.snapshot import Snapshot

_READ = tuple(m.name for m in names.CANONICAL if m.name.startswith("modelprobe_engine_"))
ENGINE_COLLECTOR = "engine:"  # collectors that read engines have names that start so
GATEWAY_COLLECTOR = "gateway:"


@dataclass(frozen=True, slots=True)
class Part:
    """One data-parallel engine behind an endpoint, or all of it where there is one only."""

    rank: str
    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None


@dataclass(frozen=True, slots=True)
class EngineReading:
    """One replica's own words. Rates are per second between its last two good scrapes;
    ``seconds_per_token`` is the mean they imply, None when no token was counted in between.
    ``kv_cache_usage_ratio`` is that of its fullest part.
    """

    replica: str
    engine: str
    running: float | None = None
    waiting: float | None = None
    kv_cache_usage_ratio: float | None = None
    preemptions_total: float | None = None
    preemptions_per_second: float | None = None
    generated_tokens_total: float | None = None
    generated_tokens_per_second: float | None = None
    at_finish: bool = False  # its token counter moves when requests end
    decode_seconds_total: float | None = None
    decode_seconds_per_second: float | None = None
    prompt_tokens_computed_total: float | None = None
    prompt_tokens_cached_total: float | None = None
    minute_hit_ratio: float | None = None
    parts: tuple[Part, ...] = ()

    @property
    def prefix_cache_hit_ratio(self) -> float | None:
        """Share of the last minute's look-ups that the prefix cache held; for an engine that
        counts tokens only, the share of prompt tokens since its start that came from there.
        """
        if self.minute_hit_ratio is not None:
            return self.minute_hit_ratio
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


@dataclass(slots=True)
class _Said:
    """What one replica said: sums of its series, by metric, and the worst of ratios."""

    values: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    prompt: dict[str, float] = field(default_factory=dict)
    parts: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, sample: Sample, labels: dict[str, str], rate: float | None) -> None:
        name = sample.metric
        worst = name.endswith("_ratio")
        part = self.parts.setdefault(labels.get("dp_rank", ""), {})
        for known in (self.values, part):
            before = known.get(name)
            if before is None:
                known[name] = sample.value
            elif name == names.PREFIX_HIT_RATIO.name:
                known[name] = min(before, sample.value)  # the part that saves least
            else:
                known[name] = max(before, sample.value) if worst else before + sample.value
        if name == names.PREFIX_HIT_RATIO.name and labels.get("definition") == names.LAST_BATCH:
            return  # one batch is no minute
        if name == names.PROMPT_TOKENS.name:
            source = labels.get("source", "")
            self.prompt[source] = self.prompt.get(source, 0.0) + sample.value
        if rate is not None:
            self.rates[name] = self.rates.get(name, 0.0) + rate


def read(snapshot: Snapshot) -> tuple[EngineReading, ...]:
    """One reading a replica, in the order in which they first appear."""
    said: dict[tuple[str, str], _Said] = {}
    bursts: set[str] = set()
    for sample in snapshot.scalars(*_READ):
        labels = dict(sample.labels)
        who = (labels.get("replica", ""), labels.get("engine", ""))
        rate = snapshot.rates.get((sample.metric, sample.labels))
        said.setdefault(who, _Said()).add(sample, labels, rate)
    for sample in snapshot.scalars(CLOCK.name):
        labels = dict(sample.labels)
        if _bursts(labels):
            bursts.add(labels.get("replica", ""))
    return tuple(_reading(who, what, who[0] in bursts) for who, what in said.items())


def _bursts(labels: dict[str, str]) -> bool:
    signal = names.GENERATED_TOKENS.name.removeprefix("modelprobe_engine_")
    return labels.get("signal") == signal and labels.get("clock") == Clock.AT_FINISH


def _reading(who: tuple[str, str], said: _Said, at_finish: bool) -> EngineReading:
    def value(metric: Metric) -> float | None:
        return said.values.get(metric.name)

    def rate(metric: Metric) -> float | None:
        return said.rates.get(metric.name)

    return EngineReading(
        replica=who[0],
        engine=who[1],
        running=value(names.RUNNING),
        waiting=value(names.WAITING),
        kv_cache_usage_ratio=value(names.KV_USAGE),
        preemptions_total=value(names.PREEMPTIONS),
        preemptions_per_second=rate(names.PREEMPTIONS),
        generated_tokens_total=value(names.GENERATED_TOKENS),
        generated_tokens_per_second=rate(names.GENERATED_TOKENS),
        at_finish=at_finish,
        decode_seconds_total=value(names.DECODE_SECONDS),
        decode_seconds_per_second=rate(names.DECODE_SECONDS),
        prompt_tokens_computed_total=said.prompt.get("computed"),
        prompt_tokens_cached_total=said.prompt.get("cached"),
        minute_hit_ratio=value(names.PREFIX_HIT_RATIO),
        parts=tuple(_part(rank, values) for rank, values in sorted(said.parts.items()) if values),
    )


def _part(rank: str, values: dict[str, float]) -> Part:
    return Part(
        rank,
        values.get(names.RUNNING.name),
        values.get(names.WAITING.name),
        values.get(names.KV_USAGE.name),
    )


def collectors(snapshot: Snapshot, prefix: str = ENGINE_COLLECTOR) -> tuple[CollectorStatus, ...]:
    """The collectors that read engines, or gateways."""
    return tuple(s for s in snapshot.collectors if s.name.startswith(prefix))


def blind(snapshot: Snapshot, prefix: str = ENGINE_COLLECTOR) -> tuple[CollectorStatus, ...]:
    """Those of them that are blind now."""
    return tuple(s for s in collectors(snapshot, prefix) if s.state is CollectorState.BLIND)


def leg(snapshot: Snapshot) -> Leg:
    """The leg on which engines are seen: behind the gateway, or the only one that is watched."""
    return Leg.UPSTREAM if Leg.UPSTREAM in snapshot.legs else Leg.DOWNSTREAM
