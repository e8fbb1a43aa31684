"""An injector of one fault, SIGSTOP, that says how far it is and can be killed there.

``python -m tests.chaos.injector_program JSON`` with ``folder``, ``victim`` (a process), ``run``,
``heal_in`` (seconds) and ``halt``: it says each step and waits for a line before it
goes on; with ``halt`` false it does not wait, and goes through one run after the other.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from chaos.entries import By, Plan, Step
from chaos.fields import process_of
from chaos.guarding import Guard, GuardianLost
from chaos.healing import blocked, heal_run, recover
from chaos.injector_lock import InjectorLock
from chaos.journal import Journal
from chaos.processes import Process
from chaos.undo.resume import Resume

STEPS = ("locked", "guarded", "planned", "watched", "stopped", "injected", "seen", "healed", "over")
TARGET = "port:8081"


class Injector:
    """Goes from step to step."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._journal = Journal(Path(order["folder"]))
        self._victim = process_of(order["victim"], "victim")
        self._me = Process.from_pid(os.getpid())
        self._order = order

    def main(self) -> None:
        """All of it; the exit status is 3 when the guardian was lost, and all was healed."""
        with InjectorLock(self._journal.folder, self._me):
            recover(self._journal)
            assert blocked(self._journal.read().entries, TARGET) is None
            self._step("locked")
            with Guard(self._journal.folder, self._me) as guard:
                self._leak(guard)
                self._say(guard.pid)
                self._step("guarded")
                for number in itertools.count():
                    self._run(guard, f"{self._order['run']}{number or ''}")
                    if self._order["halt"]:
                        break

    def _leak(self, guard: Guard) -> None:
        if self._order.get("leak"):  # a child that keeps the guardian's pipe open
            assert guard._process is not None
            assert guard._process.stdin is not None
            os.set_inheritable(guard._process.stdin.fileno(), True)
            sleep = (sys.executable, "-c", "import time; time.sleep(600)")
            child = subprocess.Popen(sleep, close_fds=False, stdout=subprocess.DEVNULL)
            self._say(child.pid)

    def _run(self, guard: Guard, run: str) -> None:
        heal_by = self._journal.clocks.boottime() + self._order["heal_in"]
        undo = Resume.of([self._victim])
        plan = Plan(run, "pause", "sigstop", TARGET, undo, self._me, heal_by)
        planned = self._journal.plan(plan)
        try:
            self._step("planned")
            guard.watch(planned)
            self._step("watched")
            self._victim.signal(signal.SIGSTOP)  # takes a moment, in which it may be killed too
            self._step("stopped")
            self._journal.note(run, Step.INJECTED, By.INJECTOR)
            self._step("injected")
            self._journal.note(run, Step.EFFECT, By.INJECTOR, str(self._victim.state()))
            self._step("seen")
        except GuardianLost:
            lost = True
        else:
            lost = not guard.alive()
        heal_run(self._journal, planned, By.INJECTOR)
        if lost:
            sys.exit(3)
        self._step("healed")
        guard.ended(run)
        self._step("over")

    def _step(self, name: str) -> None:
        if self._order["halt"]:
            self._say(name)
            sys.stdin.readline()

    def _say(self, what: object) -> None:
        sys.stdout.write(f"{what}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    Injector(json.loads(sys.argv[1])).main()
