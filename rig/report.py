"""What a demo found, as the summary file and as lines, and whether it is good enough."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rig.truth import Summary

Document = dict[str, Any]  # the state endpoint's JSON, and ours
WIRE = "probes"
ENGINE = "engine:"
GPU = "nvml"


@dataclass(frozen=True, slots=True)
class Figures:
    """The sidecar's last word and the client's own; either may be missing."""

    state: Document | None
    truth: Summary | None
    gateway: str
    engine: str
    gpu: bool = False  # whether the engines worked on GPUs that had to be seen

    def downstream(self) -> Document:
        """The client's leg since the start; empty when the sidecar was silent."""
        found: Document = self.state["totals"]["downstream"] if self.state else {}
        return found

    def collectors(self) -> dict[str, str]:
        """Each collector's state; a blind one with its absence."""
        return {
            one["name"]: f"blind: {one['absence']}" if one["absence"] else one["state"]
            for one in (self.state or {}).get("collectors", [])
        }

    def source(self, prefix: str) -> str:
        """`live` when every collector of that kind sees its source, else the first trouble."""
        states = [s for name, s in self.collectors().items() if name.startswith(prefix)]
        bad = [state for state in states if state not in ("firing", "attached")]
        return (bad or ["live"])[0] if states else "absent"

    def tokens_per_second(self) -> float | None:
        """Tokens that the engines say they generated, over the time the client was sending.

        Their own counters, since an event on the wire may carry several tokens.
        """
        totals = [one["generated_tokens_total"] for one in (self.state or {}).get("engines", [])]
        if self.truth is None or not totals or None in totals:
            return None
        return float(sum(totals) / self.truth.seconds)

    def kv_cache_hit_ratio(self) -> float | None:
        """Share of prompt tokens that the engines' KV caches already held, all together."""
        engines = (self.state or {}).get("engines", [])
        cached = [one["prompt_tokens_cached_total"] for one in engines]
        computed = [one["prompt_tokens_computed_total"] for one in engines]
        if not engines or None in cached or None in computed:
            return None
        total = sum(cached) + sum(computed)
        return float(sum(cached) / total) if total else None

    def summary(self) -> Document:
        """The file that `--json` writes; null where nothing was measured."""
        leg = self.downstream()
        none = {"p50": None, "p99": None}
        ttft, itl = leg.get("ttft_seconds", none), leg.get("itl_seconds", none)
        return {
            "requests": leg.get("requests", 0),
            "failed": leg.get("failed", 0),
            "ttft_seconds": {key: ttft[key] for key in none},
            "itl_seconds": {key: itl[key] for key in none},
            "tokens_per_second": self.tokens_per_second(),
            "kv_cache_hit_ratio": self.kv_cache_hit_ratio(),
            "gpus": [
                {key: one[key] for key in ("uuid", "memory_used_bytes", "memory_total_bytes")}
                for one in (self.state or {}).get("gpus", [])
            ],
            "engine": self.engine,
            "gateway": self.gateway,
            "sources": {"wire": self.source(WIRE), "engine": self.source(ENGINE)},
            "collectors": self.collectors(),
            "client": None if self.truth is None else asdict(self.truth),
            "observations": [o["text"] for o in (self.state or {}).get("observations", [])],
        }


def _unread(figures: Figures) -> list[str]:
    """Sources that no collector reads at all, which no collector's state can tell; sick cards."""
    wanted = {"wire": WIRE, "engines": ENGINE, **({"GPUs": GPU} if figures.gpu else {})}
    found = [
        f"no collector reads the {what}"
        for what, prefix in wanted.items()
        if figures.source(prefix) == "absent"
    ]
    cards = (figures.state or {}).get("gpus", [])
    if figures.gpu and not cards:
        found.append("no GPU was seen")
    found += [f"GPU {one['gpu']} is {one['state']}" for one in cards if one["state"] != "ok"]
    return found


def trouble(figures: Figures) -> list[str]:
    """Everything that was not well at the end."""
    if figures.state is None:
        return ["the sidecar did not answer at the end"]
    found = [
        f"collector {name} is {state}"
        for name, state in figures.collectors().items()
        if state not in ("firing", "attached")
    ]
    found += _unread(figures)
    leg, truth = figures.downstream(), figures.truth
    if not leg["requests"]:
        found.append("the wire saw no request")
    if leg["failed"]:
        found.append(f"{leg['failed']} requests failed on the wire")
    if truth is None:
        found.append("the load left no summary")
    else:
        if truth.failed:
            found.append(f"{truth.failed} requests failed for the client: {truth.failures}")
        if truth.requests + truth.unfinished != leg["requests"]:
            found.append(
                f"the client made {truth.requests + truth.unfinished} requests, "
                f"the wire saw {leg['requests']}"
            )
    return found


def report(figures: Figures) -> Iterator[str]:
    """The end of a run, for people: the wire beside the client's own truth."""
    leg, truth = figures.downstream(), figures.truth
    yield f"requests   {leg.get('requests', 0)} on the wire, {leg.get('failed', 0)} failed"
    for name, key in (("TTFT", "ttft_seconds"), ("ITL", "itl_seconds")):
        wire = leg.get(key, {})
        client = getattr(truth, key) if truth else None
        for quantile in ("p50", "p99"):
            said = milliseconds(getattr(client, quantile)) if client else "–"
            yield f"{name:<5}{quantile:<6}{milliseconds(wire.get(quantile))} (client: {said})"
    for name, state in figures.collectors().items():
        yield f"collector  {name}: {state}"
    for observation in (figures.state or {}).get("observations", []):
        if observation["kind"] != "at_finish":  # what llama.cpp always does is no news
            yield f"observed   {observation['text']}"


def milliseconds(seconds: float | None) -> str:
    """For people; a dash where nothing was measured."""
    if seconds is None:
        return "–"
    return f"{seconds * 1000:.1f} ms" if seconds >= 0.0001 else "< 0.1 ms"
