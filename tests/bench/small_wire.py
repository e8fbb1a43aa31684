"""The wire's bench with a small load, as a process of its own: it leaves the network it is in."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from bench.wire_machine import leave_network
from bench.wire_pairs import Rounds
from bench.wire_programs import Bystander, Load, Server


def main() -> None:
    """One pair, and one load that waits, on a server as the argument names it; then JSON."""
    leave_network()
    load = Load(connections=7, requests=3, tokens=11)
    framework = sys.argv[1] == "framework"
    with (
        tempfile.TemporaryDirectory() as name,
        closing(Bystander()) as bystander,
        closing(Server(Path(name), 0.005, framework=framework)) as server,
    ):
        rounds = Rounds(server, bystander, 1, load)
        found = list(rounds.play(0))
        stalled = rounds.stall()
    pairs = rounds.pairs
    told = {"usual": asdict(pairs.compared()), "stalled": asdict(stalled), "drops": pairs.drops}
    ratios = [pairs.ratio(what).point for what in ("server", "syscalls", "loopback")]
    sys.stdout.write(json.dumps(told | {"n": found[-1].n, "ratios": ratios}))


if __name__ == "__main__":
    main()
