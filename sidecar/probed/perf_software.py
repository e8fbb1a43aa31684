"""Perf events of the kernel's own counters on single threads, with a program that runs at each one.

See perf_event_open(2) and ``struct perf_event_attr`` in ``linux/perf_event.h``. Opening one on a
thread of another user takes CAP_PERFMON (Linux 5.9), nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct

_NUMBERS = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
_SOFTWARE, _CONTEXT_SWITCHES = 1, 3  # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES
_ATTR = struct.Struct("=IIQQQQQ")  # type, size, config, sample_period, sample_, read_format, bits
_ATTR_BYTES = 64  # PERF_ATTR_SIZE_VER0: later fields stay zero
_DISABLED, _INHERIT, _INHERIT_THREAD = 1 << 0, 1 << 1, 1 << 35
_CLOEXEC = 8
_ENABLE, _SET_BPF = 0x2400, 0x40042408

_libc = ctypes.CDLL(None, use_errno=True)


def _open(tid: int, bits: int) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"perf_event_open has no known number: {platform.machine()}")
    attr = _ATTR.pack(_SOFTWARE, _ATTR_BYTES, _CONTEXT_SWITCHES, 1, 0, 0, bits)
    buffer = ctypes.create_string_buffer(attr, _ATTR_BYTES)
    fd: int = _libc.syscall(number, buffer, tid, -1, -1, ctypes.c_ulong(_CLOEXEC))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"perf_event_open of thread {tid}: {os.strerror(code)}")
    return fd


def on_switches(tid: int, program: int) -> int:
    """Runs a program whenever this thread, or one that it or its threads begin later, leaves its
    CPU. Ends when the descriptor, which is returned, is closed: for threads begun later too. Raises
    OSError; ESRCH when there is no such thread any more.
    """
    try:
        fd = _open(tid, _DISABLED | _INHERIT | _INHERIT_THREAD)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.E2BIG):
            raise
        # Before Linux 5.13 child processes inherit it too; the program leaves at once for them.
        fd = _open(tid, _DISABLED | _INHERIT)
    try:
        fcntl.ioctl(fd, _SET_BPF, program)
        fcntl.ioctl(fd, _ENABLE, 0)
    except OSError:
        os.close(fd)
        raise
    return fd
