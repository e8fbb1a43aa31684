"""What the rules on GPUs make of calls that hang for a while, of Xids that applications cause, of a
reader that starts anew, and of cards that are lost.

A part of ``./run bench detectors``. Cards are made up behind the collector's own code, see
bench/detectors_cards.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.detectors_alarms import Alarms
from bench.detectors_cards import Card, rack, snapshot
from sidecar.collectors.nvml.inventory import Inventory
from sidecar.collectors.nvml.protocol import XidNews
from sidecar.detect.devices import LOST, MISSING, Devices
from sidecar.detect.needs import NEEDS
from sidecar.snapshot import Snapshot

_HOUR, _HOURS, _DAY = 3_600, 24, 86_400
_NEVER = float("inf")
_AFTER_SECONDS = 60.0  # of a hang that are judged beside it, at least


class _Watch:
    """The detector and its alarms, on snapshots of one card: when each rule began to fire."""

    def __init__(self) -> None:
        self.alarms, self.fired = Alarms(), list[tuple[str, float]]()
        self._detector = Devices()

    def judge(self, snapshot: Snapshot, now: float) -> None:
        """One round."""
        found = self.alarms.take(self._detector.judge(snapshot, now), now)
        self.fired += [(alarm.rule, now) for alarm in found]


@dataclass(frozen=True, slots=True)
class Hangs:
    """A card one call of which hangs in each hour, for as long as said: counted are hours."""

    shortest: float
    longest: float
    unit: str = "hours"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """A day: scenario, rule, whether it alarmed, by hour; there is no delay."""
        rng, watch = random.Random(seed), _Watch()
        begins = [_HOUR * hour + rng.uniform(60, _HOUR - 400) for hour in range(_HOURS)]
        hangs = [(at, at + rng.uniform(self.shortest, self.longest)) for at in begins]
        card = Card(watch.judge, hangs, lost=_NEVER)
        for begin, end in hangs:
            card.run(begin - 5, end + _AFTER_SECONDS)
            while watch.alarms.stand:
                card.run(0.0, end := end + _AFTER_SECONDS)
        hours = {(rule, int(at // _HOUR)) for rule, at in watch.fired}
        name = f"null, a call hangs for {self.shortest:g}-{self.longest:g} s each hour"
        for hour in range(_HOURS):
            for rule in (LOST.name, NEEDS.name, MISSING.name):
                yield name, rule, (rule, hour) in hours, None


@dataclass(frozen=True, slots=True)
class Lost:
    """A card that is lost for good, or a call that never comes back: counted are those seen within
    ten minutes.
    """

    name: str
    xid: int | None = None  # None: it hangs
    unit: str = "faults"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Scenario, rule, whether it alarmed, after how many minutes."""
        began, watch = 30 + 5 * random.Random(seed).random(), _Watch()
        hangs, lost = ([(began, began + 600)], _NEVER) if self.xid is None else ([], began)
        card = Card(watch.judge, hangs, lost)
        card.run(0.0, began)
        if self.xid is not None:
            card.xid(self.xid, began)
        card.run(began, began + 600)
        fired = dict(reversed(watch.fired))
        rules = (LOST.name,) if self.xid is None else (LOST.name, NEEDS.name, MISSING.name)
        for rule in rules:
            at = fired.get(rule)
            yield self.name, rule, at is not None, None if at is None else (at - began) / 60


@dataclass(frozen=True, slots=True)
class Xids:
    """Eight cards, each of which logs one of ``codes`` about once in ten days: counted are days."""

    name: str
    codes: tuple[int, ...]
    daily: float = 0.8
    cards: int = 8
    unit: str = "days"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """One day."""
        rng, watch, inventory = random.Random(seed), _Watch(), Inventory(self.cards)
        inventory.begin("570.86.15", self.cards)
        for news in rack(self.cards):
            inventory.take(news)
        at, now = rng.expovariate(self.daily / _DAY), 0.0
        while at < _DAY:
            now = max(now, at)
            event = XidNews(at, rng.randrange(self.cards), rng.choice(self.codes), None)
            inventory.add_xid(event)
            at += rng.expovariate(self.daily / _DAY)
            watch.judge(snapshot(inventory, now), now)
            while watch.alarms.stand and now < at:
                now += 4.0  # seconds that the book counts
                watch.judge(snapshot(inventory, now), now)
        yield self.name, NEEDS.name, any(rule == NEEDS.name for rule, _ in watch.fired), None


@dataclass(frozen=True, slots=True)
class Reread:
    """Eight cards whose reader ends and starts anew in each hour; they answer it within 8 s, one
    after another.
    """

    unit: str = "hours"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """A day, by hour."""
        rng, watch, inventory = random.Random(seed), _Watch(), Inventory(8)
        for hour in range(_HOURS):
            inventory.forget()
            inventory.begin("570.86.15", 8)
            answers = [(rng.uniform(0, 8), news) for news in rack(8)]
            for second in range(60):
                for after, news in answers:
                    if second <= after < second + 1:
                        inventory.take(news)
                now = float(hour * _HOUR + second)
                watch.judge(snapshot(inventory, now), now)
        hours = {(rule, int(at // _HOUR)) for rule, at in watch.fired}
        for hour in range(_HOURS):
            for rule in (LOST.name, NEEDS.name, MISSING.name):
                yield "null, the reader starts anew each hour", rule, (rule, hour) in hours, None


SCENARIOS: tuple[Hangs | Lost | Xids | Reread, ...] = (
    Hangs(1, 3),
    Hangs(3, 4),
    Hangs(3, 8),
    Reread(),
    Xids("null, Xids 13, 31, 43 of applications", (13, 31, 43)),
    Xids("null, Xid 45, a mere consequence", (45,)),
    Lost("a card falls off the bus, Xid 79", 79),
    Lost("a call never comes back"),
)
