"""Made snapshots: a healthy pair of engines behind a gateway, and what can go wrong with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from sidecar import traffic
from sidecar.buckets import TTFT_BOUNDS
from sidecar.engines import canonical
from sidecar.observe.rules import complete
from sidecar.signals import (
    Absence,
    CollectorState,
    CollectorStatus,
    Exemplar,
    Histogram,
    Leg,
    Sample,
)
from sidecar.snapshot import Snapshot
from sidecar.windows import LegWindow

AT = 1_790_000_000.0
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HOSTILE = "\"><script>alert('x')</script>\n\\ {{ 7 * 7 }} \x00\x1b[31m\u2028\ud800"
METRICS = (*traffic.METRICS, *canonical.CANONICAL)


def window(leg: Leg, **changes: object) -> LegWindow:
    """A minute of an even stream: 10 ms between tokens, a first token in 14 ms."""
    down = leg is Leg.DOWNSTREAM
    fields: dict[str, object] = {
        "seconds": 60.0,
        "requests": 479,
        "failed": 0,
        "ttft_p50": 0.0147 if down else 0.0138,
        "ttft_p99": 0.0312 if down else 0.0289,
        "itl_p50": 0.0102,
        "itl_p99": 0.0139,
        "largest_gap": 0.031,
        "token_events_per_second": 811.7,
        "open_requests": 7,
        "oldest_open_seconds": 1.23,
    }
    return LegWindow(leg=leg, **{**fields, **changes})  # type: ignore[arg-type]


def quiet(leg: Leg) -> LegWindow:
    """A leg on which nothing ended."""
    return LegWindow(leg, 60.0, 0, 0, None, None, None, None, None, None, 0, None)


LUMPED = window(
    Leg.DOWNSTREAM,
    ttft_p50=0.206,
    ttft_p99=0.231,
    itl_p50=0.00021,
    itl_p99=0.207,
    largest_gap=0.215,
)


def status(name: str, state: CollectorState, **changes: object) -> CollectorStatus:
    """A collector that has worked for a while."""
    fields: dict[str, object] = {
        "age_seconds": 0.4,
        "duration_seconds": 0.0031,
        "collections": 1409,
    }
    return CollectorStatus(name, state, **{**fields, **changes})  # type: ignore[arg-type]


def blind(name: str, absence: Absence, reason: str) -> CollectorStatus:
    """A collector that has lost its source."""
    failures = ((absence, 17),)
    return status(
        name,
        CollectorState.BLIND,
        absence=absence,
        reason=reason,
        age_seconds=83.0,
        failures=failures,
    )


def engine_samples(replica: str, running: float = 4.0, waiting: float = 0.0) -> list[Sample]:
    """What llama.cpp says."""
    labels = (("engine", "llamacpp"), ("replica", replica))
    return [
        Sample(canonical.RUNNING.name, running, labels),
        Sample(canonical.WAITING.name, waiting, labels),
        Sample(canonical.GENERATED_TOKENS.name, 194_811.0, labels),
        Sample(canonical.DECODE_SECONDS.name, 1_930.5, labels),
    ]


def histogram(**changes: object) -> Histogram:
    """TTFTs of one server, with an exemplar in the third bucket."""
    counts = tuple(min(3 * i, 40) for i in range(len(TTFT_BOUNDS)))
    exemplars = tuple(
        Exemplar(TRACE, 0.0087, AT - 3) if i == 2 else None for i in range(len(TTFT_BOUNDS))
    )
    fields: dict[str, object] = {
        "metric": traffic.TTFT.name,
        "bounds": TTFT_BOUNDS,
        "counts": counts,
        "sum": 3.3,
        "labels": (("leg", "downstream"), ("server", "10.0.0.2:8080")),
        "exemplars": exemplars,
    }
    return Histogram(**{**fields, **changes})  # type: ignore[arg-type]


def curve(
    level: float, swing: float, seconds: int = 300, at: float = AT, lost: range = range(0)
) -> tuple[tuple[float, float | None], ...]:
    """A wavy line, oldest first, with nothing measured in ``lost`` seconds before the end."""

    def value(i: int) -> float | None:
        if seconds - i in lost:
            return None
        return level * (1 + swing * math.sin(i / 11) * math.sin(i / 3.7))

    return tuple((at - seconds + 1 + i, value(i)) for i in range(seconds))


def history(
    lumped: bool = False, at: float = AT, lost: range = range(0), seconds: int = 300
) -> dict[str, tuple[tuple[float, float | None], ...]]:
    """Five minutes of every plotted series."""

    def line(level: float, swing: float) -> tuple[tuple[float, float | None], ...]:
        return curve(level, swing, seconds, at, lost)

    down = (0.206, 0.231, 0.00021, 0.207) if lumped else (0.0147, 0.031, 0.0102, 0.0139)
    lines = {"upstream.ttft_p50": line(0.0138, 0.1), "upstream.ttft_p99": line(0.029, 0.3)}
    lines |= {"upstream.itl_p50": line(0.0102, 0.04), "upstream.itl_p99": line(0.0137, 0.15)}
    for name, level in zip(("ttft_p50", "ttft_p99", "itl_p50", "itl_p99"), down, strict=True):
        lines[f"downstream.{name}"] = line(level, 0.12)
    lines["downstream.token_events_per_second"] = line(812, 0.08)
    lines["upstream.token_events_per_second"] = line(812, 0.08)
    lines[canonical.GENERATED_TOKENS.name] = line(818, 0.2)
    lines[canonical.RUNNING.name] = line(7, 0.3)
    lines[canonical.WAITING.name] = line(1.2, 0.9)
    return lines


def snapshot(**changes: object) -> Snapshot:
    """Everything works: two engines, both legs seen."""
    samples = [*engine_samples("a"), *engine_samples("b", 3.0, 1.0), histogram()]
    rates: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for sample in samples:
        if isinstance(sample, Sample) and sample.metric.endswith("_total"):
            tokens = sample.metric == canonical.GENERATED_TOKENS.name
            rates[sample.metric, sample.labels] = 409.0 if tokens else 4.1
    both = tuple(window(leg) for leg in Leg)
    made = Snapshot(
        at=AT,
        started=AT - 4_321,
        sequence=4_300,
        collectors=(
            status("probes", CollectorState.FIRING),
            status("engine:a", CollectorState.FIRING, age_seconds=2.1),
            status("engine:b", CollectorState.FIRING, age_seconds=3.4),
        ),
        samples=tuple(samples),
        rates=MappingProxyType(rates),
        windows=both,
        totals=tuple(replace(w, seconds=4_321.0, requests=31_013) for w in both),
        history=MappingProxyType(history()),
    )
    return complete(replace(made, **changes))  # type: ignore[arg-type]


def lumping() -> Snapshot:
    """HAProxy's default: clients get in lumps what the engine sends evenly."""
    return snapshot(
        windows=(LUMPED, window(Leg.UPSTREAM)), history=MappingProxyType(history(lumped=True))
    )


