"""What ``probed`` tells people on standard error: never at the price of its own life, and not more
often than a person reads.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

_STDERR = 2
_REPEAT_SECONDS = 60.0


def say(text: str) -> None:
    """One line; lost when nobody can read it, as when the terminal or the log's reader is gone.
    What does not print is written as Python escapes it: a client's words may be in it.
    """
    if sys.stderr is None:  # descriptor 2 was closed at the start: it may be anything by now
        return
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    with suppress(OSError):
        os.write(_STDERR, f"probed: {shown}\n".encode())


class Seldom:
    """A line that many may cause: told at once, then at most once a minute with a count."""

    def __init__(
        self, out: Callable[[str], None] = say, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._out, self._clock = out, clock
        self._next, self._unsaid = float("-inf"), 0

    def say(self, text: str) -> None:
        """Tells the line, or counts it."""
        now = self._clock()
        if now < self._next:
            self._unsaid += 1
            return
        more = f" (and {self._unsaid} more times)" if self._unsaid else ""
        self._out(f"{text}{more}")
        self._next, self._unsaid = now + _REPEAT_SECONDS, 0
