"""What following the scheduling of a process costs it, and what it costs everybody else.

A C loop switches between two threads on one CPU, or starts programs that end at once, with the
probe and without it in interleaved pairs: as the watched process, and as a bystander while another
one is watched. A switch of the loop is little else than the switch, so the share is the worst case;
the nanoseconds are what counts. Needs root.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sidecar.probed import sched
from sidecar.probed.namespaces import network_of
from sidecar.probed.probe import Watched
from sidecar.probed.sched import SchedProbe
from sidecar.probed.targets import By, Selector, scan
from sidecar.signals import CollectorState, NoData

HERE = Path(__file__).parent
_THREADS, _ROUNDS = 2, 20


@dataclass(slots=True)
class Loop:
    """The loop, running."""

    popen: subprocess.Popen[str]

    def ask(self, words: str) -> float:
        """Nanoseconds of CPU a time."""
        assert self.popen.stdin
        print(words, file=self.popen.stdin, flush=True)
        return float(self.answer())

    def answer(self) -> str:
        """Its next line."""
        assert self.popen.stdout
        if not (line := self.popen.stdout.readline().strip()):
            raise SystemExit(f"the measured program ended: {self.popen.wait()}")
        return line


@contextmanager
def running(program: Path) -> Iterator[Loop]:
    """One loop, until the block ends."""
    popen = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    loop = Loop(popen)
    try:
        if loop.answer() != "ready":
            raise SystemExit("the measured program did not start")
        yield loop
    finally:
        popen.kill()
        popen.communicate()


def follow(probe: SchedProbe, loop: Loop | None) -> float:
    """Has the probe follow this loop alone, or none; how long attaching took in seconds."""
    if loop is None:
        probe.watch(Watched())
        for _ in range(_ROUNDS):  # letting go is bounded in time too
            list(probe.drain())
        return 0.0
    began = time.monotonic()
    chosen = scan([Selector(By.PID, str(loop.popen.pid))], network_of()).targets
    probe.watch(Watched(targets=chosen))
    for _ in range(_ROUNDS):  # each is bounded in time
        list(probe.second(time.monotonic_ns()))
        (covered,) = probe.coverage()
        if covered.parts == _THREADS:
            break
    if covered.state is CollectorState.BLIND or covered.parts != _THREADS:
        raise SystemExit(f"not attached: {covered.parts} threads, {covered.reason}")
    return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Pair:
    """Nanoseconds of CPU a time without and with."""

    without: float
    having: float


def pairs(
    probe: SchedProbe, measured: Loop, watched: Loop, words: str, rng: random.Random, count: int
) -> list[Pair]:
    """Measures one loop while the watched one, it or another, is followed and not, in turn."""
    found = []
    for _ in range(count):
        times = {}
        for on in rng.sample((False, True), 2):
            follow(probe, watched if on else None)
            times[on] = measured.ask(words)
        found.append(Pair(times[False], times[True]))
    return found


def told(name: str, found: list[Pair]) -> dict[str, float]:
    """Says and returns the medians of what it costs more."""
    more = [pair.having - pair.without for pair in found]
    ratios = [pair.having / pair.without for pair in found]
    low, middle, high = statistics.quantiles(more, n=4)
    plain, ratio = statistics.median(p.without for p in found), statistics.median(ratios)
    error = 1.96 * 1.2533 * statistics.stdev(ratios) / len(ratios) ** 0.5  # of a median
    print(
        f"{name}: {plain:,.0f} ns without, {middle:+,.0f} ns with it "
        f"(quartiles {low:+,.0f} to {high:+,.0f}), ratio {ratio:.4f} ± {error:.4f}"
    )
    return {
        f"{name}_plain_seconds": plain / 1e9,
        f"{name}_more_seconds": middle / 1e9,
        f"{name}_ratio": ratio,
        f"{name}_ratio_upper": ratio + error,
    }


def main() -> None:
    """Prints words, then one JSON object."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--pairs", type=int, default=41)
    options.add_argument("--switches", type=int, default=30_000)
    options.add_argument("--spawns", type=int, default=101)
    arguments = options.parse_args()
    rng = random.Random(arguments.seed)
    try:
        probe = sched.load("auto", network_of())
    except NoData as failure:
        raise SystemExit(f"sched cannot be loaded: {failure.reason}") from failure
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "loop"
        source = str(HERE / "sched_loop.c")
        words = ["gcc", "-O2", "-pthread", source, "-o", str(program)]
        subprocess.run(words, check=True)
        with running(program) as one, running(program) as other:
            print(f"{arguments.pairs} interleaved pairs a row, seed {arguments.seed}")
            first = follow(probe, one)
            result: dict[str, float | int | bool] = {"attach_seconds": first}
            print(f"attaching the first process of two threads took {first * 1e3:.1f} ms")
            for row, measured, work in (
                ("switch", one, f"switch {arguments.switches}"),
                ("bystander_switch", other, f"switch {arguments.switches}"),
                ("bystander_spawn", other, f"spawn {arguments.spawns}"),
            ):
                found = pairs(probe, measured, one, work, rng, arguments.pairs)
                result |= told(row, found)
        probe.close()
    result |= {"n": arguments.pairs, "seed": arguments.seed}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
