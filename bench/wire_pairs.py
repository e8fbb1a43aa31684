"""The wire's bench, first part: pairs of rounds with the tap and without, in turn.

A round is the same load on the same server, then what a bystander does; with the tap, its records
are held against the truth. Taken off, nothing of the tap is left on the machine.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from bench.wire_machine import Unable
from bench.wire_programs import PORT, Bystander, Load, Served, Server
from bench.wire_ratio import Ratio, orders, ratio, shams
from bench.wire_tap import Tap
from bench.wire_truth import Asked, Compared, compare
from sidecar.probed.frames import Counters
from sidecar.signals import RequestTiming

LOAD = Load(connections=83, requests=1, tokens=53)
HALF_WIDTH = 0.005
STALL_SECONDS = 0.05
_WARM_UPS, _LEAST_PAIRS = 3, 7
_SETTLE = 0.15  # seconds between the tap's start, or its end, and the load
_CHUNKS, _SYSCALLS, _MESSAGES = 101, 1_000, 100


@dataclass(frozen=True, slots=True)
class Half:
    """One round: seconds of CPU an event and, by the bystander, of an operation."""

    tapped: bool
    server: float
    syscalls: float
    loopback: float


@dataclass(slots=True)
class Pairs:
    """What all rounds together say; ``drops`` are the tap's own counts of what it did not see."""

    halves: list[Half] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    told: list[RequestTiming] = field(default_factory=list)
    drops: dict[str, int] = field(default_factory=dict)
    events: int = 0
    seconds: float = 0.0

    def ratio(self, what: str) -> Ratio:
        """With the tap over without, of `server`, `syscalls` or `loopback`."""
        found = []
        for one, other in zip(self.halves[::2], self.halves[1::2], strict=True):
            first, second = (one, other) if one.tapped else (other, one)
            found.append((getattr(first, what), getattr(second, what)))
        return ratio(found)

    def sham(self) -> Ratio | None:
        """Of the server, between halves in a row that do not differ; None before the first."""
        pairs = shams([(half.tapped, half.server) for half in self.halves])
        return ratio(pairs) if pairs else None

    def compared(self) -> Compared:
        """The tap's records beside the truth."""
        return compare(self.asked, self.told)

    @property
    def events_per_second(self) -> float:
        """While a load ran."""
        return self.events / self.seconds


class Rounds:
    """Plays rounds on one server beside one bystander."""

    def __init__(self, server: Server, bystander: Bystander, seed: int, load: Load = LOAD) -> None:
        self._server, self._bystander, self._load = server, bystander, load
        self._rng = random.Random(seed)
        self._number = 0
        self.pairs = Pairs()

    def play(self, seconds: float) -> Iterator[Ratio]:
        """Pairs until the server's ratio is known to HALF_WIDTH or time is up; each time the ratio
        as it is then.
        """
        for _ in range(_WARM_UPS):
            self._serve(self._load)
        deadline = time.monotonic() + seconds
        for order in orders(self._rng):
            for tapped in order:
                self._half(tapped)
            found = self.pairs.ratio("server")
            yield found
            enough = found.n >= _LEAST_PAIRS and found.half_width <= HALF_WIDTH
            if enough or time.monotonic() > deadline:
                return

    def stall(self) -> Compared:
        """A request on each connection that waits before a server that neither accepts nor reads,
        for STALL_SECONDS after the last of them was written.
        """
        load = replace(self._load, requests=1)
        with Tap(PORT) as tap:
            self._server.stop()
            served = self._serve(load, self._server.resumed_after(STALL_SECONDS))
            told = tap.take(len(served.asked))
            self._count(tap.counters())
        return compare(served.asked, told)

    def _serve(self, load: Load, during: Callable[[], None] | None = None) -> Served:
        self._number += 1
        return self._server.serve(str(self._number), load, during)

    def _half(self, tapped: bool) -> None:
        with Tap(PORT) if tapped else nullcontext() as tap:
            time.sleep(_SETTLE)
            served = self._serve(self._load)
            syscalls = self._bystander.seconds("syscalls", _CHUNKS, _SYSCALLS)
            loopback = self._bystander.seconds("loopback", _CHUNKS, _MESSAGES)
            if tap is not None:
                self.pairs.told += tap.take(len(served.asked))
                self.pairs.asked += served.asked
                counters = tap.counters()
                self._count(counters)
                if not counters.packets:
                    raise Unable("the tap saw no packet: a ratio would say nothing")
        each = served.cpu_seconds / served.events
        self.pairs.halves.append(Half(tapped, each, syscalls, loopback))
        self.pairs.events += served.events
        self.pairs.seconds += served.seconds

    def _count(self, counters: Counters) -> None:
        for name in ("lost_records", "contended", "resyncs", "table_full", "frames_dropped"):
            known = self.pairs.drops.get(name, 0)
            self.pairs.drops[name] = known + getattr(counters, name)
