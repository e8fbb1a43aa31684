"""kill -9 at any moment: no alarm's clock gains, none loses more than a write, none fires twice."""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.alarms import victim
from tests.alarms.samples import FAIL, FIRING, PENDING

ROOT = Path(__file__).parents[2]
STEADY = [rule for rule in victim.HOLDS if rule.startswith("At")]


@dataclass
class Life:
    """What one process wrote down before it died."""

    opened: list[Any] | None = None
    will: list[int] = field(default_factory=list)
    did: list[list[Any]] = field(default_factory=list)

    def seen(self, rule: str) -> float:
        """The seconds for which it can have seen FAIL at both ends."""
        pairs = zip(self.will, self.will[1:], strict=False)
        return float(sum({victim.outcome(rule, s) for s in pair} == {FAIL} for pair in pairs))


class Nursery:
    """Starts processes, one at a time, and lets them die."""

    def __init__(self, program: subprocess.Popen[str], record: Path) -> None:
        self._program = program
        self._record = record
        self._read = 0

    def life(self, seconds: float | None, **order: Any) -> Life:
        """One life of so many seconds, or to its own end."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps({**order, "mercy": seconds is None}) + "\n")
        self._program.stdin.flush()
        child = int(self._program.stdout.readline())
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        assert self._program.stdout.readline() == "dead\n"
        return self._recall()

    def _recall(self) -> Life:
        life = Life()
        with self._record.open("rb") as record:
            record.seek(self._read)
            content = record.read()
        self._read += len(content)
        for line in content.splitlines():
            kind, *rest = json.loads(line)
            if kind == "opened":
                life.opened = rest
            elif kind == "will":
                life.will.append(*rest)
            else:
                life.did.append(rest)
        return life


@contextmanager
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    record = tmp_path / "record"
    record.touch()
    path = tmp_path / "alarms.db"
    command = [sys.executable, "-m", "tests.alarms.victim", str(path), str(record)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        yield Nursery(program, record)


class Witness:
    """Holds every life against the ones before it."""

    def __init__(self) -> None:
        self.seen = dict.fromkeys([*STEADY, "Gappy", victim.LAST], 0.0)
        self.history: list[list[Any]] = []
        self.lost: list[float] = []  # real seconds of rounds that the file did not have
        self.last: Life | None = None

    def hear(self, life: Life) -> None:
        """Checks what this life found in the file against what the one before had done."""
        if life.opened is not None:
            state, standings, history, integrity = life.opened
            assert (state, integrity) == ("ok", "ok")
            self._clocks(standings)
            self._transitions(history)
            self.history = history
            self.last = None
        if life.did or life.will:
            self.last = life
        for rule in self.seen:
            self.seen[rule] += life.seen(rule)

    def _clocks(self, standings: dict[str, Any]) -> None:
        for rule, seen in self.seen.items():
            assert standings.get(rule, (None, 0.0))[1] <= seen + 1e-6
        if self.last is None or not self.last.did:
            return
        did = self.last.did
        durable = did[-1][1]
        if durable:  # rounds count from 1; all up to this one are promised to be in the file
            for rule, (state, held, firings) in did[durable - 1][3].items():
                if rule != "Flaps":
                    assert standings[rule][1] >= held - 1e-6
                    assert standings[rule][2] >= firings
                    assert state == PENDING or standings[rule][0] == state
        kept = [number for number, entry in enumerate(did) if entry[3] == standings]
        self.lost.append(did[-1][2] - (did[kept[-1]][2] if kept else did[0][2]))

    def _transitions(self, history: list[list[Any]]) -> None:
        """The file has a beginning of what each process reported, at least up to its promise."""
        assert history[: len(self.history)] == self.history
        more = history[len(self.history) :]
        did = self.last.did if self.last else []
        told = [(entry[0], row) for entry in did for row in entry[4]]
        unsaid = self.last.will[len(did) :] if self.last else []
        if unsaid:  # killed between doing and saying so
            more = [row for row in more if row[3] != unsaid[0]]
        assert more == [row for _, row in told][: len(more)]
        if did and did[-1][1]:
            promised = did[did[-1][1] - 1][0]
            assert len(more) >= sum(second <= promised for second, _ in told)

    def judge(self, standings: dict[str, Any], history: list[list[Any]], hold: float) -> None:
        """After all: what fires has fired once, after having held, and for no longer."""
        for rule in [*STEADY, victim.LAST]:
            fired = [row for row in history if row[0] == rule and row[2] == FIRING]
            assert len(fired) == (standings[rule][0] == FIRING)
            if fired:
                told = victim.HOLDS.get(rule, hold)
                assert told <= standings[rule][1] < told + 1
                assert self.seen[rule] >= told


@pytest.mark.parametrize(
    "kills", [20, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(180)])]
)
def test_killed_again_and_again(tmp_path: Path, kills: int) -> None:
    """Killed at random moments and started again until the alarm fires: pending clocks never
    exceed the time for which FAIL was seen and lose less than a write interval; every alarm fires
    once; the history has each transition once; SQLite finds no damage.
    """
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    sys.stdout.write(f"seed {seed}\n")
    witness, hold, second = Witness(), 20.0 * kills, 0
    with nursery(tmp_path) as lives:
        for _ in range(kills):
            life = lives.life(rng.uniform(0.0, 0.12), first=second, hold=hold, seed=rng.random())
            witness.hear(life)
            second = max([second, *life.will]) + rng.choice([1, 2, 1_000])
        end = lives.life(None, first=second, hold=hold, seed=rng.random())
        witness.hear(end)
        after = lives.life(None, first=end.will[-1] + 1, hold=hold, seed=rng.random())
    witness.hear(after)
    assert after.opened is not None
    _, standings, history, _ = after.opened
    witness.judge(standings, history, hold)
    assert standings[victim.LAST][0] == FIRING
    flaps = [row[2] for row in history if row[0] == "Flaps" and row[2] != PENDING]
    assert flaps == (["firing", "resolved"] * len(flaps))[: len(flaps)]
    median, most = statistics.median(witness.lost), max(witness.lost)
    sys.stdout.write(f"{kills} kills; lost median {median:.3f} s, most {most:.3f} s\n")
    assert median < 0.1
    assert most < 2.0
