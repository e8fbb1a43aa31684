"""States of telemetry that take several scrapes to see: restarts, several processes, frozen gauges.

Counters of one process never go back. A scrape whose counters all stand at or above an earlier
one's may come from the same process; one that does not comes from another. Scrapes that go to and
fro between such lines come from several processes behind one endpoint.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from sidecar.engines import canonical
from sidecar.engines.increases import WINDOW_SECONDS, Key
from sidecar.engines.states import TelemetryState
from sidecar.engines.translation import Translation
from sidecar.signals import Observation, Sample

_LINES = 8  # processes told apart behind one endpoint
_SCRAPES = 12  # looked back at, a minute at the default interval
_SWITCHES = 4  # a process that restarts switches once; twice more if it overtakes its past
_STEPS = (canonical.GENERATED_TOKENS.name, canonical.DECODE_STEPS.name)
_GAUGES = (canonical.RUNNING.name, canonical.WAITING.name, canonical.KV_USAGE.name)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answers: ``started`` is the process's own start time if it tells, in Unix seconds."""

    engines: tuple[str, ...]
    models: frozenset[str]
    started: float | None

    def other(self, earlier: Identity) -> str:
        """What is another than it was, empty if nothing is."""
        if self.engines != earlier.engines:
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
    _lines: list[dict[Key, float]] = field(default_factory=list)
    _taken: deque[int] = field(default_factory=lambda: deque(maxlen=_SCRAPES))
    _next: int = 0
    _ids: list[int] = field(default_factory=list)
    _identity: Identity | None = None
    _changed: tuple[float, str] | None = None
    _reset: float | None = None
    _gauges: deque[tuple[float, tuple[float, ...], float]] = field(
        default_factory=lambda: deque(maxlen=_SCRAPES)
    )

    def follow(self, translation: Translation, at: float) -> None:
        """Takes in one scrape."""
        samples = [s for s in translation.samples if isinstance(s, Sample)]
        counters = {(s.metric, s.labels): s.value for s in samples if s.metric.endswith("_total")}
        if counters:
            self._assign(counters, at)
        identity = identify(translation)
        if self._identity is not None:
            other = identity.other(self._identity)
            if other:
                self._changed = (at, other)
        self._identity = identity
        self._note_gauges(samples, at)

    @property
    def several(self) -> bool:
        """Whether several processes answer in turn."""
        taken = list(self._taken)
        switches = sum(1 for a, b in pairwise(taken) if a != b)
        return switches >= _SWITCHES and len(set(taken)) < switches

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

    def _assign(self, counters: Mapping[Key, float], at: float) -> None:
        """Gives the scrape to the furthest line that it can continue, or to a new one."""
        fitting = [
            index
            for index, line in enumerate(self._lines)
            if all(counters.get(key, value) >= value for key, value in line.items())
        ]
        if fitting:
            chosen = max(fitting, key=lambda index: sum(self._lines[index].values()))
        else:
            if self._lines:
                self._reset = at
            self._lines.append({})
            self._ids.append(self._next)
            self._next += 1
            chosen = len(self._lines) - 1
        self._lines[chosen] = {**self._lines[chosen], **counters}
        self._taken.append(self._ids[chosen])
        self._forget_old_lines()

    def _forget_old_lines(self) -> None:
        recent = set(self._taken)
        kept = [i for i, line_id in enumerate(self._ids) if line_id in recent][-_LINES:]
        self._lines = [self._lines[i] for i in kept]
        self._ids = [self._ids[i] for i in kept]

    def _note_gauges(self, samples: list[Sample], at: float) -> None:
        gauges = tuple(s.value for s in samples if s.metric in _GAUGES)
        usage = [s.value for s in samples if s.metric == canonical.KV_USAGE.name]
        steps = sum(s.value for s in samples if s.metric in _STEPS)
        if not usage or not any(0 < value < 1 for value in usage):
            self._gauges.clear()  # a cache that is empty, full or not shown proves nothing
        else:
            self._gauges.append((at, gauges, steps))

    def _frozen(self) -> bool:
        points = list(self._gauges)
        if len(points) < _SCRAPES or points[-1][0] - points[0][0] < WINDOW_SECONDS * 0.9:
            return False
        moved = all(b[2] > a[2] for a, b in pairwise(points))
        return moved and len({gauges for _, gauges, _ in points}) == 1
