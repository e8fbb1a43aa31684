"""What the preloaded library costs a call, and how fast it heals when its injector is gone.

A C loop calls functions that do nothing, by their own address and by the address that the library
hands out, in interleaved pairs in one process: disarmed, armed for other functions, and armed for
this one by a rule that counts and never hits. Then injectors are killed and stopped while a program
polls for its first good call. Targets: at most 5 ns disarmed, 15 ns armed elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from chaos.interposer.library import library
from chaos.interposer.page import Page, Rule
from chaos.interposer.rules import Error

DISARMED, ELSEWHERE = 5e-9, 15e-9
ALLOCATE, LAUNCH, OTHER = "cuMemAlloc_v2", "cuLaunchKernel", "ncclAllReduce"
NEVER = 1 << 62
_CODE = 2
HERE = Path(__file__).parent


@dataclass(slots=True)
class Program:
    """The loop, running under the library."""

    popen: subprocess.Popen[str]

    def ask(self, words: str) -> None:
        """Sends one command."""
        assert self.popen.stdin
        print(words, file=self.popen.stdin, flush=True)

    def answer(self) -> str:
        """Its next line."""
        assert self.popen.stdout
        if not (line := self.popen.stdout.readline().strip()):
            raise SystemExit(f"the measured program ended: {self.popen.wait()}")
        return line

    def costs_more(self, which: int, pairs: int, calls: int, rng: random.Random) -> list[float]:
        """Seconds that a hooked call takes longer than its own pair's plain one."""
        found = []
        for _ in range(pairs):
            self.ask(f"pair {which} {calls} {rng.randrange(2)}")
            found.append(float(self.answer()))
        return found


def built(folder: Path, page: Path) -> Program:
    """Compiles both and starts the loop."""
    for name, source, options in (
        ("driver.so", "interposer_driver.c", ["-shared", "-fPIC", "-Wl,-Bsymbolic"]),
        ("loop", "interposer_loop.c", ["-ldl"]),
    ):
        words = ["gcc", "-O2", "-w", str(HERE / source), "-o", str(folder / name), *options]
        subprocess.run(words, check=True)
    popen = subprocess.Popen(
        [folder / "loop", folder / "driver.so"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LD_PRELOAD": str(library()), "MODELPROBE_CHAOS_PAGE": str(page)},
    )
    program = Program(popen)
    if program.answer() != "ready":
        raise SystemExit("the library gave no hooks: nothing can be measured")
    return program


def hold(page: Path, lease: float) -> None:
    """An injector that arms, says when its lease ends, and does nothing more."""
    opened = Page.open(page)
    opened.arm([Rule((ALLOCATE,), Error(_CODE))], lease)
    print(opened.deadline(), flush=True)
    while True:
        signal.pause()


def heal(program: Program, page: Path, signum: int, lease: float) -> float:
    """Seconds from SIGKILL, or from the end of the lease, until the first good call."""
    words = [sys.executable, "-m", "bench.interposer", "--hold", str(page), "--lease", str(lease)]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout
        deadline = float(holder.stdout.readline())
        program.ask("watch")
        sent = time.monotonic()
        holder.send_signal(signum)
        return float(program.answer()) - (sent if signum == signal.SIGKILL else deadline)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close() if holder.stdout else None


def told(name: str, found: list[float], unit: str = "ns", size: float = 1e-9) -> dict[str, float]:
    """Says and returns median and spread."""
    low, middle, high = statistics.quantiles(found, n=4)
    spread = f"quartiles {low / size:,.2f} to {high / size:,.2f}, most {max(found) / size:,.2f}"
    print(f"{name}: median {middle / size:,.2f} {unit}, {spread}")
    return {"seconds": middle, "low": low, "high": high}


def costs(
    program: Program, path: Path, pairs: int, calls: int, rng: random.Random
) -> dict[str, float]:
    """Seconds more for each state of the page and each of two functions, with quartiles."""
    states: dict[str, list[Rule]] = {
        "disarmed": [],
        "armed_elsewhere": [Rule((OTHER,), Error(_CODE))],
        "armed_counting": [Rule((ALLOCATE, LAUNCH), Error(_CODE), nth=NEVER)],
    }
    result: dict[str, float] = {}
    page = Page.open(path)
    for state, rules in states.items():
        for which, function in enumerate((ALLOCATE, LAUNCH)):
            if rules:
                page.arm(rules, 60)
            found = told(
                f"{state.replace('_', ' ')}, {function}",
                program.costs_more(which, pairs, calls, rng),
            )
            counted = sum(rule.calls for rule in page.counts().rules) if rules else 0
            assert counted == (pairs * calls if state == "armed_counting" else 0), counted
            prefix = f"{state}_launch" if which else state
            result |= {f"{prefix}_{key}": value for key, value in found.items()}
            page.disarm()
    page.close()
    return result


def main() -> None:
    """Prints words, then one JSON object."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--pairs", type=int, default=101)
    options.add_argument("--calls", type=int, default=200_000)
    options.add_argument("--heals", type=int, default=23)
    options.add_argument("--hold", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--lease", type=float, default=60, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.hold:
        hold(arguments.hold, arguments.lease)
    print(
        f"{arguments.pairs} pairs of {arguments.calls:,} calls a row, seed {arguments.seed}; "
        f"{arguments.heals} injectors killed, as many stopped under a lease of 0.2 s"
    )
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "page"
        program = built(folder, path)
        result: dict[str, float | bool] = {}
        result |= costs(
            program, path, arguments.pairs, arguments.calls, random.Random(arguments.seed)
        )
        for key, signum, lease in (
            ("heal", signal.SIGKILL, 60.0),
            ("heal_stopped", signal.SIGSTOP, 0.2),
        ):
            times = [heal(program, path, signum, lease) for _ in range(arguments.heals)]
            words = f"healed after {'SIGKILL' if key == 'heal' else 'the lease of a stopped one'}"
            found = told(words, times, "ms", 1e-3)
            result |= {f"{key}_{one}": value for one, value in found.items()}
            result[f"{key}_max_seconds"] = max(times)
        assert program.popen.stdin
        program.popen.stdin.close()
        program.popen.wait()
    result["n"], result["heals"], result["seed"] = arguments.pairs, arguments.heals, arguments.seed
    met = result["disarmed_seconds"] <= DISARMED and result["armed_elsewhere_seconds"] <= ELSEWHERE
    result["met"] = met
    print(json.dumps(result))
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