def no_traffic() -> Snapshot:
    """Just started, everything attached, nobody came yet."""
    nothing = tuple(quiet(leg) for leg in Leg)
    return snapshot(
        started=AT - 4,
        sequence=4,
        collectors=(
            status("probes", CollectorState.ATTACHED),
            status("engine:a", CollectorState.FIRING),
        ),
        samples=tuple(engine_samples("a", running=0.0)),
        rates=MappingProxyType({}),
        windows=nothing,
        totals=nothing,
        history=MappingProxyType({}),
    )


def tap_blind() -> Snapshot:
    """The wire tap went away a minute ago; its windows still hold older requests."""
    gone = blind(
        "probes",
        Absence.NO_PERMISSION,
        "/run/model-probe/probed.sock: permission denied; probed needs CAP_BPF and CAP_NET_RAW",
    )
    rest = snapshot().collectors[1:]
    return snapshot(collectors=(gone, *rest), history=MappingProxyType(history(lost=range(1, 84))))


def engines_down() -> Snapshot:
    """Both engines refuse, the gateway answers 503."""
    reason = "http://127.0.0.1:8081/metrics: connection refused; is the engine running there?"
    dead = tuple(blind(f"engine:{r}", Absence.REFUSED, reason) for r in "ab")
    failing = window(
        Leg.DOWNSTREAM,
        failed=479,
        **dict.fromkeys(("ttft_p50", "ttft_p99", "itl_p50", "itl_p99", "largest_gap")),
        token_events_per_second=0.0,
        open_requests=0,
        oldest_open_seconds=None,
    )
    return snapshot(
        collectors=(status("probes", CollectorState.FIRING), *dead),
        samples=(),
        rates=MappingProxyType({}),
        windows=(failing, quiet(Leg.UPSTREAM)),
        history=MappingProxyType(history(lost=range(1, 61))),
    )


def gateway_down() -> Snapshot:
    """Nobody gets through: no request on either leg in the last minute, engines idle."""
    return snapshot(
        windows=tuple(quiet(leg) for leg in Leg),
        samples=tuple(engine_samples("a", running=0.0)),
        rates=MappingProxyType({}),
    )


def hostile() -> Snapshot:
    """Every string that comes from outside is an attack, and a collector is a stand-in."""
    labels = (("engine", HOSTILE), ("replica", HOSTILE))
    return snapshot(
        collectors=(
            replace(blind(HOSTILE, Absence.ERROR, HOSTILE * 100), stand_in=True),
            status("probes", CollectorState.FIRING),
        ),
        samples=(Sample(canonical.RUNNING.name, 1.0, labels), histogram()),
    )


SCENES: dict[str, Callable[[], Snapshot]] = {
    "healthy": snapshot,
    "lumping": lumping,
    "no_traffic": no_traffic,
    "tap_blind": tap_blind,
    "engines_down": engines_down,
    "gateway_down": gateway_down,
    "hostile": hostile,
}


class Source:
    """A snapshot source for tests; ``now`` is its clock."""

    def __init__(self, made: Snapshot | None = None) -> None:
        self.made = made or snapshot()
        self.now = self.made.at + 0.4
        self.answer = (True, "")

    def snapshot(self) -> Snapshot:
        return self.made

    def ready(self) -> tuple[bool, str]:
        return self.answer

    def clock(self) -> float:
        return self.now
