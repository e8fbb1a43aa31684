"""What a supervisor did, as JSON lines: the truth that a measurement of recovery is held against.

Every line has `event`, `time` (seconds of the Unix clock) and `monotonic` (CLOCK_MONOTONIC, one
for all processes of a machine). Events: started, ready, died, fault, leaked,
restarted, gave_up, stopped.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time

DIED = "died"


@dataclass(frozen=True, slots=True)
class Log:
    """One file, appended to; a line is written in one piece."""

    path: Path

    def write(self, event: str, **details: object) -> None:
        """One event, now."""
        found = {"event": event, "time": time(), "monotonic": monotonic(), **details}
        with self.path.open("a") as file:
            file.write(json.dumps(found) + "\n")

    def read(self) -> list[dict[str, object]]:
        """All events so far, oldest first."""
        if not self.path.exists():
            return []
        whole, _, _ = self.path.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def deaths(self) -> int:
        """How often it has died, under this supervisor and those before."""
        return sum(1 for found in self.read() if found["event"] == DIED)
