"""The parent's end of the child: starts it, listens without waiting, and lets go of it at once."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sidecar.collectors.nvml.protocol import Message, Options, decode

_LIBRARY = "libnvidia-ml.so.1"
_GRACE_SECONDS = 2.0
_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
)


def library_is_there(environment: Mapping[str, str]) -> bool:
    """True when the loader would find the driver's library, without loading it."""
    folders = [*environment.get("LD_LIBRARY_PATH", "").split(":"), *_FOLDERS]
    if any(part and (Path(part) / _LIBRARY).exists() for part in folders):
        return True
    try:
        return _LIBRARY.encode() in Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return False


def child_environment(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The parent's environment, with the folder (``.`` for none) first among the loader's."""
    found = dict(environment)
    if folder != Path():
        rest = found.get("LD_LIBRARY_PATH")
        found["LD_LIBRARY_PATH"] = f"{folder}:{rest}" if rest else str(folder)
    return found


class Child:
    """One child process. ``messages`` and ``wait`` belong to one thread, ``let_go`` to any."""

    def __init__(
        self,
        options: Options,
        environment: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sidecar.collectors.nvml.child", options.dump()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            bufsize=0,
        )
        self._lock = threading.Lock()
        self._gone = False
        self.reaped = threading.Event()  # nothing of it is left
        self._partial = b""
        self.ended = False  # its end of the pipe is closed
        self.heard_at = clock()
        assert self._process.stdout is not None  # noqa: S101 # narrows what Popen was asked for
        self._out = self._process.stdout
        os.set_blocking(self._out.fileno(), False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self, seconds: float) -> list[Message]:
        """The next messages; an empty list when there is none in time, or no more ever."""
        deadline = self._clock() + seconds
        while not self.ended and not self._gone:
            found = self.messages()
            left = deadline - self._clock()
            if found or left <= 0:
                return found
            select.select([self._out], [], [], min(left, 0.2))  # so that let_go is seen soon
        return []

    def messages(self) -> list[Message]:
        """What it has said since the last call; ValueError when that is not ours."""
        data = self._partial + self._read()
        *lines, self._partial = data.split(b"\n")
        return [decode(line) for line in lines]

    def _read(self) -> bytes:
        parts = []
        with self._lock:
            while not self._gone:
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
        if self._process.stdin is not None:
            self._process.stdin.close()
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
