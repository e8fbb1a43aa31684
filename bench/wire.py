"""What the wire tap costs and how true it is, on a real server at over 5,000 SSE events a second.

uvicorn streams to a light client in another network namespace, over a veth pair as out of a pod.
Interleaved pairs of rounds with the tap and without give the ratio of the server's CPU (its own
system calls carry its packets, and the tap's work with them), and of what a bystander in a third
namespace needs for an operation. The tap's times are held against the server's own stamps, also
when requests waited before a stopped server. Then `model-probe attach` watches a load, and all its
processes are charged. A short run takes under a minute, too short for the ratio; ``--full`` takes
half an hour and keeps its result in bench/results/wire.json. Needs root.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench import wire_report, wire_words
from bench.detectors import commit, machine
from bench.wire_machine import Outside, Unable, leave_network
from bench.wire_pairs import HALF_WIDTH, STALL_SECONDS, Rounds
from bench.wire_programs import Bystander, Load, Server
from bench.wire_report import Report
from bench.wire_sidecar import Sidecar
from bench.wire_tap import TapFailed
from rig.part import PartDied

_STORED = Path(__file__).parent / "results" / "wire.json"
STEP_SECONDS = 0.01  # between two tokens of a stream
TOKENS = 127  # of an answer, where the sidecar is charged: a request costs it more than an event


@dataclass(frozen=True, slots=True)
class Length:
    """How long each part may take. The whole sidecar is charged for ``requests`` on each
    connection; 300 s of them hold one slot of recorded latencies, so one evaluation's cost.
    """

    pairs_seconds: float
    framework_seconds: float
    idle_seconds: float
    requests: int


SHORT = Length(pairs_seconds=14, framework_seconds=0, idle_seconds=2, requests=5)
FULL = Length(pairs_seconds=900, framework_seconds=450, idle_seconds=30, requests=230)


def play(server: Server, bystander: Bystander, seed: int, seconds: float) -> Rounds:
    """The pairs, with a word on each."""
    rounds = Rounds(server, bystander, seed)
    for found in rounds.play(seconds):
        print(f"  {wire_words.ratio('server CPU', found)}", flush=True)
    return rounds


def measure(length: Length, seed: int) -> Report:
    """All parts, one after the other."""
    leave_network()
    with (
        tempfile.TemporaryDirectory() as name,
        closing(Bystander()) as bystander,
        closing(Outside()) as outside,
        closing(Server(Path(name), STEP_SECONDS, outside)) as server,
    ):
        rounds = play(server, bystander, seed, length.pairs_seconds)
        usual, stalled = rounds.pairs.compared(), rounds.stall()
        with closing(Sidecar(Path(name))) as sidecar:
            load = Load(connections=67, requests=length.requests, tokens=TOKENS)
            cost = sidecar.measure(server, load, length.idle_seconds)
    told = wire_report.ratios(rounds.pairs) | wire_report.truth(usual, stalled)
    told |= wire_report.cost(cost) | wire_report.lost(usual, stalled, rounds.pairs, cost)
    if length.framework_seconds:
        told["framework"] = with_framework(seed, length.framework_seconds)
    return told | {"seed": seed, "tokens": TOKENS, "stall_seconds": STALL_SECONDS}


def with_framework(seed: int, seconds: float) -> Report:
    """The ratio once more, of a server that makes its events as vLLM's front does."""
    print("the same of a server with models and Starlette's stream:")
    with (
        tempfile.TemporaryDirectory() as name,
        closing(Bystander()) as bystander,
        closing(Outside()) as outside,
        closing(Server(Path(name), STEP_SECONDS, outside, framework=True)) as server,
    ):
        return wire_report.ratios(play(server, bystander, seed, seconds).pairs)


def marked(report: Report, began: float) -> Report:
    """With where and when it was measured."""
    return {
        **report,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit(),
        "machine": machine(),
        "kernel": platform.release(),
        "seconds": time.monotonic() - began,
    }


def main() -> int:
    """Exit 1 when the tap lost something, 2 when nothing could be measured."""
    parser = argparse.ArgumentParser(prog="./run bench wire", description=__doc__)
    parser.add_argument("--full", action="store_true", help="half an hour; keeps the result")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the pairs")
    parser.add_argument("--seconds", type=float, help="for the pairs, instead of the usual")
    options = parser.parse_args()
    began = time.monotonic()
    length = FULL if options.full else SHORT
    if options.seconds is not None:
        length = Length(options.seconds, 0.0, length.idle_seconds, length.requests)
    print(f"pairs until the half-width is {HALF_WIDTH:.1%} or time is up, seed {options.seed}:")
    try:
        fresh = marked(measure(length, options.seed), began)
    except (Unable, TapFailed, PartDied, OSError, ValueError) as error:
        print(f"bench wire: {error}", file=sys.stderr)
        return 2
    wire_words.tell(fresh, "today")
    if options.full:
        _STORED.write_text(json.dumps(fresh, indent=1) + "\n")
        print(f"kept in {_STORED.relative_to(_STORED.parents[2])}")
    print(json.dumps(fresh if options.full else _beside(fresh)))
    return 1 if fresh["lost"] else 0


def _beside(quick: Report) -> Report:
    """The stored figures with today's as `quick`; today's alone where none are stored."""
    if not _STORED.exists():
        return quick | {"stored": None}
    kept: Report = json.loads(_STORED.read_text())
    wire_words.tell(kept, "stored")
    return kept | {"stored": True, "quick": quick}


if __name__ == "__main__":
    sys.exit(main())
