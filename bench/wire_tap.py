"""The tap as the wire's bench puts it on and takes it off: ``probed`` and a client of its frames.

The real process, by the real socket. Taken off means ended: no program is loaded and no packet
socket is open, as on a machine that has never seen it.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from sidecar.probed import frames
from sidecar.probed.frames import Counters, FrameType, Status, Watch
from sidecar.signals import End, Leg, RequestTiming

_START, _TELL, _STOP = 15.0, 5.0, 5.0  # seconds
_PROBE = "wire"  # others have statuses of their own
_NOBODYS = 9  # a port on which nothing happens


class TapFailed(Exception):
    """The tap was not there, or not in time; the text says which and what it said itself."""


class Tap:
    """On one port inside ``with``. Raises TapFailed where it cannot be attached."""

    def __init__(self, port: int) -> None:
        self._ports = {port: Leg.DOWNSTREAM}
        self._folder = tempfile.TemporaryDirectory()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        self._ended: list[RequestTiming] = []
        self._statuses: list[Status] = []

    def __enter__(self) -> Self:
        path = Path(self._folder.name) / "probed.sock"
        command = [sys.executable, "-P", "-m", "sidecar.probed", "--loader", "prebuilt"]
        command += ["--socket", str(path), "--exit-on-stdin-eof"]
        self._probed = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            self._reach(path)
            self._socket.send(frames.pack_watch(Watch(self._ports)))
            self._read(self._attached, _START, "attached")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _reach(self, path: Path) -> None:
        deadline = time.monotonic() + _START
        while True:
            try:
                self._socket.connect(str(path))
            except (FileNotFoundError, ConnectionRefusedError) as error:
                if self._probed.poll() is not None or time.monotonic() > deadline:
                    raise TapFailed(f"probed gave no socket; it said: {self._said()}") from error
                time.sleep(0.005)
            else:
                return

    def _attached(self) -> bool:
        if self._statuses and self._statuses[-1].absence and self._statuses[-1].reason:
            raise TapFailed(f"the tap cannot be attached: {self._statuses[-1].reason}")
        return bool(self._statuses) and not self._statuses[-1].absence

    def _read(self, enough: Callable[[], bool], seconds: float, what: str) -> None:
        """Takes frames in until it is enough; raises TapFailed when that does not come."""
        deadline = time.monotonic() + seconds
        while not enough():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                raise TapFailed(f"probed has not {what} within {seconds:.0f} s")
            self._frame()

    def _frame(self) -> None:
        frame = self._socket.recv(frames.FRAME_BYTES + 1)
        if not frame:
            raise TapFailed(f"probed has ended; it said: {self._said()}")
        kind = frames.frame_type(frame)
        if kind is FrameType.STATUS:
            status = frames.unpack_status(frame)
            self._statuses += [status] if status.probe == _PROBE else []
        elif kind is FrameType.REQUEST:
            self._ended.append(frames.unpack_request(frame, self._ports, 0.0))

    def _said(self) -> str:
        self._probed.kill()
        assert self._probed.stderr
        return self._probed.stderr.read().strip() or "nothing"

    def take(self, requests: int) -> list[RequestTiming]:
        """What ended since the last call: returns with as many ``requests``, or with fewer when
        no more have come within some seconds.
        """

        def enough() -> bool:
            return sum(one.end is not End.OPEN for one in self._ended) >= requests

        try:
            self._read(enough, _TELL, "told of all requests")
        except TapFailed:
            if self._probed.poll() is not None:
                raise
        found, self._ended = self._ended, []
        return [one for one in found if one.end is not End.OPEN]

    def counters(self) -> Counters:
        """The kernel's counts as of now: another port to watch makes ``probed`` tell at once."""
        while select.select([self._socket], [], [], 0)[0]:  # what it told of before is old
            self._frame()
        (port,) = self._ports
        heard = len(self._statuses)
        for ports in ({port: Leg.DOWNSTREAM, _NOBODYS: Leg.DOWNSTREAM}, self._ports):
            self._socket.send(frames.pack_watch(Watch(ports)))
        self._read(lambda: len(self._statuses) >= heard + 2, _TELL, "told its counters")
        return self._statuses[-1].counters

    def close(self) -> None:
        """Returns when the process has ended, and with it the program and the packet socket."""
        self._socket.close()
        assert self._probed.stdin
        assert self._probed.stderr
        self._probed.stdin.close()
        try:
            self._probed.wait(_STOP)
        except subprocess.TimeoutExpired:
            self._probed.kill()
            self._probed.wait()
        self._probed.stderr.close()
        self._folder.cleanup()
