"""Xid lines of the NVIDIA driver: what they say, and what they ask for.

Sources: NVIDIA's "Xid Errors" guide for the codes, and the driver's own log lines. An Xid names
the card as victim; the process it mentions is often only the one that noticed. What the driver asks
for is read from the code of Xid 154, never from the words in brackets, which differ by driver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum

ACTION_CHANGED = 154
UNKNOWN_GPU = "unknown"
_SAME_INCIDENT_SECONDS = 600.0


class Need(IntEnum):
    """What it takes to have the card back; the greater one wins."""

    NONE = 0
    RESTART_PROCESS = 1
    RESET = 2
    DRAIN_AND_RESET = 3
    REBOOT = 4


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code says, and what it needs when the driver names no action."""

    text: str
    need: Need


CODES = {
    13: Meaning("graphics engine exception", Need.RESTART_PROCESS),
    31: Meaning("GPU memory page fault", Need.RESTART_PROCESS),
    43: Meaning("GPU stopped processing", Need.RESTART_PROCESS),
    45: Meaning("preemptive cleanup, a consequence of an earlier error", Need.NONE),
    48: Meaning("double-bit ECC error", Need.RESET),
    61: Meaning("internal micro-controller breakpoint", Need.RESET),
    62: Meaning("internal micro-controller halt", Need.RESET),
    63: Meaning("row remapping or page retirement pending", Need.RESET),
    64: Meaning("row remapping or page retirement failed", Need.RESET),
    69: Meaning("graphics engine class error", Need.RESTART_PROCESS),
    74: Meaning("NVLink error", Need.RESET),
    79: Meaning("GPU has fallen off the bus", Need.REBOOT),
    92: Meaning("high single-bit ECC error rate", Need.NONE),
    94: Meaning("contained ECC error", Need.RESTART_PROCESS),
    95: Meaning("uncontained ECC error", Need.DRAIN_AND_RESET),
    109: Meaning("context switch time-out", Need.RESTART_PROCESS),
    119: Meaning("GPU firmware (GSP) does not answer", Need.RESET),
    120: Meaning("GPU firmware (GSP) error", Need.RESET),
    140: Meaning("unrecovered ECC error", Need.RESET),
    143: Meaning("GPU initialisation failed", Need.REBOOT),
    ACTION_CHANGED: Meaning("recovery action changed", Need.NONE),
}
# Codes of Xid 154 (nvmlDeviceGpuRecoveryAction_t in nvml.h).
ACTIONS = {
    0: Need.NONE,
    1: Need.RESET,
    2: Need.REBOOT,
    3: Need.DRAIN_AND_RESET,  # drain peer-to-peer traffic
    4: Need.DRAIN_AND_RESET,
    5: Need.RESET,  # recover the IMEX domain
    6: Need.RESET,  # bus reset
    7: Need.REBOOT,  # system reboot
}
_LINE = re.compile(r"NVRM: Xid (?:\((?:PCI:)?([0-9a-fA-F:.]+)\): )?([0-9]{1,4}), ?(.*)", re.S)
_ANY = re.compile(r"NVRM: Xid\b")
_PID = re.compile(r"\bpid='?(\d{1,10})")
_NAME = re.compile(r"\bname=([^,]{1,64})")
_ACTION = re.compile(r"action changed (?:from 0x[0-9a-fA-F]+ \([^)]*\) )?to 0x([0-9a-fA-F]+)")


class XidError(ValueError):
    """A line that calls itself an Xid and cannot be read."""


@dataclass(frozen=True, slots=True)
class Xid:
    """One event. ``gpu`` is a PCI address such as ``0000:3b:00.0`` or ``unknown``; ``action`` is
    what Xid 154 asks for. ``pid`` and ``process`` noticed it, which is no blame.
    """

    at: float
    code: int
    gpu: str = UNKNOWN_GPU
    pid: int | None = None
    process: str | None = None
    action: Need | None = None

    @property
    def meaning(self) -> Meaning:
        """What the code says; an unknown one asks for nothing by itself."""
        return CODES.get(self.code, Meaning("an Xid that is not in our table", Need.NONE))


