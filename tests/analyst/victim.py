"""An analyst in a process that its parent kills: slots as fast as the file takes them.

``python -m tests.analyst.victim DATABASE RECORD`` forks one such process for each line of standard
input, prints its number, and ``dead`` once it has ended. Each writes to RECORD, a JSON line at a
time, what it found in the file and which slots the file has taken since.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from sidecar.alarms import schema
from sidecar.analyst import rows
from sidecar.analyst.calendar import HOUR, SECONDS, number
from sidecar.analyst.memory import KEPT_SLOTS
from sidecar.analyst.pages import Codec
from sidecar.record import Record
from tests.analyst.made import NOON, A, B, Line, record, slot

FIRST = number(NOON)
AGAIN = 3  # slots that every life hands over a second time


def records(one: int) -> dict[Any, Record]:
    """What there was in a slot, by its number alone."""
    rng = random.Random(one)
    return {
        name: record(*(rng.uniform(0.01, 3.0) for _ in range(rng.randrange(1, 12))))
        for name in ((A, B) if one % 3 else (A,))
    }


def found(path: Path) -> dict[str, Any]:
    """What is in the file, read by another connection: requests by series, hour and slot."""
    connection, codec = schema.connect(path), Codec()
    names = {identity: name.server for name, identity in rows.series(connection).items()}
    told: dict[str, Any] = {"integrity": connection.execute("PRAGMA integrity_check").fetchone()[0]}
    for table in (rows.SLOTS, rows.HOURS):
        told[table] = {}
        for key, used, _, data in rows.every(connection, table):
            at, identity = key >> rows.SHIFT, key & (1 << rows.SHIFT) - 1
            page = told[table].setdefault(str(at - FIRST), {})
            page[names.get(identity, "")] = [used, hashed(codec.unpack(data))]
    connection.close()
    return told


def hashed(one: Record) -> list[float]:
    """Enough to tell two records apart."""
    cells = sum(index * index * many for index, many in one.hist.filled())
    return [one.hist.total, cells, one.blocks, round(sum(one.squares), 3)]


def live(path: Path, tell: Any, life: dict[str, Any]) -> None:
    """Hands over slots, from a few before ``first`` on, until it is killed or has done enough."""
    line = Line(path, at=(FIRST + life["first"]) * SECONDS)
    tell(["opened", found(path), line.slots.status().state])
    start = max(0, life["first"] - AGAIN)
    for one in range(start, life["first"] + life["most"]):
        line.at = (FIRST + one + 1) * SECONDS
        line.slots.put(slot((FIRST + one) * SECONDS, records=records(FIRST + one)))
        if not line.slots.status().unsaved:
            tell(["kept", one])
    line.slots.close()
    tell(["opened", found(path), line.slots.status().state])


def main(path: Path, record_path: Path) -> None:
    """Gives life, one at a time."""
    log = os.open(record_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            live(
                path,
                lambda entry: os.write(log, json.dumps(entry).encode() + b"\n"),
                json.loads(line),
            )
            os._exit(0)
        _tell(str(child))
        os.waitpid(child, 0)
        _tell("dead")


def _tell(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    assert HOUR < KEPT_SLOTS
    main(Path(sys.argv[1]), Path(sys.argv[2]))
