"""Attaching a program to a tracepoint of the kernel, without tracefs."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping

_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_RAW_TRACEPOINT_OPEN = 17  # enum bpf_cmd, linux/bpf.h

_libc = ctypes.CDLL(None, use_errno=True)


def attach(name: str, program: int) -> int:
    """Runs a program at each hit, for everybody on the machine, until the descriptor that is
    returned is closed. Raises OSError; ENOENT when this kernel has no such tracepoint.
    """
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"bpf(2) has no known number on {platform.machine()}")
    text = ctypes.create_string_buffer(name.encode())
    attr = struct.pack("=QI4x", ctypes.addressof(text), program)
    buffer = ctypes.create_string_buffer(attr, len(attr))
    fd: int = _libc.syscall(number, _RAW_TRACEPOINT_OPEN, buffer, len(attr))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"tracepoint {name}: {os.strerror(code)}")
    return fd


class Tracepoints:
    """Those that a probe has attached, by name; ``missing`` says which could not be, and why."""

    def __init__(self, programs: Mapping[str, int]) -> None:
        self._programs = programs
        self._links: dict[str, int] = {}
        self.missing: dict[str, str] = {}

    def attach(self, wanted: Mapping[str, str]) -> None:
        """Attaches programs by tracepoint; those that are there stay as they are."""
        for name, program in wanted.items():
            if name in self._links or name in self.missing:
                continue
            try:
                self._links[name] = attach(name, self._programs[program])
            except OSError as error:
                self.missing[name] = f"no {name}: {error.strerror}"

    def detach(self, names: Iterable[str]) -> None:
        """Ends some."""
        for name in names:
            if name in self._links:
                os.close(self._links.pop(name))

    def close(self) -> None:
        """Ends all."""
        self.detach(tuple(self._links))
