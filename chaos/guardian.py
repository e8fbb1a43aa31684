"""The process that heals when the injector cannot: killed, hung, or too late.

It speaks in lines: ``watch RUN`` is answered by ``watching RUN`` once the plan is found in the
journal, and only then may be injected; ``ended RUN`` lets go of it. It imports little, on purpose.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.entries import By, Planned
from chaos.fields import process_of
from chaos.healing import UNKEPT, heal_run
from chaos.journal import Journal
from chaos.processes import Process
from chaos.undo import World
from chaos.unended import outstanding
from chaos.vocabulary import Ending, Healing

_LINE = 4_096  # bytes; a run's id is shorter
_TRIES = 3


@dataclass(slots=True)
class Watch:
    """What is watched for one injector, ``session``; ``again`` seconds lie between two looks at a
    run that is overdue, and between two tries at the end.
    """

    journal: Journal
    session: Process
    world: World = field(default_factory=World)
    again: float = 1.0
    _runs: dict[str, Planned] = field(default_factory=dict)
    _endings: dict[str, Ending] = field(default_factory=dict)
    _next: float = 0.0
    _partial: bytes = b""

    def serve(self, orders: int, answers: int, leave: int) -> list[str]:
        """Until ``orders`` ends, the injector does, or ``leave`` becomes readable; then heals all
        that is left of the session, and returns what could not be, a sentence each.
        """
        poll = select.poll()
        poll.register(orders, select.POLLIN)
        poll.register(leave, select.POLLIN)
        with self.session.held(self.world.proc) as injector:
            if injector is None:
                return self.depart()
            poll.register(injector, select.POLLIN)
            _say(answers, "ready")
            while True:
                ready = {descriptor for descriptor, _ in poll.poll(self._timeout())}
                over = bool(ready & {injector, leave})
                if orders in ready:  # heard to its end: the last word may be that a run is over
                    over |= not self._hear(orders, answers)
                if over:
                    return self.depart()
                self._overdue()

    def _timeout(self) -> float | None:
        # poll(2) does not count the time in which the machine sleeps, hence no longer than that
        return self.again * 1_000 if self._runs else None

    def _hear(self, orders: int, answers: int) -> bool:
        data = os.read(orders, _LINE)
        *lines, partial = (self._partial + data).split(b"\n")
        self._partial = partial[:_LINE]
        for line in lines:
            verb, _, run = line.decode(errors="replace").partition(" ")
            if verb == "watch":
                _say(answers, self._watch(run))
            elif verb == "ended":
                self._runs.pop(run, None)
                self._endings.pop(run, None)
        return bool(data)

    def _watch(self, run: str) -> str:
        try:
            found = [planned for planned in self._outstanding() if planned.run == run]
        except (*UNKEPT, OSError) as error:
            return f"refused {run} {error}".replace("\n", " ")
        if not found:
            return f"refused {run} the journal has no such plan of this injector's"
        self._runs[run] = found[0]
        return f"watching {run}"

    def _outstanding(self) -> list[Planned]:
        entries = self.journal.read().entries
        return [planned for planned in outstanding(entries) if planned.plan.session == self.session]

    def _overdue(self) -> None:
        now = self.journal.clocks.boottime()
        if now < self._next:
            return
        late = [planned for planned in self._runs.values() if planned.plan.heal_by <= now]
        for planned in late:  # also when it was healed: a hung injector may come back and inject
            self._heal(planned)
        if late:
            self._next = self.journal.clocks.boottime() + self.again

    def _heal(self, planned: Planned) -> Healing:
        before = self._endings.get(planned.run)
        healing = heal_run(self.journal, planned, By.GUARDIAN, self.world, before)
        self._endings[planned.run] = healing.ending
        return healing

    def depart(self) -> list[str]:
        """Heals what the session left, the last first; tries three times."""
        left = dict(self._runs)
        try:
            left |= {planned.run: planned for planned in self._outstanding()}
        except (*UNKEPT, OSError) as error:
            sys.stderr.write(f"guardian: {error}; it heals what it was told to watch\n")
        failed = dict[str, str]()
        for attempt in range(_TRIES):
            if attempt:
                self.world.pause(self.again)
            for run, planned in reversed(list(left.items())):
                healing = self._heal(planned)
                failed[run] = f"run {run}: {healing.text}"
                if healing.ending is not Ending.FAILED:
                    del left[run], failed[run]
            if not left:
                break
        return list(failed.values())


def _say(answers: int, line: str) -> None:
    try:
        os.write(answers, f"{line}\n".encode())
    except (BrokenPipeError, BlockingIOError):
        return  # it is gone, which is seen elsewhere, or does not listen and will miss it


def main(words: Sequence[str]) -> int:
    """``--journal FOLDER --session JSON``: 0 when nothing is left, 1 when something is."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    session = process_of(json.loads(options["--session"]), "--session")
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are meant for its injector
    leave, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGTERM, lambda *_: None)  # the wake-up tells
    os.set_blocking(1, False)
    left = Watch(Journal(Path(options["--journal"])), session).serve(0, 1, leave)
    for text in left:
        sys.stderr.write(f"guardian: {text}\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
