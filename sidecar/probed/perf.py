"""Perf events that run a probe's program: perf_event_open(2), and a link that gives the program a
number of its own (the cookie). Closing the link ends the event; nothing is pinned.

Layouts are those of ``struct perf_event_attr`` (linux/perf_event.h) and ``union bpf_attr``.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from dataclasses import dataclass

_CALLS = {"x86_64": (298, 321), "aarch64": (241, 280)}  # perf_event_open, bpf
_LINK_CREATE, _PERF_EVENT = 28, 41  # BPF_LINK_CREATE, BPF_PERF_EVENT; Linux 5.15
_FD_CLOEXEC = 8  # PERF_FLAG_FD_CLOEXEC; links are close-on-exec by themselves
# type, size, config, period, sample_type, read_format, flags, wakeup, bp_type, config1, config2
_ATTR = struct.Struct("=IIQQQQQIIQQ56x")
_LINK = struct.Struct("=IIIIQ40x")  # bpf_cookie follows the first four

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Event:
    """What is waited for: the first fields of perf_event_attr, by their names there."""

    type: int
    config: int = 0
    config1: int = 0
    config2: int = 0
    period: int = 1


def open_event(event: Event, pid: int, cpu: int = -1) -> int:
    """A descriptor of the event in one process (or all: -1) and on one CPU (or all: -1). Raises
    OSError, ESRCH where the process has ended.
    """
    attr = _ATTR.pack(
        event.type, _ATTR.size, event.config, event.period, 0, 0, 0, 0, 0,
        event.config1, event.config2,
    )  # fmt: skip
    buffer = ctypes.create_string_buffer(attr, len(attr))
    return _call(0, "perf_event_open", buffer, pid, cpu, -1, ctypes.c_ulong(_FD_CLOEXEC))


def link(program: int, event: int, cookie: int = 0) -> int:
    """Runs a program at each event until the descriptor that is returned is closed; the event's own
    is then no longer needed. Raises OSError.
    """
    return create_link(_LINK.pack(program, event, _PERF_EVENT, 0, cookie))


def create_link(attr: bytes) -> int:
    """BPF_LINK_CREATE of bpf(2); addresses in ``attr`` are of buffers that the caller keeps alive.
    Raises OSError.
    """
    buffer = ctypes.create_string_buffer(attr, len(attr))
    return _call(1, "bpf link", _LINK_CREATE, buffer, len(attr))


def attach(program: int, event: Event, pid: int, cookie: int = 0) -> int:
    """Opens an event of a process and links a program to it; the descriptor of the link."""
    opened = open_event(event, pid)
    try:
        return link(program, opened, cookie)
    finally:
        os.close(opened)


def _call(which: int, name: str, *arguments: object) -> int:
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        raise OSError(f"{name} has no known number on {platform.machine()}")
    result = int(_libc.syscall(numbers[which], *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result
