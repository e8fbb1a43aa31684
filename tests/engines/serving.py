"""Made processes that serve random loads, for tests of what is seen from scrape to scrape."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from sidecar.engines.increases import Key

Counters = dict[Key, float]
COUNTERS = ("generated_tokens", "prompt_tokens", "stop", "length", "preemptions")


class Process:
    """Counts from zero; ``share`` of the load comes to it."""

    def __init__(self, rng: random.Random, steps: int = 0, share: float = 1.0) -> None:
        self._rng = rng
        self._share = share
        self.counts = dict.fromkeys(COUNTERS, 0)
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        """The time between two scrapes: from nothing to three times the usual."""
        rng = self._rng
        load = rng.choice([0, 0.1, 0.5, 1, 1, 1, 2, 3]) * rng.uniform(5, 15) * self._share
        for _ in range(int(load)):
            self.counts["generated_tokens"] += rng.randint(5, 400)
            self.counts["prompt_tokens"] += rng.randint(10, 900)
            self.counts["length" if rng.random() < 0.2 else "stop"] += 1
            self.counts["preemptions"] += rng.random() < 0.05

    def scrape(self) -> Counters:
        """Its counters by metric."""
        return {(f"modelprobe_engine_{name}_total", ()): v for name, v in self.counts.items()}


def one(rng: random.Random) -> Iterator[Counters]:
    """One process for ever."""
    process = Process(rng, rng.randrange(50))
    while True:
        process.step()
        yield process.scrape()


def crashing(rng: random.Random, lives: Callable[[], int]) -> Iterator[Counters]:
    """Each process is scraped so many times, then the next one begins at zero."""
    while True:
        process = Process(rng)
        for _ in range(lives()):
            process.step()
            yield process.scrape()


def several(
    rng: random.Random, number: int, pick: Callable[[int], int], alike: bool = False
) -> Iterator[Counters]:
    """Processes that have run for a while and answer as ``pick`` says; ``alike`` ones share the
    load since the same moment.
    """
    since = rng.randrange(20, 200)
    steps = [since if alike else rng.randrange(200) for _ in range(number)]
    processes = [Process(rng, n, 1 / number if alike else 1.0) for n in steps]
    scrape = 0
    while True:
        for process in processes:
            process.step()
        yield processes[pick(scrape)].scrape()
        scrape += 1
