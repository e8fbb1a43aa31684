"""Receives the frames of ``probed``, the privileged process that holds the kernel programs.

When it is absent, refused, stopped or killed, only this source is lost; the state says which.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterable
from pathlib import Path

from sidecar.config import Settings
from sidecar.probed import frames
from sidecar.probed.frames import FrameType, Status, Watch
from sidecar.probed.targets import By, Selector
from sidecar.signals import (
    Absence,
    Kind,
    Leg,
    Metric,
    NoData,
    OpenRequests,
    RequestTiming,
    Sample,
    Signal,
)

INFO = Metric(
    "modelprobe_probe_info",
    Kind.GAUGE,
    "1; a loaded kernel program and the loader that brought it in.",
    ("probe", "loader"),
)
BAD_FRAMES = Metric(
    "modelprobe_probe_bad_frames_total",
    Kind.COUNTER,
    "Frames of probed that could not be read.",
    (),
)
_COUNTER_HELP = {
    "packets": "Packets of watched ports that the program looked at.",
    "requests": "Requests whose head was seen.",
    "events": "Server-sent events counted in the kernel.",
    "lost_records": "Ended requests lost because the ring was full.",
    "table_full": "Connections not followed because the table was full.",
    "not_http": "Connections whose first bytes were not HTTP/1.",
    "blind_tls": "Connections that are TLS: the tap cannot read them.",
    "blind_http2": "Connections that are HTTP/2: the tap does not read it yet.",
    "resyncs": "Times bytes of a connection were missed or came out of order.",
    "pipelined": "Requests sent before the one before was answered; their heads are not kept.",
    "contended": "Packets not read: another CPU held their connection for too long.",
    "frames_dropped": "Frames not sent because the sidecar read too slowly.",
}
COUNTERS = tuple(
    Metric(f"modelprobe_probe_{name}_total", Kind.COUNTER, _COUNTER_HELP[name], ("probe",))
    for name in frames.COUNTER_NAMES
)
METRICS = (INFO, BAD_FRAMES, *COUNTERS)

_HEARTBEAT_SECONDS = 3.0  # probed sends one a second
_FIRST_STATUS_SECONDS = 1.5
_POLL_SECONDS = 0.25
_MAX_FRAMES = 2_000  # a collection; what remains waits in the socket
_CLOCK_STEP_SECONDS = 0.5
_PEERCRED = struct.Struct("3i")


def from_settings(settings: Settings) -> Iterable[ProbesCollector]:
    """One collector when ports or processes are to be watched, none otherwise."""
    ports = {entry.port: entry.leg for entry in settings.wire.ports}
    selectors = tuple(
        Selector(by, str(value))
        for chosen in settings.probes.processes
        for by, value in (
            (By.PORT, chosen.port),
            (By.COMMAND, chosen.command),
            (By.CGROUP, chosen.cgroup),
            (By.PID, chosen.pid),
        )
        if value
    )
    if not ports and not selectors:
        return []
    return [ProbesCollector(settings.wire.socket, ports, selectors)]


class ProbesCollector:
    """A client of one ``probed``."""

    name = "probes"
    metrics = METRICS
    streamed = True
    interval_seconds = 0.0  # collect itself waits for frames
    deadline_seconds = 5.0

    def __init__(
        self,
        path: Path,
        ports: dict[int, Leg],
        selectors: tuple[Selector, ...] = (),
        proc: Path = Path("/proc"),
    ) -> None:
        self._path = path
        self._ports, self._selectors = ports, selectors
        self._proc = proc
        self._socket: socket.socket | None = None
        self._heard = 0.0
        self._status: dict[str, Status] = {}
        self._bad = 0
        self._kept: list[RequestTiming] = []
        self._broken: NoData | None = None
        self._silent: int | None = None  # pid of a probed that was seen stopped
        self._offset = 0.0  # Unix time minus CLOCK_MONOTONIC, the kernel program's clock

    def open(self) -> None:
        """Connects, asks for the ports, and waits for the first word: a connection alone says
        nothing, since the kernel makes it for a process that is stopped.
        """
        self.close()
        if self._silent is not None and _process_state(self._proc, self._silent) in ("T", "t"):
            raise _stopped(self._silent)  # without another connection in its queue
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        link.settimeout(1.0)
        try:
            link.connect(str(self._path))
            link.send(frames.pack_watch(Watch(self._ports, self._selectors)))
        except OSError as error:
            link.close()
            raise _unreachable(self._path, error) from error
        link.setblocking(False)
        self._socket = link
        self._status.clear()
        self._kept.clear()
        self._heard = time.monotonic()
        self._await_status(link)

    def collect(self, now: float) -> Iterable[Signal]:
        """The requests since the last call and the probes' counters; waits up to 0.25 s."""
        link = self._socket
        if link is None:
            raise RuntimeError("collect before open")
        self._keep_time(now)
        self._drain(link, _POLL_SECONDS)
        if not self._kept:  # else first hand over what came, then say that no more will
            if self._broken is not None:
                raise self._broken
            self._check_heartbeat(link)
        signals: list[Signal] = [*self._kept]
        self._kept.clear()
        for status in self._status.values():
            if status.absence and not signals:
                raise NoData(_absence(status.absence), f"probed: {status.reason}")
            signals.extend(_samples(status, self._ports))
        signals.append(Sample(BAD_FRAMES.name, float(self._bad)))
        return signals

    def close(self) -> None:
        """Leaves probed; it goes on for others."""
        link, self._socket = self._socket, None
        self._broken = None
        if link is not None:
            link.close()

    def _keep_time(self, now: float) -> None:
        """Unix time minus the kernel program's clock, kept while it holds, so that the reports of
        one request agree to the bit on its start.
        """
        offset = now - time.monotonic()
        if abs(offset - self._offset) > _CLOCK_STEP_SECONDS:
            self._offset = offset

    def _await_status(self, link: socket.socket) -> None:
        deadline = time.monotonic() + _FIRST_STATUS_SECONDS
        while not self._status:
            if self._broken is not None:
                raise self._broken
            if time.monotonic() > deadline:
                raise self._silence(link)
            self._drain(link, _POLL_SECONDS)

    def _drain(self, link: socket.socket, seconds: float) -> None:
        """Keeps the timings that are there; a broken link is noted for when they are handed on."""
        waiting = select.poll()  # select() fails beyond descriptor 1023
        waiting.register(link, select.POLLIN)
        waiting.poll(seconds * 1000)
        for _ in range(_MAX_FRAMES):
            try:
                frame = link.recv(frames.FRAME_BYTES + 1)
            except BlockingIOError:
                return
            except OSError as error:
                self._broken = NoData(Absence.CLOSED, f"probed broke the link: {error.strerror}")
                return
            if not frame:
                self._broken = NoData(
                    Absence.CLOSED, "probed has ended or refused us; is it running?"
                )
                return
            timing = self._take(frame, self._offset)
            if timing is not None:
                self._kept.append(timing)

    def _take(self, frame: bytes, offset: float) -> RequestTiming | None:
        try:
            kind = frames.frame_type(frame)
            if kind is FrameType.REQUEST:
                return frames.unpack_request(frame, self._ports, offset)
            if kind is FrameType.STATUS:
                status = frames.unpack_status(frame)
                self._status[status.probe] = status
                self._heard = time.monotonic()
        except frames.FrameError as error:
            self._bad += 1
            if "version" in str(error):
                raise NoData(Absence.PROTOCOL, f"probed: {error}") from error
        return None

    def _check_heartbeat(self, link: socket.socket) -> None:
        if time.monotonic() - self._heard >= _HEARTBEAT_SECONDS:
            raise self._silence(link)
        self._silent = None

    def _silence(self, link: socket.socket) -> NoData:
        """What it means that probed says nothing."""
        credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size)
        pid: int = _PEERCRED.unpack(credentials)[0]
        if _process_state(self._proc, pid) in ("T", "t"):
            self._silent = pid
            return _stopped(pid)
        silent = time.monotonic() - self._heard
        return NoData(Absence.TIMEOUT, f"probed (pid {pid}) has said nothing for {silent:.0f} s")


