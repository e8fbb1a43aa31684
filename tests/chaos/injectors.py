"""Injectors in processes of their own, taken to a step and killed there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.fields import process_json
from chaos.journal import Journal
from chaos.processes import Process
from tests.alarms.waiting import until
from tests.chaos.victims import sleeper

ROOT = Path(__file__).parents[2]


@dataclass
class Scene:
    """A victim, a folder, and an injector on its way."""

    journal: Journal
    victim: Process
    child: subprocess.Popen[bytes]
    injector: subprocess.Popen[str]
    guardian: Process | None = None

    def line(self) -> str:
        """The next thing that it says."""
        assert self.injector.stdout is not None
        return self.injector.stdout.readline().strip()

    def to(self, step: str) -> None:
        """Lets it go on until it stands at a step."""
        while (said := self.line()) != step:
            assert said, f"it ended before {step}"
            if said.isdigit():
                self.guardian = Process.from_pid(int(said))
            else:
                self.go_on()

    def meet_process(self) -> Process:
        """The process whose number it says next."""
        return Process.from_pid(int(self.line()))

    def meet_guardian(self) -> None:
        """It says the guardian's number next."""
        self.guardian = self.meet_process()

    def go_on(self) -> None:
        """Past the step at which it stands."""
        assert self.injector.stdin is not None
        self.injector.stdin.write("\n")
        self.injector.stdin.flush()

    def to_the_end(self) -> int:
        """Past all steps; its exit status."""
        self.go_on()
        while said := self.line():
            if not said.isdigit():
                self.go_on()
        return self.injector.wait(20)

    def kill(self) -> None:
        """SIGKILL to the injector."""
        self.injector.kill()
        self.injector.wait()

    def kill_guardian(self) -> None:
        """SIGKILL to the guardian."""
        assert self.guardian is not None
        self.guardian.signal(signal.SIGKILL)
        until(lambda: self.guardian is not None and not self.guardian.alive())

    def guardian_ends(self) -> None:
        """Waits for the guardian's own end."""
        guardian = self.guardian
        until(lambda: guardian is None or not guardian.alive())

    def runs(self) -> bool:
        """Whether the victim does."""
        return self.victim.state() in ("S", "R")


@contextmanager
def scene(
    folder: Path, victim: subprocess.Popen[bytes] | None = None, **order: Any
) -> Iterator[Scene]:
    """An injector that has just been started."""
    with sleeper() as other:
        child = victim or other
        process = Process.from_pid(child.pid)
        said = {"run": "one", "heal_in": 60.0, "halt": True, **order}
        said |= {"folder": str(folder), "victim": process_json(process)}
        injector = subprocess.Popen(
            (sys.executable, "-m", "tests.chaos.injector_program", json.dumps(said)),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        found = Scene(Journal(folder), process, child, injector)
        try:
            yield found
        finally:
            injector.kill()
            injector.communicate()
            found.guardian_ends()
