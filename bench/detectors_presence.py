"""What the rules on presence make of scrapes that fail now and then, of pauses, reloads, restarts,
and of an engine, a gateway or their metrics that go away for good.

A part of ``./run bench detectors``. One engine on another machine, scraped every 5 s; a gateway and
an engine whose ports are here; a request a second that is answered while its port is open.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.detectors_alarms import Alarms
from bench.detectors_scrapes import Scrapes, Span, Target
from sidecar.collectors import listeners
from sidecar.detect.presence import (
    ENGINE_GONE,
    GATEWAY_GONE,
    METRICS_UNAVAILABLE,
    SOURCE_BLIND,
    Presence,
)
from sidecar.observe.engines import unavailable
from sidecar.signals import Absence, CollectorState, CollectorStatus, Leg, Sample
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm
from sidecar.windows import LegWindow

_HOUR, _HOURS = 3_600, 24
_BY_METRICS, _BY_PORT = f"{ENGINE_GONE.name}, by its metrics", f"{ENGINE_GONE.name}, by its port"
_SCRAPED = (_BY_METRICS, METRICS_UNAVAILABLE.name, SOURCE_BLIND.name)
_CLOSED = (GATEWAY_GONE.name, _BY_PORT, *_SCRAPED)
_MIXED = (Absence.TIMEOUT, Absence.HTTP_STATUS, Absence.TRUNCATED, Absence.CLOSED)
_LISTENERS = CollectorStatus("listeners", CollectorState.FIRING)
_PORTS = ((8080, Leg.DOWNSTREAM), (8081, Leg.UPSTREAM))
Made = Callable[[random.Random, float], Target]  # of a generator and where the hour begins


def _samples(up: bool) -> tuple[Sample, ...]:
    labels = ((("port", str(port)), ("leg", leg.value)) for port, leg in _PORTS)
    return tuple(Sample(listeners.UP.name, float(up), one) for one in labels)


_UP, _DOWN = _samples(True), _samples(False)


def _windows(answered: int) -> tuple[LegWindow, ...]:
    none = (None,) * 6
    return tuple(LegWindow(leg, 60.0, answered, 0, *none, 0, None) for leg in Leg)


class Scene:
    """A target for a day, judged each second; those that change nothing are passed over."""

    def __init__(self, target: Target, rng: random.Random) -> None:
        self._target, self._alarms, self._detector = target, Alarms(), Presence()
        self._scrapes = Scrapes("engine:r0", target.answer, rng, begins=rng.random())
        self._settled = False
        self._open = 60  # of the last 60 seconds those in which requests were answered

    def second(self, now: float) -> tuple[Alarm, ...]:
        """The alarms that begin to fire."""
        self._scrapes.advance(now)
        up = self._target.listens(now)
        self._open = min(60, self._open + 1) if up else max(0, self._open - 1)
        seen = self._scrapes.good is not None and self._scrapes.blind is None
        well = up and seen and not self._alarms.stand
        if well and self._settled:
            return ()
        self._settled = well
        collectors = (self._scrapes.status(now), _LISTENERS)
        samples, windows = _UP if up else _DOWN, _windows(self._open)
        snapshot = Snapshot(now, 0.0, 0, collectors, samples, windows=windows, legs=tuple(Leg))
        snapshot = snapshot.observed(tuple(unavailable(snapshot)))
        return self._alarms.take(self._detector.judge(snapshot, now), now)


def _rule(alarm: Alarm) -> str:
    if alarm.rule != ENGINE_GONE.name:
        return alarm.rule
    return _BY_PORT if dict(alarm.labels).get("port") else _BY_METRICS


@dataclass(frozen=True, slots=True)
class Troubled:
    """A service that is well or comes back by itself: counted are hours in which an alarm began."""

    name: str
    made: Made
    rules: tuple[str, ...] = _SCRAPED
    unit: str = "hours"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """A day: scenario, rule, whether it alarmed, by hour; there is no delay."""
        rng = random.Random(seed)
        for _ in range(_HOURS):
            scene, raised = Scene(self.made(rng, 0.0), rng), set[str]()
            for second in range(_HOUR):
                raised.update(_rule(alarm) for alarm in scene.second(float(second)))
            for rule in self.rules:
                yield self.name, rule, rule in raised, None


@dataclass(frozen=True, slots=True)
class Gone:
    """Something goes away for good at a random moment; counted are those that were noticed within
    ten minutes.
    """

    name: str
    made: Made
    rules: tuple[str, ...]
    unit: str = "faults"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Scenario, rule, whether it alarmed, after how many minutes."""
        rng = random.Random(seed)
        began = 120 + 5 * rng.random()
        scene, fired = Scene(self.made(rng, began), rng), dict[str, float]()
        for second in range(int(began) + 600):
            for alarm in scene.second(float(second)):
                fired.setdefault(_rule(alarm), second - began)
        for rule in self.rules:
            seconds = fired.get(rule)
            yield self.name, rule, seconds is not None, None if seconds is None else seconds / 60


def _flaky(share: float, kinds: tuple[Absence, ...]) -> Made:
    return lambda rng, _: Target(rng, share, kinds)


def _spans(rng: random.Random, hourly: float, shortest: float, longest: float) -> tuple[Span, ...]:
    """Poisson moments of an hour, each with a length in between."""
    found, at = list[Span](), rng.expovariate(hourly / _HOUR)
    while at < _HOUR:
        found.append((at, at + rng.uniform(shortest, longest)))
        at = found[-1][1] + rng.expovariate(hourly / _HOUR)
    return tuple(found)


def _once(rng: random.Random, shortest: float, longest: float) -> tuple[Span, ...]:
    at = rng.uniform(120, _HOUR - 300)
    return ((at, at + rng.uniform(shortest, longest)),)


_FOR_EVER = 1e9
SCENARIOS: tuple[Troubled | Gone, ...] = (
    Troubled("null, 1 % of scrapes fail, any way", _flaky(0.01, _MIXED)),
    Troubled("null, 5 % of scrapes fail, any way", _flaky(0.05, _MIXED)),
    Troubled("null, 1 % of scrapes cut off", _flaky(0.01, (Absence.CLOSED,))),
    Troubled("null, 5 % of scrapes cut off", _flaky(0.05, (Absence.CLOSED,))),
    Troubled(
        "null, 12 pauses of 2-8 s an hour", lambda rng, _: Target(rng, paused=_spans(rng, 12, 2, 8))
    ),
    Troubled(
        "null, a pause of 20-40 s an hour", lambda rng, _: Target(rng, paused=_once(rng, 20, 40))
    ),
    Troubled(
        "null, port closed for 0.2-2 s, 4 times an hour",
        lambda rng, _: Target(rng, closed=_spans(rng, 4, 0.2, 2)),
        _CLOSED,
    ),
    Troubled(
        "a restart of 30-60 s, undeclared",
        lambda rng, _: Target(rng, closed=_once(rng, 30, 60)),
        _CLOSED,
        "restarts",
    ),
    Gone(
        "gone: nobody listens",
        lambda rng, began: Target(rng, closed=((began, _FOR_EVER),)),
        _CLOSED[:3],
    ),
    Gone(
        "only the metrics hang",
        lambda rng, began: Target(rng, paused=((began, _FOR_EVER),)),
        _SCRAPED[1:],
    ),
)
