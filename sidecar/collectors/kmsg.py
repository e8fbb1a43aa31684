"""Reads the kernel's log for what only it says: Xids of the GPU driver, and processes killed for
memory.

NVML's events can miss an Xid, and a card that fell off the bus is often named only here. One read
of /dev/kmsg is one record (Documentation/ABI/testing/dev-kmsg). The log since boot is read first:
counters begin with what happened before us, and a trouble that is still open is still known.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sidecar.config import Settings
from sidecar.signals import Absence, Event, Kind, Metric, NoData, Sample, Signal
from sidecar.xid import CODES, Incident, Ledger, XidError, parse, pci_address

XIDS = Metric(
    "modelprobe_kmsg_xid_errors_total",
    Kind.COUNTER,
    "Xid lines in the kernel's log since boot, by card and code.",
    ("pci", "xid"),
)
XID_TIME = Metric(
    "modelprobe_kmsg_xid_last_timestamp_seconds",
    Kind.GAUGE,
    "When a card last logged this Xid, Unix time; no sample before the first.",
    ("pci", "xid"),
)
NEED = Metric(
    "modelprobe_kmsg_gpu_recovery_needed",
    Kind.GAUGE,
    "1 while a card's open incident needs this: restart_process, reset, drain_and_reset, reboot.",
    ("pci", "need"),
)
OOM_KILLS = Metric(
    "modelprobe_kmsg_oom_kills_total",
    Kind.COUNTER,
    "Processes the kernel killed for host memory since boot; by whose limit, host or cgroup.",
    ("scope",),
)
BAD_LINES = Metric(
    "modelprobe_kmsg_bad_lines_total",
    Kind.COUNTER,
    "Records or Xid lines that could not be read.",
)
LOST = Metric(
    "modelprobe_kmsg_lost_records_total",
    Kind.COUNTER,
    "Times the kernel's log wrapped before we had read it.",
)
METRICS = (XIDS, XID_TIME, NEED, OOM_KILLS, BAD_LINES, LOST)
_RECORD = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;(.*)", re.S)
_OOM = re.compile(r"(Memory cgroup out|Out) of memory: Kill(?:ed)? process (\d+) \(([^)]{0,64})\)")
_NVIDIA = "0x10de"
_MAX_RECORDS = 20_000  # a collection; what remains waits in the log


def from_settings(settings: Settings) -> Iterable[KmsgCollector]:
    """One collector where it is enabled."""
    return [KmsgCollector(settings.kmsg.path)] if settings.kmsg.enabled else []


def nvidia_cards(sys_pci: Path = Path("/sys/bus/pci/devices")) -> list[str]:
    """PCI addresses of the NVIDIA display and 3D controllers that the kernel knows."""
    found = []
    for device in sorted(sys_pci.glob("*")):
        try:
            vendor = (device / "vendor").read_text().strip()
            kind = (device / "class").read_text().strip()
        except OSError:
            continue  # it left while we looked
        if vendor == _NVIDIA and kind.startswith("0x03"):
            found.append(pci_address(device.name))
    return found


class KmsgCollector:
    """Reads new records once a second."""

    name = "kmsg"
    metrics = METRICS
    streamed = False
    interval_seconds = 1.0
    deadline_seconds = 5.0

    def __init__(
        self,
        path: Path,
        cards: Callable[[], list[str]] = nvidia_cards,
        proc: Path = Path("/proc"),
    ) -> None:
        self._path = path
        self._proc = proc
        self._cards = cards
        self._fd: int | None = None
        self._forget()

    def _forget(self) -> None:
        self._ledger = Ledger()
        self._kills = {"host": 0, "cgroup": 0}
        self._bad = 0
        self._lost = 0
        self._behind = True  # still reading what was logged before we opened it

    def open(self) -> None:
        """Opens the log at its oldest record; counting starts anew, since boot."""
        self.close()
        self._forget()
        for card in self._cards():
            self._ledger.know(card)
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise _unreachable(self._path, error) from error

    def collect(self, now: float) -> Iterable[Signal]:
        """Counters since boot, and an event for each incident and kill since the last call."""
        if self._fd is None:
            raise RuntimeError("collect before open")
        booted = now - time.monotonic()
        events = [
            event for record in self._records(self._fd) for event in self._take(record, booted)
        ]
        # What was there before us is counted; only what is new is an event.
        fresh = [] if self._behind else events
        self._behind = False
        return [*self._samples(now), *fresh]

    def close(self) -> None:
        """Lets go of the log."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _records(self, fd: int) -> Iterator[bytes]:
        for _ in range(_MAX_RECORDS):
            try:
                record = os.read(fd, 8192)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten; the next read goes on behind the hole
                    self._lost += 1
                    continue
                if error.errno == errno.EINVAL:  # a record longer than the buffer
                    self._bad += 1
                    continue
                raise NoData(Absence.CLOSED, f"{self._path}: {error.strerror}") from error
            if not record:
                return
            yield record

    def _take(self, record: bytes, booted: float) -> Iterator[Event]:
        match = _RECORD.match(record)
        if match is None:
            self._bad += 1
            return
        at = booted + int(match.group(3)) / 1e6
        text = match.group(4).split(b"\n", 1)[0].decode("utf-8", "replace")
        kill = _OOM.search(text)
        if kill:
            scope = "cgroup" if kill.group(1).startswith("Memory") else "host"
            self._kills[scope] += 1
            what = f"process {kill.group(2)} killed for memory of the {scope}"
            yield Event(at, "oom_kill", kill.group(2), what)
        try:
            xid = parse(text, at)
        except XidError:
            self._bad += 1
            return
        opened = self._ledger.add(xid) if xid else None
        if opened:
            noticed = xid is not None and xid.pid is not None and self._is_ours(xid.pid)
            by = "; noticed by our own GPU reader, which is not the cause" if noticed else ""
            yield Event(at, "xid", opened.gpu, _words(opened) + by)

    def _is_ours(self, pid: int) -> bool:
        """Whether the process that a line names is the child of our GPU collector."""
        try:
            command = (self._proc / str(pid) / "cmdline").read_bytes()
        except OSError:
            return False
        return b"sidecar.collectors.nvml.child" in command.split(b"\0")

    def _samples(self, now: float) -> Iterator[Sample]:
        for (gpu, code), count in self._ledger.counts.items():
            yield Sample(XIDS.name, float(count), (("pci", gpu), ("xid", str(code))))
        for (gpu, code), at in self._ledger.last.items():
            yield Sample(XID_TIME.name, at, (("pci", gpu), ("xid", str(code))))
        for incident in self._ledger.open_incidents(now):
            need = incident.need.name.lower()
            yield Sample(NEED.name, 1.0, (("pci", incident.gpu), ("need", need)))
        for scope, count in self._kills.items():
            yield Sample(OOM_KILLS.name, float(count), (("scope", scope),))
        yield Sample(BAD_LINES.name, float(self._bad))
        yield Sample(LOST.name, float(self._lost))


def _words(incident: Incident) -> str:
    code = incident.first_code
    text = CODES[code].text if code in CODES else "not in our table"
    return f"Xid {code} on {incident.gpu}: {text}"


def _unreachable(path: Path, error: OSError) -> NoData:
    if error.errno in (errno.EPERM, errno.EACCES):
        return NoData(
            Absence.NO_PERMISSION,
            f"{path}: not allowed; give CAP_SYSLOG, or set kernel.dmesg_restrict=0 and let this "
            "user read the device (in a container mount it too)",
        )
    if error.errno == errno.ENOENT:
        return NoData(Absence.NOT_FOUND, f"{path} is absent; in a container mount it from the host")
    return NoData(Absence.ERROR, f"{path}: {error.strerror}")
