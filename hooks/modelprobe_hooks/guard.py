"""Looks at the CUDA context before each round of work; rebuilds what can be, leaves otherwise.

    guard = Guard(rebuild=reopen)
    while True:
        guard.check()
        step()

`modelprobe_hooks.switch` makes one only where MODELPROBE_HOOKS_GUARD=1 is set.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep

from modelprobe_hooks.context import Driver, State, judge, loaded
from modelprobe_hooks.leaving import EXIT, LOG, ContextLost, Leave
from modelprobe_hooks.rebuilding import Failed, Rebuilder

__all__ = ["EXIT", "ContextLost", "Counts", "Guard", "Leave", "State"]
SEARCH = 1.0  # seconds between two searches for a driver that is not loaded
RAISED = -1  # stands among the codes told for a `last_error` that raised


@dataclass(frozen=True)
class Counts:
    """What a guard has done so far in this process."""

    adopted: int = 0  # contexts made current again in a thread; nothing was lost
    rebuilt: int = 0  # new contexts
    failed: int = 0  # attempts that raised, or after which the context was no better
    other: int = 0  # checks that found an error which says nothing of the context


class Guard:
    """One for a process and all its threads.

    `rebuild` makes a new context with all that was in it, current in the calling thread; None:
    that cannot be done. `adopt` makes the existing context current in the calling thread. Up to
    `attempts` within `seconds`, and no more rebuilds than `limit` = (count, seconds). `last_error`
    is asked first at each check, for a CUresult of the caller's own. `leave` ends the process.
    """

    def __init__(
        self,
        rebuild: Callable[[], None] | None = None,
        attempts: int = 3,
        seconds: float = 10.0,
        leave: Callable[[ContextLost], None] | None = None,
        *,
        adopt: Callable[[], None] | None = None,
        limit: tuple[int, float] = (3, 60.0),
        last_error: Callable[[], int | None] | None = None,
        find: Callable[[], Driver | None] = loaded,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        self._rebuilding = (rebuild, attempts, seconds, limit, clock, pause)
        self._adopt, self._last_error, self._seconds = adopt, last_error, seconds
        self._leave, self._find, self._clock = leave or Leave(), find, clock
        self._driver: Driver | None = None
        self._search_at = clock()
        self._seen = threading.local()  # `valid` in threads that have had a valid context
        self._told: set[int] = set()  # codes, so that a log has each once
        self._begin()

    def _begin(self) -> None:
        """As if nothing had happened; also for a forked child, whose locks may be held for ever."""
        self._pid = os.getpid()
        self._lost: ContextLost | None = None
        self._turn, self._gate = threading.Lock(), threading.Lock()
        self._worker: int | None = None  # the thread that adopts or rebuilds
        self._rebuilder = Rebuilder(*self._rebuilding)
        self._adopted = self._other = 0

    def check(self) -> None:
        """Return when work may go on; raises `ContextLost`, and nothing else of its own.

        What `rebuild` raises counts as a failed attempt, but KeyboardInterrupt and SystemExit pass.
        """
        driver = self._driver or self._search()
        if driver is None:
            return
        code = (self._asked() if self._last_error is not None else 0) or driver.look()
        if code or self._lost is not None:
            self._consider(driver, code)
        else:
            self._seen.valid = True

    def look(self) -> State:
        """What is so now in this thread, without doing anything about it."""
        driver = self._driver or self._search()
        return State.PASSIVE if driver is None else judge(driver.look())

    @property
    def counts(self) -> Counts:
        """What it has done so far."""
        rebuilder = self._rebuilder
        return Counts(self._adopted, rebuilder.made, rebuilder.failed, self._other)

    def _search(self) -> Driver | None:
        now = self._clock()
        if now >= self._search_at:
            self._search_at = now + SEARCH
            self._driver = self._find()
        return self._driver

    def _asked(self) -> int:
        try:
            return (self._last_error() if self._last_error else 0) or 0
        except Exception:  # noqa: BLE001  torch raises here what the driver's own code says next
            self._tell(RAISED, "last_error raised: the driver is asked all the same")
            return 0

    def _consider(self, driver: Driver, code: int) -> None:
        """Act on a code, one thread at a time."""
        if os.getpid() != self._pid:
            self._begin()
        state = judge(code)
        quiet = state in (State.PASSIVE, State.CAPTURING) and self._lost is None
        if quiet or self._worker == threading.get_ident():
            return
        if self._lost is None and self._turn.acquire(timeout=self._seconds + 1.0):
            try:
                self._act(driver, state, code)
            finally:
                self._worker = None
                self._turn.release()
        else:
            raise self._lose(state, code, "another thread's rebuild does not end")

    def _act(self, driver: Driver, state: State, code: int) -> None:
        if state in (State.UNBOUND, State.DESTROYED):  # unless another thread has just rebuilt it
            code = driver.look()
            state = judge(code)
        if self._lost is not None:
            raise self._lost
        if state is State.STICKY:
            raise self._lose(state, code, "an error that stays until the process ends")
        if state is State.OTHER:
            self._other += 1
            self._tell(code, f"CUresult {code} says nothing of the context: work goes on")
        elif state is State.UNBOUND and self._bound(driver):
            self._seen.valid = True
        elif state is State.DESTROYED or (state is State.UNBOUND and self._had_one()):
            self._rebuild(driver, state, code)

    def _had_one(self) -> bool:
        """Whether this thread ever had a valid context: one that had none is not ours to judge."""
        return getattr(self._seen, "valid", False)

    def _bound(self, driver: Driver) -> bool:
        """Whether the existing context could be made current again."""
        if self._adopt is None:
            return False
        self._worker = threading.get_ident()
        try:
            self._adopt()
        except Exception:  # noqa: BLE001  the caller's code; a rebuild may still help
            LOG.warning("adopt failed", exc_info=True)
        found = driver.look() == 0
        self._adopted += found
        return found

    def _rebuild(self, driver: Driver, state: State, code: int) -> None:
        self._worker = threading.get_ident()

        def late() -> None:
            self._lose(state, code, f"a rebuild did not end within {self._seconds:g} s")

        try:
            self._rebuilder.run(driver.look, late)
        except Failed as failed:
            last = code if failed.code is None else failed.code
            raise self._lose(judge(last), last, str(failed)) from failed
        self._seen.valid = True
        LOG.warning("the CUDA context was %s (CUresult %d) and is rebuilt", state.value, code)

    def _lose(self, state: State, code: int, why: str) -> ContextLost:
        """Leave, once; the exception to raise, always the first one."""
        with self._gate:
            if self._lost is not None:
                return self._lost
            lost = self._lost = ContextLost(state, code, why)
        try:
            self._leave(lost)
        except Exception:  # noqa: BLE001  the caller's code; the process has to go nevertheless
            LOG.exception("leave failed; leaving in the default way")
            Leave()(lost)
        return lost

    def _tell(self, code: int, text: str) -> None:
        if code not in self._told:
            self._told.add(code)
            LOG.warning(text, exc_info=code == RAISED)
