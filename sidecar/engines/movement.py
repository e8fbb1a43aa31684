"""States of telemetry that take several scrapes to see: restarts, several processes, frozen gauges,
another engine or model. Which process a scrape comes from: :mod:`sidecar.engines.processes`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sidecar.engines import canonical
from sidecar.engines.increases import WINDOW_SECONDS
from sidecar.engines.processes import Processes
from sidecar.engines.states import TelemetryState
from sidecar.engines.translation import Translation
from sidecar.signals import Observation, Sample

_POINTS = 12  # in a minute, of gauges that do not move
_APART_SECONDS = 0.9 * WINDOW_SECONDS / _POINTS
_STEPS = (canonical.GENERATED_TOKENS.name, canonical.DECODE_STEPS.name)
_GAUGES = (canonical.RUNNING.name, canonical.WAITING.name, canonical.KV_USAGE.name)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answers: ``started`` is the process's own start time if it tells, in Unix seconds."""

    engines: tuple[str, ...]
    models: frozenset[str]
    started: float | None

    def other(self, earlier: Identity) -> str:
        """What is another than it was, empty if nothing is. An engine may be met beside one that
        was there before (a backend with its first request); that is no other.
        """
        if not set(self.engines) & set(earlier.engines):
            return f"{' and '.join(earlier.engines)} became {' and '.join(self.engines)}"
        if self.models and earlier.models and not self.models & earlier.models:
            return "it serves another model"
        if self.started and earlier.started and abs(self.started - earlier.started) > 1:
            return "it is another process"
        return ""


def identify(translation: Translation) -> Identity:
    """Who a scrape says it is from."""
    models = {dict(sample.labels).get("model", "") for sample in translation.samples}
    started = next(
        (
            sample.value
            for sample in translation.samples
            if isinstance(sample, Sample) and sample.metric == canonical.START_TIME.name
        ),
        None,
    )
    return Identity(translation.engines, frozenset(models - {""}), started)


@dataclass(slots=True)
class Movement:
    """Follows one endpoint from scrape to scrape; ``at`` are monotonic seconds."""

    replica: str
    _processes: Processes = field(default_factory=Processes)
    _identity: Identity | None = None
    _changed: tuple[float, str] | None = None
    _reset: float | None = None
    # While they stand still and tokens do not: when, what they say, tokens and steps by then.
    _still: deque[tuple[float, tuple[float, ...], float]] = field(
        default_factory=lambda: deque(maxlen=2 * _POINTS)
    )

    def follow(self, translation: Translation, at: float) -> None:
        """Takes in one scrape."""
        if not translation.samples:
            return
        samples = [s for s in translation.samples if isinstance(s, Sample)]
        identity = identify(translation)
        counters = {(s.metric, s.labels): s.value for s in samples if s.metric.endswith("_total")}
        if counters and self._processes.follow(counters, identity.started):
            self._reset = at
        if self._identity is not None:
            other = identity.other(self._identity)
            if other:
                self._changed = (at, other)
            if not identity.models:  # not told before its first request
                identity = replace(identity, models=self._identity.models)
        self._identity = identity
        self._note_gauges(samples, at)

    def gap(self) -> None:
        """The endpoint was away for a while."""
        self._processes.gap()
        self._still.clear()

    @property
    def several(self) -> bool:
        """Whether several processes answer in turn."""
        return self._processes.several

    def observe(self, at: float) -> Iterator[Observation]:
        """The states that hold at this moment."""
        if self.several:
            text = (
                "its counters go to and fro: several processes answer in turn; give each its own "
                "endpoint, or use the client library's multiprocess mode"
            )
            yield Observation(TelemetryState.SEVERAL_REGISTRIES, self.replica, "", text)
            return
        if self._reset is not None and at - self._reset < WINDOW_SECONDS:
            text = "its counters went back in the last minute: it restarted"
            yield Observation(TelemetryState.RESET, self.replica, "", text)
        if self._changed is not None and at - self._changed[0] < WINDOW_SECONDS:
            text = f"{self._changed[1]} in the last minute"
            yield Observation(TelemetryState.IDENTITY_CHANGED, self.replica, "", text)
        if self._frozen():
            text = "its gauges have not moved for a minute while it went on generating"
            yield Observation(TelemetryState.FROZEN, self.replica, "kv_cache_usage_ratio", text)

    def _note_gauges(self, samples: list[Sample], at: float) -> None:
        gauges = tuple(s.value for s in samples if s.metric in _GAUGES)
        usage = [s.value for s in samples if s.metric == canonical.KV_USAGE.name]
        steps = sum(s.value for s in samples if s.metric in _STEPS)
        tells = any(0 < value < 1 for value in usage)  # not of an empty or a full cache
        if not tells or (self._still and self._still[-1][1] != gauges):
            self._still.clear()
        if not tells:
            return
        if self._still and at - self._still[-1][0] < _APART_SECONDS:
            return
        if self._still and steps <= self._still[-1][2]:
            self._still.clear()
        self._still.append((at, gauges, steps))

    def _frozen(self) -> bool:
        points = self._still
        return len(points) >= _POINTS and points[-1][0] - points[0][0] >= 0.9 * WINDOW_SECONDS
