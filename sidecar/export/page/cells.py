"""One value of the comparison, or a dash and why: nothing that was not measured becomes a 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.engines import canonical
from sidecar.readings import ends, quantiles
from sidecar.readings import engines as readings
from sidecar.signals import CollectorState, Leg
from sidecar.snapshot import WIRE_COLLECTOR, Snapshot
from sidecar.traffic import WINDOW_SECONDS
from sidecar.units import NOTHING, duration, interval, number, percent
from sidecar.windows import LegWindow

NOT_EXPOSED = "not exposed"
_BLIND = {
    CollectorState.BLIND: "tap blind",
    CollectorState.STARTING: "tap starting",
}
_QUIET = "none in the last 60 s"
_FIRST_OPEN = "first request still open"


@dataclass(frozen=True, slots=True)
class Cell:
    """One value and what belongs under it; ``alarming`` values are set apart."""

    value: str
    detail: str = ""
    alarming: bool = False

    @property
    def missing(self) -> bool:
        """Whether nothing was measured; ``detail`` then says why."""
        return self.value == NOTHING


def none(why: str) -> Cell:
    """Nothing was measured, and why in a few words."""
    return Cell(NOTHING, why)


class Wire:
    """The cells of one leg."""

    def __init__(self, snapshot: Snapshot, leg: Leg) -> None:
        self.window = next((w for w in snapshot.windows if w.leg is leg), None)
        self.silence = wire_silence(snapshot, leg)

    def cell(self, make: Callable[[LegWindow], Cell | None], why: str) -> Cell:
        """What the last minute says, or why it says nothing."""
        if self.window is None or self.silence:
            return none(self.silence or "no window")
        return make(self.window) or none(why)

    def count(self, make: Callable[[LegWindow], Cell | None]) -> Cell:
        """A number of requests: 0 is a measurement on a leg that is known to be seen."""
        if self.window is None or self.silence not in ("", _QUIET, _FIRST_OPEN):
            return none(self.silence or "no window")
        return make(self.window) or none("not reported yet")


def wire_silence(snapshot: Snapshot, leg: Leg) -> str:
    """Why the wire says nothing about a leg now, in a few words; empty when it does."""
    tap = snapshot.collector(WIRE_COLLECTOR)
    if tap is None:
        return "no wire tap"
    if tap.state in _BLIND:
        return _BLIND[tap.state]
    now = next((w for w in snapshot.windows if w.leg is leg), None)
    ever = next((w for w in snapshot.totals if w.leg is leg), None)
    if now is not None and now.requests:
        return ""
    if ever is not None and ever.requests:
        return _QUIET
    return _FIRST_OPEN if now is not None and now.open_requests else "no request yet"


def engine_silence(snapshot: Snapshot) -> str:
    """Why no engine says anything now; empty when one does."""
    if readings.read(snapshot):
        return ""
    known = readings.collectors(snapshot)
    if not known:
        return "no engine configured"
    if readings.blind(snapshot):
        return "engine blind"
    return "engine not read yet"


class Engines:
    """The cells of the engines' own word, summed over replicas."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.said = readings.read(snapshot)
        self.silence = engine_silence(snapshot)
        self._bounds = quantiles.read(snapshot)
        self._ends = ends.read(snapshot)
        self._at = snapshot.at
        self._rates = snapshot.history.get(canonical.GENERATED_TOKENS.name, ())
        blind = len(readings.blind(snapshot))
        known = len(readings.collectors(snapshot))
        self._lost = f"{blind} of {known} blind" if blind else ""

    def cell(self, value: float | None, text: str, detail: str, why: str = NOT_EXPOSED) -> Cell:
        """A cell, or why there is none. Says so when some replicas are missing in a sum."""
        if self.silence or value is None:
            return none(self.silence or why)
        return Cell(text, " · ".join(part for part in (detail, self._lost) if part))

    def latency(self, signal: str) -> Cell:
        """Between which bounds the median and the 99th percentile of a histogram lie."""
        median = self._span(signal, "0.5")
        if self.silence or median is None:
            return none(self.silence or NOT_EXPOSED)
        tail = self._span(signal, "0.99")
        return Cell(median, f"p99 {tail}" if tail else "")

    def _span(self, signal: str, q: str) -> str | None:
        """Of several replicas the slowest, from the lowest bound to the highest."""
        found = [b for b in self._bounds if b.signal == signal and b.quantile == q]
        if not found:
            return None
        slowest = max(found, key=lambda b: (b.upper is None, b.upper or 0.0))
        return interval(slowest.lower, slowest.upper)

    def gap(self) -> Cell:
        """Time between tokens: by its histogram, else decode time over tokens as counted."""
        told = self.latency("inter_token_latency_seconds")
        return self._mean_gap() if told.missing else told

    def _mean_gap(self) -> Cell:
        decode = readings.total(r.decode_seconds_per_second for r in self.said)
        tokens = readings.total(r.generated_tokens_per_second for r in self.said)
        mean = readings.ratio(decode, tokens)
        counted = readings.total(r.decode_seconds_total for r in self.said)
        why = "needs two scrapes" if decode is None else "no token since its last scrape"
        why = NOT_EXPOSED if counted is None else why
        if self.silence or mean is None:
            return none(self.silence or why)
        return Cell(duration(mean), "mean, from its counters")

    def rate(self) -> Cell:
        """Tokens per second over the last minute, as the wire's: some engines count a request's
        tokens when it ends, and two scrapes then differ by bursts.
        """
        since = self._at - WINDOW_SECONDS
        rates = [rate for at, rate in self._rates if at > since and rate is not None]
        latest = readings.total(r.generated_tokens_per_second for r in self.said)
        tokens = sum(rates) / len(rates) if rates else latest
        counted = readings.total(r.generated_tokens_total for r in self.said)
        why = NOT_EXPOSED if counted is None else "needs two scrapes"
        clock = "tokens, at finish" if any(r.at_finish for r in self.said) else "tokens"
        return self.cell(tokens, f"{number(tokens)} /s", clock, why)

    def finished(self) -> Cell:
        """Requests that ended in the last minute, and what the engine says of how."""
        total = sum(self._ends.values()) if self._ends else None
        odd = [f"{number(n)} {why}" for why, n in self._ends.items() if n and why in ends.ODD]
        return self.cell(total, f"{number(total)}", " · ".join(odd) or "by its counters")

    def queue(self) -> Cell:
        """Running and waiting requests, and how full the fullest KV cache is."""
        running = readings.total(r.running for r in self.said)
        waiting = readings.total(r.waiting for r in self.said)
        details = ["waiting not exposed" if waiting is None else f"{number(waiting)} waiting"]
        usage = [u for r in self.said if (u := r.kv_cache_usage_ratio) is not None]
        if usage:
            details.append(f"KV cache {percent(max(usage))} full")
        preempted = readings.total(r.preemptions_per_second for r in self.said)
        if preempted:
            details.append(f"{number(preempted * 60)} preemptions/min")
        return self.cell(running, f"{number(running)} running", " · ".join(details))
