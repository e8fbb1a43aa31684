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
from sidecar.probed.frames import Counters, FrameType, Status
from sidecar.signals import Absence, Kind, Leg, Metric, NoData, RequestTiming, Sample, Signal

_GAUGES = ("open_requests", "oldest_open_ns")  # shown through the requests themselves
_COUNTED = tuple(name for name in frames.COUNTER_NAMES if name not in _GAUGES)
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
    "frames_dropped": "Frames not sent because the sidecar read too slowly.",
}
COUNTERS = tuple(
    Metric(f"modelprobe_probe_{name}_total", Kind.COUNTER, _COUNTER_HELP[name], ("probe",))
    for name in _COUNTED
)
METRICS = (INFO, BAD_FRAMES, *COUNTERS)

_HEARTBEAT_SECONDS = 3.0  # probed sends one a second
_POLL_SECONDS = 0.25
_MAX_FRAMES = 2_000  # a collection; what remains waits in the socket
_CLOCK_STEP_SECONDS = 0.5
_PEERCRED = struct.Struct("3i")


def from_settings(settings: Settings) -> Iterable[ProbesCollector]:
    """One collector when ports are to be watched, none otherwise."""
    ports = {entry.port: entry.leg for entry in settings.wire.ports}
    return [ProbesCollector(settings.wire.socket, ports)] if ports else []


class ProbesCollector:
    """A client of one ``probed``."""

    name = "probes"
    metrics = METRICS
    streamed = True
    interval_seconds = 0.0  # collect itself waits for frames
    deadline_seconds = 5.0

    def __init__(self, path: Path, ports: dict[int, Leg], proc: Path = Path("/proc")) -> None:
        self._path = path
        self._ports = ports
        self._proc = proc
        self._socket: socket.socket | None = None
        self._heard = 0.0
        self._status: dict[str, Status] = {}
        self._bad = 0
        self._offset = 0.0  # Unix time minus CLOCK_MONOTONIC, the kernel program's clock

    def open(self) -> None:
        """Connects and asks for the ports."""
        self.close()
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        link.settimeout(1.0)
        try:
            link.connect(str(self._path))
            link.send(frames.pack_watch(self._ports))
        except OSError as error:
            link.close()
            raise _unreachable(self._path, error) from error
        link.setblocking(False)
        self._socket = link
        self._heard = time.monotonic()
        self._status.clear()

    def collect(self, now: float) -> Iterable[Signal]:
        """The requests since the last call and the probes' counters; waits up to 0.25 s."""
        if self._socket is None:
            raise RuntimeError("collect before open")
        offset = now - time.monotonic()
        # Kept while it holds, so that the reports of one request agree to the bit on its start.
        if abs(offset - self._offset) > _CLOCK_STEP_SECONDS:
            self._offset = offset
        signals: list[Signal] = list(self._drain(self._socket, self._offset))
        self._check_heartbeat(self._socket)
        for status in self._status.values():
            if status.absence:
                raise NoData(_absence(status.absence), f"probed: {status.reason}")
            signals.extend(_samples(status))
        signals.append(Sample(BAD_FRAMES.name, float(self._bad)))
        return signals

    def close(self) -> None:
        """Leaves probed; it goes on for others."""
        link, self._socket = self._socket, None
        if link is not None:
            link.close()

    def _drain(self, link: socket.socket, offset: float) -> Iterable[RequestTiming]:
        waiting = select.poll()  # select() fails beyond descriptor 1023
        waiting.register(link, select.POLLIN)
        waiting.poll(_POLL_SECONDS * 1000)
        for _ in range(_MAX_FRAMES):
            try:
                frame = link.recv(frames.FRAME_BYTES + 1)
            except BlockingIOError:
                return
            except OSError as error:
                raise NoData(Absence.CLOSED, f"probed broke the link: {error.strerror}") from error
            if not frame:
                raise NoData(Absence.CLOSED, "probed has ended or refused us; is it running?")
            timing = self._take(frame, offset)
            if timing is not None:
                yield timing

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
        silent = time.monotonic() - self._heard
        if silent < _HEARTBEAT_SECONDS:
            return
        pid = _PEERCRED.unpack(
            link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size)
        )[0]
        if _process_state(self._proc, pid) in ("T", "t"):
            raise NoData(
                Absence.STOPPED, f"probed (pid {pid}) is stopped; resume it with kill -CONT {pid}"
            )
        raise NoData(Absence.TIMEOUT, f"probed (pid {pid}) has said nothing for {silent:.0f} s")


def _samples(status: Status) -> Iterable[Sample]:
    probe = ("probe", status.probe)
    yield Sample(INFO.name, 1.0, (probe, ("loader", status.loader)))
    for metric, name in zip(COUNTERS, _COUNTED, strict=True):
        yield Sample(metric.name, float(_value(status.counters, name)), (probe,))


def _value(counters: Counters, name: str) -> int:
    value = getattr(counters, name)
    if not isinstance(value, int):
        raise TypeError(name)
    return value


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
            f"no socket {path}: probed is not running; `model-probe attach` starts it, "
            "or run `model-probe probed` with CAP_BPF and CAP_NET_RAW",
        )
    if isinstance(error, PermissionError):
        return NoData(
            Absence.NO_PERMISSION,
            f"{path}: not allowed; start probed with --peer-uid of this process's user",
        )
    if isinstance(error, ConnectionRefusedError):
        return NoData(Absence.REFUSED, f"{path}: probed has ended; start it again")
    return NoData(Absence.CLOSED, f"{path}: {error.strerror or error}")
