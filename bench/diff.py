"""How often `model-probe diff` is wrong, and what it sees: pairs of made-up stretches.

TTFT, ITL and duration of each side, as a recorder keeps them; verdicts of all signals together, at
a guard of 10 %. Intervals: the share of all that are shown which hold the true difference.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bench.detectors import wilson
from sidecar.diff.comparing import compare
from sidecar.diff.findings import Found
from sidecar.diff.sides import Measured, Side
from sidecar.drift.stretch import Floats, Stretch

Ints = NDArray[np.int64]
_BLOCK, _SLOT = 150.0, 300.0
_QUANTILES = (0.5, 0.95, 0.99)
_GAP, _TTFT = 0.022, 0.35  # seconds


@dataclass(frozen=True, slots=True)
class Service:
    """``n`` requests over ``minutes``. All of a block of 150 s have a log-normal factor of σ
    ``clump`` in common, of which ``rho`` lasts into the next one. A share ``long`` has four times
    as many events and 2.5 times the TTFT. Everything takes ``factor`` times as long, and the
    slowest 5 % of TTFTs ``tail`` times. Each event carries ``tokens``.
    """

    n: int = 3_600
    minutes: float = 120.0
    clump: float = 0.0
    rho: float = 0.0
    long: float = 0.0
    factor: float = 1.0
    tail: float = 1.0
    tokens: int = 1
    failing: float = 0.0

    def side(self, rng: np.random.Generator) -> Side:
        """What is kept of it."""
        at = np.sort(rng.random(self.n)) * 60 * self.minutes
        long = rng.random(self.n) < self.long
        common = self.factor * np.exp(self.clump * self._shocks(rng)[(at // _BLOCK).astype(int)])
        z = rng.standard_normal(self.n)
        ttft = _TTFT * np.exp(0.45 * z) * common * np.where(long, 2.5, 1.0)
        ttft = np.where(z > 1.645, ttft * self.tail, ttft)
        events = np.where(long, 80, 20) // self.tokens
        gap = _GAP * common * self.tokens * (0.9 if self.tokens > 1 else 1.0)
        gaps = np.repeat(gap, events) * np.exp(0.2 * rng.standard_normal(int(events.sum())))
        duration = ttft + gap * events
        if self.failing:
            duration = np.where(rng.random(self.n) < self.failing, np.inf, duration)
        kinds = long.astype(np.int64)
        signals = {
            "ttft": _measured(ttft, at, kinds),
            "itl": _measured(gaps, np.repeat(at, events), np.zeros(len(gaps), np.int64)),
            "duration": _measured(duration, at, kinds),
        }
        return Side("", 0.0, 60 * self.minutes, round(self.minutes / 5), signals)

    def _shocks(self, rng: np.random.Generator) -> Floats:
        noise = rng.standard_normal(int(60 * self.minutes // _BLOCK) + 1)
        for i in range(1, len(noise)):
            noise[i] = self.rho * noise[i - 1] + math.sqrt(1 - self.rho**2) * noise[i]
        return noise


def _measured(seconds: Floats, at: Floats, kinds: Ints) -> Measured:
    slot, block = (at // _SLOT).astype(np.int64), (at // _BLOCK).astype(np.int64)
    ends = np.searchsorted(slot, np.arange(int(slot[-1]) + 2))
    pieces = [Stretch.sampled(seconds[i:j], block[i:j] % 2, kinds[i:j]) for i, j in pairwise(ends)]
    return Measured.of(pieces)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A pair. ``same``: nothing happened that a verdict may call a move."""

    name: str
    a: Service
    b: Service
    same: bool = True


def _mixed(n: int, now: float) -> tuple[Service, Service]:
    """A fifth of long requests, then ``now`` of them."""
    return Service(n=n, long=0.2), Service(n=n, long=now)


