"""Sides that are made up: latencies of a service, whose requests may clump and differ in kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.diff.sides import Measured, Side
from sidecar.drift.stretch import Floats, Stretch

Ints = NDArray[np.int64]
BLOCK, SLOT = 150.0, 300.0
START = 1_750_032_000.0


def measured(seconds: Floats, at: Floats, kinds: Ints | None = None) -> Measured:
    """What a recorder keeps of durations that ended ``at`` seconds from the start."""
    pieces = []
    slots = (at // SLOT).astype(np.int64)
    for slot in range(int(slots.max()) + 1):
        here = slots == slot
        block = (at[here] // BLOCK).astype(np.int64)
        block -= block.min(initial=np.iinfo(np.int64).max) if here.any() else 0
        pieces.append(Stretch.sampled(seconds[here], block, None if kinds is None else kinds[here]))
    return Measured.of(pieces)


def side(title: str = "A", minutes: float = 120, **signals: Measured) -> Side:
    """A side with these signals."""
    end = START + 60 * minutes
    return Side(title, START, end, round(minutes / 5), signals)


@dataclass(frozen=True)
class Service:
    """Log-normal latencies around ``median`` seconds. ``clump`` is the σ of a factor that all of a
    block of 150 s have in common, ``rho`` how much of it lasts into the next one. Of a share
    ``long`` requests are of a kind that takes 2.5 times as long.
    """

    median: float = 0.35
    sigma: float = 0.45
    n: int = 3_600
    minutes: float = 120
    clump: float = 0.0
    rho: float = 0.0
    long: float = 0.0
    failing: float = 0.0

    def ttft(self, rng: np.random.Generator) -> Measured:
        """What is kept of it."""
        seconds, at, kinds = self.drawn(rng)
        return measured(seconds, at, kinds)

    def drawn(self, rng: np.random.Generator) -> tuple[Floats, Floats, Ints]:
        """Seconds, when they ended, and kinds."""
        at = np.sort(rng.random(self.n)) * 60 * self.minutes
        blocks = int(60 * self.minutes // BLOCK) + 1
        shock = np.empty(blocks)
        noise = rng.standard_normal(blocks)
        shock[0] = noise[0]
        for i in range(1, blocks):
            shock[i] = self.rho * shock[i - 1] + np.sqrt(1 - self.rho**2) * noise[i]
        kinds = (rng.random(self.n) < self.long).astype(np.int64) * 3
        common = self.clump * shock[(at // BLOCK).astype(np.int64)]
        z = self.sigma * rng.standard_normal(self.n) + common
        seconds = self.median * np.exp(z) * np.where(kinds > 0, 2.5, 1.0)
        if self.failing:
            seconds = np.where(rng.random(self.n) < self.failing, np.inf, seconds)
        return seconds, at, kinds
