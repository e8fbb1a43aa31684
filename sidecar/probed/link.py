"""The sidecar's end of the socket: connects to a ``probed``, says what to watch, reads frames, and
tells apart the ways in which it can be absent.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from pathlib import Path

from sidecar.probed import frames
from sidecar.probed.frames import FrameType, Status, Watch
from sidecar.signals import Absence, NoData

HEARTBEAT_SECONDS = 3.0  # probed sends one a second
FIRST_STATUS_SECONDS = 1.5
_POLL_SECONDS = 0.25
_MAX_FRAMES = 2_000  # a reading; what remains waits in the socket
_MAX_PROBES = 32  # whose status is kept; there are far fewer
_PEERCRED = struct.Struct("3i")


class Link:
    """One connection at a time. Every failure is a NoData that names the remedy."""

    def __init__(self, path: Path, proc: Path = Path("/proc")) -> None:
        self._path, self._proc = path, proc
        self._socket: socket.socket | None = None
        self._heard = 0.0
        self._broken: NoData | None = None
        self._silent: int | None = None  # pid of a probed that was seen stopped
        self._early: list[bytes] = []
        self.statuses: dict[str, Status] = {}
        self.bad_frames = 0

    def open(self, watch: Watch) -> None:
        """Connects, asks, and waits for the first word: a connection alone says nothing, since the
        kernel makes it for a process that is stopped.
        """
        self.close()
        if self._silent is not None and _process_state(self._proc, self._silent) in ("T", "t"):
            raise _stopped(self._silent)  # without another connection in its queue
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        made.settimeout(1.0)
        try:
            made.connect(str(self._path))
            made.send(frames.pack_watch(watch))
        except OSError as error:
            made.close()
            raise _unreachable(self._path, error) from error
        made.setblocking(False)
        self._socket = made
        self.statuses.clear()
        self._early.clear()
        self._heard = time.monotonic()
        self._await_status(made)

    def ask(self, watch: Watch) -> None:
        """Watches something else; raises NoData when it cannot be said."""
        if self._socket is None:
            raise RuntimeError("ask before open")
        try:
            self._socket.send(frames.pack_watch(watch))
        except OSError as error:
            raise _unreachable(self._path, error) from error

    def close(self) -> None:
        """Leaves probed; it goes on for others."""
        made, self._socket = self._socket, None
        self._broken = None
        if made is not None:
            made.close()

    def read(self) -> list[bytes]:
        """The frames that came, but for STATUS, which :attr:`statuses` keeps; waits up to 0.25 s.

        Raises NoData when nothing more will come, or nothing has come for too long; what came
        before is handed over first.
        """
        made = self._socket
        if made is None:
            raise RuntimeError("read before open")
        found, self._early = self._early, []
        found += self._drain(made)
        if not found:
            if self._broken is not None:
                raise self._broken
            self._check_heartbeat(made)
        return found

    def _await_status(self, made: socket.socket) -> None:
        deadline = time.monotonic() + FIRST_STATUS_SECONDS
        while not self.statuses:
            if self._broken is not None:
                raise self._broken
            if time.monotonic() > deadline:
                raise self._silence(made)
            self._early += self._drain(made)

    def _drain(self, made: socket.socket) -> list[bytes]:
        """What is there; a broken link is noted for when that is handed on."""
        waiting = select.poll()  # select() fails beyond descriptor 1023
        waiting.register(made, select.POLLIN)
        waiting.poll(_POLL_SECONDS * 1000)
        found: list[bytes] = []
        for _ in range(_MAX_FRAMES):
            try:
                frame = made.recv(frames.FRAME_BYTES + 1)
            except BlockingIOError:
                break
            except OSError as error:
                self._broken = NoData(Absence.CLOSED, f"probed broke the link: {error.strerror}")
                break
            if not frame:
                self._broken = NoData(
                    Absence.CLOSED, "probed has ended or refused us; is it running?"
                )
                break
            if self._is_news(frame):
                found.append(frame)
        return found

    def _is_news(self, frame: bytes) -> bool:
        """Keeps a STATUS, counts what is no frame of ours; True for all others."""
        try:
            if frames.frame_type(frame) is not FrameType.STATUS:
                return True
            status = frames.unpack_status(frame)
        except frames.FrameError as error:
            self.bad_frames += 1
            if "version" in str(error):
                raise NoData(Absence.PROTOCOL, f"probed: {error}") from error
            return False
        if status.probe not in self.statuses and len(self.statuses) >= _MAX_PROBES:
            self.bad_frames += 1
            return False
        self.statuses[status.probe] = status
        self._heard = time.monotonic()
        return False

    def _check_heartbeat(self, made: socket.socket) -> None:
        if time.monotonic() - self._heard >= HEARTBEAT_SECONDS:
            raise self._silence(made)
        self._silent = None

    def _silence(self, made: socket.socket) -> NoData:
        """What it means that probed says nothing."""
        credentials = made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size)
        pid: int = _PEERCRED.unpack(credentials)[0]
        if _process_state(self._proc, pid) in ("T", "t"):
            self._silent = pid
            return _stopped(pid)
        silent = time.monotonic() - self._heard
        return NoData(Absence.TIMEOUT, f"probed (pid {pid}) has said nothing for {silent:.0f} s")


def absent(status: Status) -> NoData | None:
    """Why a probe is not there; None while it works."""
    if not status.absence:
        return None
    try:
        absence = Absence(status.absence)
    except ValueError:
        absence = Absence.ERROR
    return NoData(absence, f"probed: {status.reason}")


def _stopped(pid: int) -> NoData:
    return NoData(
        Absence.STOPPED, f"probed (pid {pid}) is stopped; resume it with kill -CONT {pid}"
    )


def _process_state(proc: Path, pid: int) -> str | None:
    """The state letter of a process (proc(5), field 3 of stat), None when it cannot be read."""
    try:
        stat = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The command, field 2, may hold spaces and parentheses: look behind the last one.
    return next(iter(stat.rpartition(")")[2].split()), None)


def _unreachable(path: Path, error: OSError) -> NoData:
    if isinstance(error, FileNotFoundError):
        return NoData(
            Absence.NOT_FOUND,
            f"no socket {path}: probed is not running, or has ended; start `model-probe attach` "
            "as root (sudo), again if it ran, or `model-probe probed` with CAP_BPF and CAP_NET_RAW",
        )
    if isinstance(error, PermissionError):
        return NoData(
            Absence.NO_PERMISSION,
            f"{path}: not allowed; start probed with --peer-uid of this process's user",
        )
    if isinstance(error, BlockingIOError | TimeoutError):
        return NoData(Absence.TIMEOUT, f"{path}: probed takes no connection; is it stopped?")
    if isinstance(error, ConnectionRefusedError):
        return NoData(
            Absence.REFUSED, f"{path}: probed has ended; start it, or `model-probe attach`, again"
        )
    return NoData(Absence.CLOSED, f"{path}: {error.strerror or error}")
