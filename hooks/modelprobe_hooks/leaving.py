"""The orderly end of a process whose CUDA context cannot be brought back.

Only a new process can use the device again, so the old one stops taking work, flushes what it
logged and goes with a code of its own, which tells this end from others.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from threading import Thread
from time import sleep

from modelprobe_hooks.context import State

EXIT = 75  # EX_TEMPFAIL of sysexits.h: try again
LOG = logging.getLogger("modelprobe_hooks.guard")


class ContextLost(Exception):
    """The CUDA context is gone for this process, which is leaving; `code` is the CUresult."""

    def __init__(self, state: State, code: int, why: str) -> None:
        super().__init__(f"CUDA context lost ({state.value}, CUresult {code}): {why}")
        self.state, self.code, self.why = state, code, why


class Leave:
    """Ends the process: `on_leave`, logs flushed, SIGTERM to itself, exit `code` after `grace`.

    `grace` (seconds) bounds everything, `on_leave` too: after it `os._exit(code)`, which runs no
    handler and flushes nothing more. A process that drains on SIGTERM ends with its own code if it
    is faster. Without a handler SIGTERM would only hide the code, so it is left out then.
    """

    def __init__(
        self,
        code: int = EXIT,
        grace: float = 5.0,
        on_leave: Callable[[ContextLost], None] | None = None,
    ) -> None:
        if not 1 <= code <= 125:
            raise ValueError(f"code: {code} is no exit code of one's own; use 1 to 125")
        if grace < 0:
            raise ValueError(f"grace: {grace} is negative; use seconds from 0 on")
        self._code, self._grace, self._on_leave = code, grace, on_leave

    def __call__(self, lost: ContextLost) -> None:
        """Begin to leave; returns only where a SIGTERM handler has still to do its part."""
        try:
            Thread(target=self._end, name="modelprobe-leave", daemon=True).start()
        except RuntimeError:  # no thread to be had: then there is no time to give either
            os._exit(self._code)
        LOG.critical("%s; leaving with exit code %d", lost, self._code)
        if self._on_leave is not None:
            try:
                self._on_leave(lost)
            except Exception:  # the caller's code: the process leaves whatever it raises
                LOG.exception("on_leave failed")
        flush()
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            os._exit(self._code)
        os.kill(os.getpid(), signal.SIGTERM)

    def _end(self) -> None:
        sleep(self._grace)
        os._exit(self._code)


def flush() -> None:
    """Write out what logging's handlers and the standard streams hold."""
    named = [one for one in logging.root.manager.loggerDict.values() if hasattr(one, "handlers")]
    found = [handler for one in (logging.root, *named) for handler in one.handlers]
    for stream in (*found, sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, full, or none (pythonw)
            continue
