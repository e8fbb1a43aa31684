"""The perf events on the threads of one watched process.

Threads begun later inherit theirs, so a process needs attaching once: listings are repeated until
one holds nothing new. A descriptor stays open after its thread has ended, because closing it would
end the events that threads begun by that one inherited.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from sidecar.signals import Absence, NoData

MAX_THREADS = 4_096  # of one process
_LISTINGS = 8  # each finds only threads begun during the one before
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)

Open = Callable[[int, int], int]  # perf_software.on_switches


class Threads:
    """Attaches ``program`` to a process bit by bit; ``failure`` says what kept it from that, and
    ``left_out`` how many threads are beyond a limit.
    """

    def __init__(self, pid: int, program: int, open_event: Open, proc: Path) -> None:
        self._folder = proc / str(pid) / "task"
        self._program, self._open = program, open_event
        self._seen: set[int] = set()
        self._waiting: list[int] = []
        self._fds: list[int] = []
        self._old: list[int] = []
        self._listings = 0
        self.done = False
        self.left_out = 0
        self.failure: NoData | None = None

    @property
    def attached(self) -> int:
        """Threads with an event of their own, also those that have ended since."""
        return len(self._fds)

    def step(self, deadline: float, clock: Callable[[], float]) -> None:
        """Goes on attaching until it is done or ``clock`` passes the deadline."""
        while not self.done and clock() < deadline:
            if self._waiting:
                self._attach(self._waiting.pop())
            else:
                self._list()
        while self.done and self._old and clock() < deadline:
            os.close(self._old.pop())

    def again(self) -> None:
        """Attaches anew: after an exec into a program of other rights the kernel ends the events
        of those who watch. The old ones stay until then, since double ones count once.
        """
        self._old += self._fds
        self._fds, self._waiting, self._seen = [], [], set()
        self._listings, self.left_out = 0, 0
        self.done, self.failure = False, None

    def let_go(self, deadline: float, clock: Callable[[], float]) -> bool:
        """Goes on ending events until none is left, which is True, or the deadline has passed:
        closing thousands takes a tenth of a second.
        """
        self.done = True
        while (self._old or self._fds) and clock() < deadline:
            os.close((self._old or self._fds).pop())
        return not self._old and not self._fds

    def close(self) -> None:
        """Ends all events of the process."""
        self.let_go(1.0, lambda: 0.0)

    def _list(self) -> None:
        try:
            found = {int(name) for name in os.listdir(self._folder)}
        except PermissionError:
            self._fail(Absence.NO_PERMISSION, f"{self._folder} may not be read: /proc hides it")
            return
        except (FileNotFoundError, ProcessLookupError):
            found = set()  # it has ended
        except OSError as error:
            if error.errno in _FULL:
                self._refused(error)
            else:
                self._fail(Absence.ERROR, f"{self._folder}: {error.strerror}")
            return
        self._waiting = sorted(found - self._seen, reverse=True)
        self._listings += 1
        self.done = not self._waiting or self._listings > _LISTINGS

    def _attach(self, tid: int) -> None:
        if len(self._seen) >= MAX_THREADS:
            self._leave_out()
            return
        self._seen.add(tid)
        try:
            self._fds.append(self._open(tid, self._program))
        except OSError as error:
            self._refused(error)

    def _leave_out(self) -> None:
        self.left_out += 1 + len(self._waiting)
        self._waiting, self.done = [], True

    def _refused(self, error: OSError) -> None:
        if error.errno == errno.ESRCH:
            return  # the thread has ended
        if error.errno in _FULL and self._fds:
            self._leave_out()
        elif error.errno in (errno.EACCES, errno.EPERM):
            self._fail(Absence.NO_PERMISSION, f"{error.strerror}: give probed CAP_PERFMON")
        elif error.errno in _FULL:
            self._fail(
                Absence.TOO_LARGE, f"{error.strerror}: raise probed's limit of open files (nofile)"
            )
        else:
            self._fail(Absence.UNSUPPORTED, f"{error.strerror}: this kernel has no such event")

    def _fail(self, absence: Absence, reason: str) -> None:
        self.failure, self.done, self._waiting = NoData(absence, reason), True, []
