"""Run as a program: opens a store where its parent put it and says how that went, as JSON lines.

``python -m tests.alarms.inside PATH STEP...``; each step is one line of output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from tests.alarms.samples import Timeline, verdict


def main(path: Path, steps: list[str]) -> None:
    """Takes the steps: open, write, hold (until standard input ends), fill, free."""
    store = Store()
    line = Timeline()
    line.round(verdict(hold=0.0))
    ballast = path.parent / "ballast"

    def write() -> None:
        line.round(verdict(text="x" * 2_000))
        many = line.book.standings() * 200  # a page or two more each time
        store.write(Change(standings=many, transitions=tuple(line.log) * 50))

    def fill() -> None:
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 4096)
            except OSError:
                return

    actions: dict[str, Callable[[], object]] = {
        "open": lambda: store.open(path),
        "write": write,
        "fill": fill,
        "free": ballast.unlink,
        "hold": sys.stdin.read,
    }
    for step in steps:
        actions[step]()
        _say(store)


def _say(store: Store) -> None:
    restored = [standing.alarm.state for standing in store.restored]
    said = {"state": store.state, "reason": store.reason, "restored": restored}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
