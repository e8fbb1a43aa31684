"""The parent's end of a child process: starts it, listens without waiting, lets go of it at once.

The child speaks in lines on its standard output, reads its standard input, and ends when that ends.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

_GRACE_SECONDS = 2.0
_LONGEST = 2**26  # bytes of a line; a child that says more has lost its mind
_READ = 2**24  # at a time, so that one that never stops cannot hold its listener


class Child:
    """One child process, of this Python. ``lines``, ``wait`` and ``send`` belong to one thread,
    ``let_go`` to any.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            bufsize=0,
        )
        self._lock = threading.Lock()
        self._gone = False
        self.reaped = threading.Event()  # nothing of it is left
        self._partial = self._unsent = b""
        self.ended = False  # its end of the pipe is closed
        self.heard_at = clock()
        assert self._process.stdout is not None  # noqa: S101 # narrows what Popen was asked for
        self._out = self._process.stdout
        os.set_blocking(self._out.fileno(), False)
        assert self._process.stdin is not None  # noqa: S101 # likewise
        self._in = self._process.stdin
        os.set_blocking(self._in.fileno(), False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self, seconds: float) -> list[bytes]:
        """The next lines; an empty list when there is none in time, or no more ever."""
        deadline = self._clock() + seconds
        while not self.ended and not self._gone:
            found = self.lines()
            left = deadline - self._clock()
            if found or left <= 0:
                return found
            select.select([self._out], [], [], min(left, 0.2))  # so that let_go is seen soon
        return []

    def lines(self) -> list[bytes]:
        """What it has said since the last call. ValueError for a line without an end."""
        data = self._partial + self._read()
        *lines, self._partial = data.split(b"\n")
        if len(self._partial) > _LONGEST:
            self._partial = b""
            raise ValueError(f"a line of more than {_LONGEST} bytes")
        return lines

    def send(self, data: bytes = b"", seconds: float = 0.0) -> int:
        """Writes for so long at most; the number of bytes that are left for the next call."""
        self._unsent += data
        deadline = self._clock() + seconds
        while self._unsent:
            with self._lock:
                if self._gone:
                    break
                try:
                    self._unsent = self._unsent[os.write(self._in.fileno(), self._unsent) :]
                    continue
                except BlockingIOError:
                    pass
                except BrokenPipeError:
                    break  # its end is seen where it is listened to
            left = deadline - self._clock()
            if left <= 0:
                break
            select.select([], [self._in], [], min(left, 0.2))
        return len(self._unsent)

    def _read(self) -> bytes:
        parts = list[bytes]()
        with self._lock:
            while not self._gone and len(parts) < _READ // 65_536:
                try:
                    part = os.read(self._out.fileno(), 65_536)
                except BlockingIOError:
                    break
                if not part:
                    self.ended = True
                    break
                parts.append(part)
        if parts:
            self.heard_at = self._clock()
        return b"".join(parts)

    def status(self) -> int | None:
        """Exit status, negative for a signal, None while it is there."""
        try:
            return self._process.wait(0.2)  # its pipe closes a moment before it can be reaped
        except subprocess.TimeoutExpired:
            return None

    def let_go(self, kill: bool = False) -> None:
        """Ends it without waiting: first asked, by the end of its input, then killed. One that
        hangs in the kernel outlives us, and is reaped whenever it returns.
        """
        with self._lock:
            if self._gone:
                return
            self._gone = True
        if kill:
            self._process.send_signal(signal.SIGKILL)
        self._in.close()
        threading.Thread(target=self._reap, name=f"reap-{self.pid}", daemon=True).start()

    def _reap(self) -> None:
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self.reaped.set()
        with self._lock:
            self._out.close()