def pci_address(text: str) -> str:
    """A PCI address in the kernel's form, from NVML's (``00000000:3B:00.0``) or a log's."""
    parts = text.strip().lower().split(":")
    if len(parts) != 3:
        return UNKNOWN_GPU
    domain, bus, device = parts
    try:
        slot, _, function = device.partition(".")
        return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(slot, 16):02x}.{function or '0'}"
    except ValueError:
        return UNKNOWN_GPU


def parse(line: str, at: float) -> Xid | None:
    """The Xid of a log line, None when it is another line; XidError when it cannot be read."""
    match = _LINE.search(line)
    if match is None:
        if _ANY.search(line):
            raise XidError(line[:120])
        return None
    address, code, rest = match.groups()
    pid, name, action = _PID.search(rest), _NAME.search(rest), _ACTION.search(rest)
    return Xid(
        at=at,
        code=int(code),
        gpu=pci_address(address) if address else UNKNOWN_GPU,
        pid=int(pid.group(1)) if pid else None,
        process=name.group(1).strip() if name else None,
        action=_action(int(action.group(1), 16)) if action else None,
    )


def _action(code: int) -> Need:
    # A code newer than this table: a reset is the least that a driver asks for by one.
    return ACTIONS.get(code, Need.RESET)


@dataclass(slots=True)
class Incident:
    """Xids of one card that belong together: one trouble, however often it is logged."""

    gpu: str
    began: float
    last: float
    need: Need
    codes: dict[int, int] = field(default_factory=dict)

    @property
    def first_code(self) -> int:
        """The code that opened it; Xid 154 is a consequence and only stands in for none."""
        return next((code for code in self.codes if code != ACTION_CHANGED), ACTION_CHANGED)


class Ledger:
    """Counts Xids and keeps one open incident a card, until the driver says that it is over."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}
        self.last: dict[tuple[str, int], float] = {}
        self._open: dict[str, Incident] = {}

    def know(self, gpu: str) -> None:
        """Starts a card's counters at 0: the first event is else invisible to ``increase()``."""
        for code in CODES:
            self.counts.setdefault((gpu, code), 0)

    def add(self, xid: Xid) -> Incident | None:
        """Counts an event; returns the incident it opened, None when it belongs to an open one."""
        key = (xid.gpu, xid.code)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.last[key] = max(xid.at, self.last.get(key, 0.0))
        if xid.action is Need.NONE:
            self._open.pop(xid.gpu, None)  # the driver itself says that nothing is needed any more
            return None
        need = xid.action if xid.action is not None else xid.meaning.need
        incident = self._open.get(xid.gpu)
        is_new = incident is None or self._is_over(incident, xid)
        if incident is None or is_new:
            incident = self._open[xid.gpu] = Incident(xid.gpu, xid.at, xid.at, need)
        incident.last = max(incident.last, xid.at)
        incident.need = max(incident.need, need)
        incident.codes[xid.code] = incident.codes.get(xid.code, 0) + 1
        return incident if is_new else None

    def clear(self, gpu: str) -> None:
        """Closes a card's incident on evidence of a reset."""
        self._open.pop(gpu, None)

    def open_incidents(self, now: float) -> list[Incident]:
        """What is still wrong. Where restarting a process is all it takes, ten quiet minutes end
        it; what needs a reset stays until there was one.
        """
        for gpu, incident in list(self._open.items()):
            if incident.need < Need.RESET and now - incident.last > _SAME_INCIDENT_SECONDS:
                del self._open[gpu]
        return list(self._open.values())

    @staticmethod
    def _is_over(incident: Incident, xid: Xid) -> bool:
        quiet = xid.at - incident.last > _SAME_INCIDENT_SECONDS
        return quiet and incident.need < Need.RESET
