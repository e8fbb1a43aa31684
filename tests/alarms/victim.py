"""A sidecar's alarms in a process that its parent kills: a simulated second every few milliseconds.

``python -m tests.alarms.victim DATABASE RECORD`` forks one such process for each line of standard
input, prints its number, and ``dead`` once it has ended. What the process does it writes to the
file RECORD, one JSON line at a time, each before the next thing happens.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sidecar.alarms import history, schema
from sidecar.alarms.book import Book
from sidecar.alarms.standing import Standing, Transition
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from sidecar.alarms.writer import Writer
from sidecar.verdicts import Outcome, Verdict
from tests.alarms.samples import FAIL, NOON, PASS, UNKNOWN

REST_SECONDS = 0.02
DISK_SECONDS = 0.01
HOLDS = {"At40": 40.0, "At400": 400.0, "At1500": 1_500.0, "Gappy": 1e9, "Flaps": 10.0}
LAST = "Last"  # its hold is told: it fires after the killing is over


class SlowStore(Store):
    """On a disk that takes its time, so that many die with a write under way."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def write(self, change: Change) -> StoreState:
        """The write, later."""
        time.sleep(self._rng.uniform(0.0, DISK_SECONDS))
        return super().write(change)


def outcome(rule: str, second: int) -> Outcome:
    """What there is to see of a rule in a simulated second."""
    if rule == "Flaps":
        return FAIL if second % 70 < 40 else PASS
    if rule == "Gappy":
        return UNKNOWN if second % 7 == 0 else FAIL
    return FAIL


def verdicts(second: int, last_hold: float) -> list[Verdict]:
    """All verdicts of one simulated second."""
    holds = {**HOLDS, LAST: last_hold}
    return [
        Verdict(
            rule, (("engine", "r0"),), outcome(rule, second), hold_seconds=hold, clear_seconds=9
        )
        for rule, hold in holds.items()
    ]


def live(path: Path, record: Callable[[Any], None], life: dict[str, Any]) -> None:
    """Runs from simulated second ``first`` on, until it is killed or the last alarm fires."""
    rng = random.Random(life["seed"])
    store = SlowStore(random.Random(rng.random()))
    state = store.open(path)
    record(["opened", state, _standings(store.restored), _history(path), _integrity(path)])
    book, base = Book(store.restored), rng.uniform(0.0, 1e6)
    writer = Writer(store, rest_seconds=REST_SECONDS)
    writer.start()
    for second in itertools.count(life["first"]):
        record(["will", second])
        clock = base + second - life["first"]
        moved = book.update(verdicts(second, life["hold"]), NOON + second, clock)
        writer.exchange(book.standings(), moved)
        durable, now = writer.status().durable, time.monotonic()
        record(["did", second, durable, now, _standings(book.standings()), [*map(_row, moved)]])
        if life["mercy"] and any(a.rule == LAST and a.fired for a in book.alarms()):
            break
        if not life["mercy"]:
            time.sleep(rng.uniform(0.002, 0.005))
    writer.stop(20.0)


def _standings(standings: tuple[Standing, ...]) -> dict[str, Any]:
    return {s.alarm.rule: [s.alarm.state, s.alarm.held_seconds, s.firings] for s in standings}


def _row(transition: Transition) -> list[Any]:
    alarm = transition.alarm
    return [alarm.rule, transition.before, alarm.state, transition.at - NOON, transition.firings]


def _history(path: Path) -> list[list[Any]]:
    return [_row(transition) for transition in reversed(history.latest(path, 100_000))]


def _integrity(path: Path) -> str:
    with closing(schema.connect(path)) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


def main(path: Path, record: Path) -> None:
    """Gives life, one at a time."""
    log = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            life = json.loads(line)
            live(path, lambda entry: _append(log, entry), life)
            os._exit(0)
        _tell(str(child))
        os.waitpid(child, 0)
        _tell("dead")


def _append(log: int, entry: Any) -> None:
    os.write(log, json.dumps(entry).encode() + b"\n")


def _tell(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