_PLAIN = Service()
_FEW, _MANY = Service(n=600, minutes=30), Service(n=20_000)
_CLUMPED = Service(clump=0.1)
SCENARIOS = (
    Scenario("null, 600 requests in 30 min", _FEW, _FEW),
    Scenario("null, 3,600 requests in 2 h", _PLAIN, _PLAIN),
    Scenario("null, 20,000 requests in 2 h", _MANY, _MANY),
    Scenario("null, blocks of 150 s differ by 10 %", _CLUMPED, _CLUMPED),
    Scenario("null, and resemble the one before by 0.6", *2 * (replace(_CLUMPED, rho=0.6),)),
    Scenario("null, and resemble the one before by 0.9", *2 * (replace(_CLUMPED, rho=0.9),)),
    Scenario("null, long requests 20 to 50 %", Service(long=0.2), Service(long=0.5)),
    Scenario("null, long 20 to 40 %, 20,000 requests", *_mixed(20_000, 0.4)),
    Scenario("an event carries 2 tokens, 10 % faster", _PLAIN, Service(tokens=2)),
    Scenario("10 % slower, which is the guard", _PLAIN, Service(factor=1.1), same=False),
    Scenario("20 % slower", _PLAIN, Service(factor=1.2), same=False),
    Scenario("20 % slower, 600 requests", _FEW, replace(_FEW, factor=1.2), same=False),
    Scenario("20 % slower, blocks differ", _CLUMPED, replace(_CLUMPED, factor=1.2), same=False),
    Scenario(
        "20 % slower and long 20 to 50 %",
        Service(long=0.2),
        Service(long=0.5, factor=1.2),
        same=False,
    ),
    Scenario("slowest 5 % of TTFTs 1.5 times", _PLAIN, Service(tail=1.5), same=False),
    Scenario("3 % more fail", _PLAIN, Service(failing=0.03), same=False),
)


@dataclass(frozen=True, slots=True)
class Row:
    """Of one scenario, how many pairs had each verdict; ``held`` are intervals, by quantile."""

    scenario: str
    same: bool
    n: int
    verdicts: dict[str, int]
    slower_lower: float
    slower_upper: float
    held: dict[str, float] | None


def measure(scenario: Scenario, repetitions: int, seed: int) -> Row:
    """As many pairs, each from a seed of its own."""
    verdicts: Counter[str] = Counter()
    held: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for number in range(repetitions):
        rng = np.random.default_rng([seed, number])
        found = compare(scenario.a.side(rng), scenario.b.side(rng))
        verdicts[found.verdict.value] += 1
        if scenario.same and scenario.a.tokens == scenario.b.tokens:
            _hold(found, held, shown)
    slower = wilson(verdicts["slower"], repetitions)
    shares = {name: held[name] / shown[name] for name in sorted(shown)}
    return Row(scenario.name, scenario.same, repetitions, dict(verdicts), *slower, shares or None)


def _hold(found: Found, held: Counter[str], shown: Counter[str]) -> None:
    """Of a null, whose difference at the mix of B is 0."""
    for one in found.signals:
        for each in one.quantiles:
            if each.judged is not None:
                name = f"P{100 * each.quantile:g}"
                shown[name] += 1
                held[name] += each.judged.difference.lower <= 0 <= each.judged.difference.upper


def tell(rows: list[Row]) -> None:
    """Words, a line a scenario."""
    words = ("slower", "faster", "same", "not_slower", "unknown")
    print(f"{'scenario':<44}" + "".join(f"{word:>11}" for word in words) + "   intervals that hold")
    for row in rows:
        shares = "".join(f"{row.verdicts.get(word, 0) / row.n:>10.1%} " for word in words)
        held = ", ".join(f"{name} {share:.3f}" for name, share in (row.held or {}).items())
        print(f"{row.scenario:<44}{shares}  {held}")


def main() -> None:
    """Prints words, then one JSON object."""
    parser = argparse.ArgumentParser(prog="./run bench diff", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=50, help="pairs of each scenario")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    rows = [measure(one, options.repetitions, options.seed) for one in SCENARIOS]
    tell(rows)
    nulls = [row for row in rows if row.same]
    wrong = sum(row.verdicts.get("slower", 0) for row in nulls)
    many = sum(row.n for row in nulls)
    print(f"\nof {many} pairs in which nothing became slower, {wrong} are called slower")
    report = {
        "rows": [asdict(row) for row in rows],
        "slower_on_nulls": wrong / many,
        "slower_on_nulls_upper": wilson(wrong, many)[1],
        "n": options.repetitions,
        "seed": options.seed,
        "seconds": time.monotonic() - started,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
