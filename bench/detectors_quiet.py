"""What StreamsStuck and EngineStalled make of a leg that brings nothing for a while although all is
well: answers that come whole, long prefills, little traffic; and how soon they tell of a dead leg.

A part of ``./run bench detectors``. The sidecar's own following of requests and its detector judge
each second in which enough requests are open: two, or one where an engine counts its tokens.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench.detectors_alarms import Alarms
from bench.detectors_requests import LEG, Request, Traffic, batches, chats, prefills, together
from sidecar.detect.streams import STALLED, STUCK, Streams
from sidecar.engines import canonical
from sidecar.engines.telemetry import CLOCK
from sidecar.signals import Sample
from sidecar.snapshot import Snapshot
from sidecar.streams import Streams as Followed

_HOUR, _HOURS = 3_600, 4
_NAME = canonical.GENERATED_TOKENS.name
_RULES = (STUCK.name, STALLED.name)
_REPLICA = ("replica", "r0")
_CLOCK = Sample(
    CLOCK.name,
    1.0,
    (_REPLICA, ("signal", _NAME.removeprefix("modelprobe_engine_")), ("clock", "per_step")),
)


class Scene:
    """Traffic on one leg. ``counts``: there is an engine that says how many requests it runs and
    counts tokens as it makes them, read every 5 s. After ``dead`` nothing is brought, ends or
    counts any more.
    """

    def __init__(self, requests: Iterator[Request], counts: bool, dead: float = 1e9) -> None:
        self._coming, self._counts, self._dead = requests, counts, dead
        self._fewest = 1 if counts else 2
        self._next = next(requests)
        self._open: list[Request] = []
        self._followed, self._detector, self._alarms = Followed(), Streams(), Alarms()
        self._tokens = 0.0
        self._said: tuple[Sample, ...] = ()

    def second(self, now: float) -> tuple[str, ...]:
        """The rules that begin to fire."""
        while self._next.begun <= now:
            self._open.append(self._next)
            self._next = next(self._coming)
        brought = min(now, self._dead)
        for request in self._open:
            self._followed.report(request.timing(now, brought), now)
        if brought == now:
            self._tokens += sum(request.first <= now for request in self._open)
        self._open = [request for request in self._open if request.last > brought]
        if self._counts and now % 5 == 0:
            self._said = _samples(self._tokens, len(self._open))
        stall = self._followed.stall(LEG, now)
        if len(self._open) < self._fewest and not self._alarms.stand:
            return ()
        snapshot = Snapshot(now, 0.0, samples=self._said, stalls={LEG: stall})
        fired = self._alarms.take(self._detector.judge(snapshot, now), now)
        return tuple(alarm.rule for alarm in fired)


def _samples(tokens: float, running: int) -> tuple[Sample, ...]:
    labels = (("engine", "e"), _REPLICA)
    said = {_NAME: tokens, canonical.RUNNING.name: float(running)}
    return (*(Sample(name, value, labels) for name, value in said.items()), _CLOCK)


@dataclass(frozen=True, slots=True)
class Quiet:
    """A leg that is well: counted are hours in which an alarm began."""

    name: str
    traffic: Traffic
    counts: bool = False
    unit: str = "hours"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Some hours: scenario, rule, whether it alarmed, by hour; there is no delay."""
        scene = Scene(self.traffic(random.Random(seed)), self.counts)
        name = f"{self.name}, engine counts" if self.counts else self.name
        for hour in range(_HOURS):
            fired = set[str]()
            for second in range(hour * _HOUR, (hour + 1) * _HOUR):
                fired.update(scene.second(float(second)))
            for rule in _RULES if self.counts else _RULES[:1]:
                yield name, rule, rule in fired, None


@dataclass(frozen=True, slots=True)
class Dead:
    """A leg that brings nothing any more after ten minutes: counted are those seen within another
    twenty.
    """

    name: str
    traffic: Traffic
    counts: bool = False
    unit: str = "faults"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Scenario, rule, whether it alarmed, after how many minutes."""
        rng = random.Random(seed)
        dead, seen = 600 + rng.random(), dict[str, float]()
        scene = Scene(self.traffic(rng), self.counts, dead)
        rules = _RULES if self.counts else _RULES[:1]
        for second in range(1_800):
            for rule in scene.second(float(second)):
                if second > dead:
                    seen.setdefault(rule, (second - dead) / 60)
            if len(seen) == len(rules):
                break
        name = f"{self.name}, engine counts" if self.counts else self.name
        for rule in rules:
            yield name, rule, rule in seen, seen.get(rule)


def _chats(every: float, *others: Traffic) -> Traffic:
    """Short streams, one in ``every`` seconds, and something else now and then."""

    def all_of(rng: random.Random) -> Iterator[Request]:
        streams = chats(rng, every, wait=0.5, sigma=0.8, seconds=8.0)
        return together(streams, *(other(rng) for other in others))

    return all_of


_WHOLE = partial(batches, every=600, size=8, seconds=45, sigma=0.5)
_PAIR = _chats(120, partial(batches, every=1_800, size=2, seconds=90, sigma=0.3))
_PREFILLS = _chats(120, partial(prefills, every=1_800, size=2, seconds=60, sigma=0.4))
_PREFILL = _chats(120, partial(prefills, every=1_800, size=1, seconds=90, sigma=0.3))
_ANSWERS = partial(batches, every=10, size=1, seconds=6, sigma=0.5)
SCENARIOS: tuple[Quiet | Dead, ...] = (
    Quiet("null, a chat in 4 s", _chats(4)),
    Quiet(
        "null, a chat in 20 s, waits of 4 s (σ 1.5)",
        partial(chats, every=20, wait=4.0, sigma=1.5, seconds=10.0),
    ),
    Quiet("null, 8 whole answers of 45 s", _WHOLE),
    Quiet("null, 8 whole answers of 45 s and a chat in 30 s", _chats(30, _WHOLE)),
    Quiet("null, 2 whole answers of 90 s", _PAIR),
    Quiet("null, 2 whole answers of 90 s", _PAIR, counts=True),
    Quiet("null, 2 prefills of 60 s", _PREFILLS),
    Quiet("null, 2 prefills of 60 s", _PREFILLS, counts=True),
    Quiet("null, 1 prefill of 90 s", _PREFILL, counts=True),
    Dead("dead leg, a chat in 4 s", _chats(4)),
    Dead("dead leg, a chat in 4 s", _chats(4), counts=True),
    Dead("dead leg, a chat in 30 s", _chats(30)),
    Dead("dead leg, a chat in 30 s", _chats(30), counts=True),
    Dead("dead leg, whole answers", _ANSWERS),
    Dead("dead leg, whole answers", _ANSWERS, counts=True),
)
