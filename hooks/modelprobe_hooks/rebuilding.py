"""A bounded number of attempts, in bounded time, at a new CUDA context.

The calling thread makes them, since a context is current in one thread; a timer watches over it,
since an attempt may hang in the driver. A context that keeps dying is not rebuilt for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock, Timer

from modelprobe_hooks.leaving import LOG

BACKOFF = 0.05  # seconds before the second attempt, doubled each time


class Failed(Exception):
    """There is no valid context, and why; `code` is the last look's CUresult, None without one."""

    def __init__(self, why: str, code: int | None = None) -> None:
        super().__init__(why)
        self.code = code


class Rebuilder:
    """`make` makes one attempt. Up to `attempts` within `seconds`; `limit` is (count, seconds)."""

    def __init__(
        self,
        make: Callable[[], None] | None,
        attempts: int,
        seconds: float,
        limit: tuple[int, float],
        clock: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        if attempts < 1 or seconds <= 0 or limit[0] < 1 or limit[1] <= 0:
            raise ValueError("attempts, seconds and both parts of limit have to be above 0")
        self._make, self._attempts, self._seconds = make, attempts, seconds
        self._limit, self._clock, self._pause = limit, clock, pause
        self._times: deque[float] = deque()
        self.made = self.failed = 0  # contexts and attempts, over all runs

    def run(self, look: Callable[[], int], late: Callable[[], None]) -> None:
        """Return with a valid context; raises `Failed`.

        `late` is called from another thread when the time is over and an attempt has not returned.
        Should it return after all, this raises `Failed` then.
        """
        if self._make is None:
            raise Failed("no way to rebuild it was given")
        self._admit()
        first = Lock()  # who takes it decides: the timer, or the end of the attempts

        def over() -> None:
            if first.acquire(blocking=False):
                late()

        timer = Timer(self._seconds, over)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError as none:
            raise Failed(f"nothing could watch over a rebuild: {none}") from None
        try:
            code = self._attempt(self._make, look)
        finally:
            timer.cancel()
        if not first.acquire(blocking=False):
            raise Failed(f"a rebuild took longer than {self._seconds:g} s", code)
        if code:
            raise Failed(f"{self._attempts} attempts or {self._seconds:g} s did not help", code)
        self._times.append(self._clock())
        self.made += 1

    def _admit(self) -> None:
        count, seconds = self._limit
        while self._times and self._times[0] <= self._clock() - seconds:
            self._times.popleft()
        if len(self._times) >= count:
            raise Failed(f"it was rebuilt {count} times in {seconds:g} s already")

    def _attempt(self, make: Callable[[], None], look: Callable[[], int]) -> int:
        """The code of the last look: 0 as soon as an attempt has helped."""
        until, code = self._clock() + self._seconds, look()
        for number in range(self._attempts):
            if number:
                self._pause(max(0.0, min(BACKOFF * 2 ** (number - 1), until - self._clock())))
            if self._clock() >= until:
                break
            try:
                make()
            except Exception:  # noqa: BLE001  the caller's code: whatever it raises did not help
                LOG.warning("attempt %d to rebuild the context failed", number + 1, exc_info=True)
                self.failed += 1
                continue
            code = look()
            if not code:
                return 0
            self.failed += 1
        return code or look() or -1