def _stopped(pid: int) -> NoData:
    return NoData(
        Absence.STOPPED, f"probed (pid {pid}) is stopped; resume it with kill -CONT {pid}"
    )


def _samples(status: Status, ports: dict[int, Leg]) -> Iterable[Signal]:
    probe = ("probe", status.probe)
    yield Sample(INFO.name, 1.0, (probe, ("loader", status.loader)))
    for metric, name in zip(COUNTERS, frames.COUNTER_NAMES, strict=True):
        yield Sample(metric.name, float(getattr(status.counters, name)), (probe,))
    now = time.monotonic_ns()
    for leg in sorted(set(ports.values())):
        found = [one for one in status.open if ports.get(one.port) is leg]
        ages = [(now - one.oldest_ns) / 1e9 for one in found if one.count]
        yield OpenRequests(leg, sum(one.count for one in found), max(ages, default=None))


def _absence(text: str) -> Absence:
    try:
        return Absence(text)
    except ValueError:
        return Absence.ERROR


def _process_state(proc: Path, pid: int) -> str | None:
    """The state letter of a process (proc(5), field 3 of stat), None when it cannot be read."""
    try:
        stat = (proc / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command, field 2, may hold spaces and parentheses: look behind the last one.
    return stat.rpartition(")")[2].split()[0]


def _unreachable(path: Path, error: OSError) -> NoData:
    if isinstance(error, FileNotFoundError):
        return NoData(
            Absence.NOT_FOUND,
            f"no socket {path}: probed is not running; `model-probe attach` starts it when it is "
            "run as root (sudo), or run `model-probe probed` with CAP_BPF and CAP_NET_RAW",
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
