"""kill -9 at any moment: what was taken is there, once, and hours are the sum of their slots."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sidecar.analyst import rows
from sidecar.analyst.calendar import DAY, HOUR
from sidecar.analyst.memory import KEPT_SLOTS
from sidecar.analyst.pages import total
from tests.alarms.waiting import until
from tests.analyst import victim
from tests.analyst.made import A, B

ROOT = Path(__file__).parents[2]
NAMES = {A: "a:8000", B: "b:8000"}


class Witness:
    """Holds what every life found in the file against what there ever was."""

    def __init__(self) -> None:
        self.kept = -1  # the last slot that the file is known to have
        self.checked = 0
        self._seen: dict[str, Any] = {}

    def hear(self, entry: list[Any]) -> None:
        """One line of a life."""
        if entry[0] == "kept":
            self.kept = max(self.kept, entry[1])
            return
        _, told, state = entry
        assert (told["integrity"], state) == ("ok", "ok")
        slots, hours = told[rows.SLOTS], told[rows.HOURS]
        newest = max([*map(int, slots), -1])
        assert newest >= self.kept
        for at, page in slots.items():
            self._slot(int(at), page)
        for at, page in hours.items():
            if self._seen.get(at) != page:
                self._hour(int(at), page)
        self._seen = hours
        present = {int(one) for one in slots} | {
            int(at) + index
            for at in hours
            for index in range(HOUR)
            if hours[at][""][0] >> index & 1
        }
        assert present >= set(range(max(0, newest - 8 * DAY + HOUR), newest + 1))
        self.checked += 1

    def _slot(self, at: int, page: dict[str, Any]) -> None:
        there = victim.records(victim.FIRST + at)
        expected = {NAMES[name]: [1, victim.hashed(one)] for name, one in there.items()}
        assert page == {"": [1, [0, 0, 0, 0]], **expected}

    def _hour(self, at: int, page: dict[str, Any]) -> None:
        """To the last request: none twice, none lost."""
        watched = page[""][0]
        slots = [at + index for index in range(HOUR) if watched >> index & 1]
        assert watched == 0xFFF, f"hour {at} was made without all of its slots"
        for name, word in NAMES.items():
            found = [victim.records(victim.FIRST + one).get(name) for one in slots]
            whole = victim.hashed(total(one for one in found if one is not None))
            assert page[word][1] == pytest.approx(whole, abs=0.01)


@pytest.mark.parametrize(
    "kills", [40, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
def test_killed_again_and_again(tmp_path: Path, kills: int) -> None:
    """At random moments of writing: SQLite finds no damage, every slot that was taken is there
    once though each life hands over some a second time, and every hour is the sum of its slots.
    """
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    rng, witness, read = random.Random(seed), Witness(), 0
    path, record = tmp_path / "alarms.db", tmp_path / "record"
    record.touch()
    command = [sys.executable, "-m", "tests.analyst.victim", str(path), str(record)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for number in range(kills + 1):
            mercy = number == kills
            order = {"first": witness.kept + 1, "most": 3 * KEPT_SLOTS if mercy else 10_000}
            program.stdin.write(json.dumps(order) + "\n")
            program.stdin.flush()
            child = int(program.stdout.readline())
            if not mercy:
                if rng.random() < 0.8:  # the others die while they open the file
                    until(lambda: record.stat().st_size > read)  # noqa: B023  # called at once
                time.sleep(rng.uniform(0.0, 0.06))
                os.kill(child, signal.SIGKILL)
            assert program.stdout.readline() == "dead\n"
            content = record.read_bytes()
            for line in content[read:].splitlines():
                witness.hear(json.loads(line))
            read = len(content)
        program.stdin.close()
    sys.stdout.write(f"{kills} kills, {witness.kept} slots, {witness.checked} files read\n")
    assert witness.kept > KEPT_SLOTS
    assert witness.checked > kills / 2
