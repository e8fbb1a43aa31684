"""What ``probed`` may still ask of the kernel: two filters, the second within the first.

From its start it can make no network connection: only Unix and packet sockets, and no ring of
io_uring, which would make sockets past the filter. Once its probes are
loaded it keeps the calls of its loop, by name; everything else fails with EPERM, which Python
raises where it happens, rather than killing the process. See seccomp(2) and, for the instructions,
linux/filter.h.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
from collections.abc import Collection, Iterable

from sidecar.privileges import Capability

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}
# Numbers from asm/unistd_64.h and asm-generic/unistd.h; None where a machine has no such call.
# The most frequent come first: the kernel compares in this order.
_LOOP: dict[str, tuple[int | None, int | None]] = {
    "poll": (7, None), "ppoll": (271, 73), "sendto": (44, 206), "recvfrom": (45, 207),
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "futex": (202, 98),
    "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226),
    "madvise": (28, 233), "brk": (12, 214), "accept4": (288, 242),
    "getsockopt": (55, 209), "setsockopt": (54, 208), "getsockname": (51, 204),
    "shutdown": (48, 210), "fcntl": (72, 25), "lseek": (8, 62),
    "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291), "stat": (4, None),
    "lstat": (6, None), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents64": (217, 61), "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66),
    "unlink": (87, None), "unlinkat": (263, 35), "rmdir": (84, None),
    "getpid": (39, 172), "gettid": (186, 178), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getrusage": (98, 165),
    "clock_gettime": (228, 113), "gettimeofday": (96, 169), "getrandom": (318, 278),
    "clock_nanosleep": (230, 115), "nanosleep": (35, 101), "restart_syscall": (219, 128),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "sched_yield": (24, 124), "membarrier": (324, 283),
    "rseq": (334, 293), "set_robust_list": (273, 99), "dup": (32, 23),
    "getcwd": (79, 17), "uname": (63, 160),  # of a late import, and of platform.machine()
    "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
_OPENAT, _OPEN, _SOCKET, _BPF, _IOCTL = (257, 56), (2, None), (41, 198), (321, 280), (16, 29)
_ATTACHING = {"perf_event_open": (298, 241)}
_ENTERING = {"setns": (308, 268)}
_BIND, _PACKET_ADDRESS = (49, 200), (20,)  # sizeof(struct sockaddr_ll): a spare socket to a device
_READ_MAPS = (1, 2, 3, 15, 24)  # BPF_MAP_{LOOKUP,UPDATE,DELETE}_ELEM, OBJ_GET_INFO, LOOKUP_BATCH
_ATTACH = (17, 28)  # BPF_RAW_TRACEPOINT_OPEN, BPF_LINK_CREATE
_BLOCKING = (0x5421, 0x5451)  # FIONBIO, FIOCLEX
_DEVICES = (0x8933,)  # SIOCGIFINDEX
_PERF = (0x2400, 0x2401, 0x40042408)  # PERF_EVENT_IOC_ENABLE, _DISABLE, _SET_BPF
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_IO_URING_SETUP = 425  # on both
_X32 = 0x40000000  # x86-64's numbers with this bit are the same calls once more

# BPF_LD|W|ABS, BPF_JMP|JEQ|K, |JSET|K, BPF_RET|K
_LD, _JEQ, _JSET, _RET = 0x20, 0x15, 0x45, 0x06
_ALLOW, _EPERM = 0x7FFF0000, 0x00050000 | 1
_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data; arguments of 8 bytes
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2

_libc = ctypes.CDLL(None, use_errno=True)
_Code = tuple[int, int, int, int]
_PASS = (_RET, 0, 0, _ALLOW)


class Unconfined(Exception):
    """The filter could not be set; the text says why and what it means."""


def _allow(number: int) -> list[_Code]:
    return [(_JEQ, 0, 1, number), _PASS]


def _allow_values(number: int, argument: int, values: Collection[int]) -> list[_Code]:
    """Allows a call when the low half of an argument is one of these."""
    body = [(_LD, 0, 0, _ARGS + 8 * argument)]
    for value in values:
        body += _allow(value)
    body.append((_RET, 0, 0, _EPERM))
    return [(_JEQ, 0, len(body), number), *body]


def _allow_without(number: int, argument: int, bits: int) -> list[_Code]:
    """Allows a call when an argument has none of these bits."""
    return [
        (_JEQ, 0, 4, number),
        (_LD, 0, 0, _ARGS + 8 * argument),
        (_JSET, 0, 1, bits),
        (_RET, 0, 0, _EPERM),
        _PASS,
    ]


def _begin(machine: str) -> list[_Code]:
    """Other numbers of the same calls (32-bit or x32 ones on a 64-bit kernel) are refused."""
    return [
        (_LD, 0, 0, _ARCH),
        (_JEQ, 1, 0, _AUDIT_ARCH[machine]),
        (_RET, 0, 0, _EPERM),
        (_LD, 0, 0, _NR),
        (_JSET, 0, 1, _X32),
        (_RET, 0, 0, _EPERM),
    ]


def no_network(machine: str) -> list[_Code]:
    """Sockets of the kinds that are needed, and all other calls."""
    number = _SOCKET[_COLUMN[machine]]
    kinds = _allow_values(number, 0, (socket.AF_UNIX, socket.AF_PACKET))
    return [*_begin(machine), *kinds, (_JEQ, 0, 1, _IO_URING_SETUP), (_RET, 0, 0, _EPERM), _PASS]


def loop_only(machine: str, keeps: frozenset[Capability]) -> list[_Code]:
    """The calls of the loop, and those of attaching where a capability for it is kept."""
    column = _COLUMN[machine]
    following = bool(keeps & {Capability.PERFMON, Capability.SYS_PTRACE})
    entering = Capability.SYS_ADMIN in keeps
    extra = {**(_ATTACHING if following else {}), **(_ENTERING if entering else {})}
    code = _begin(machine)
    for numbers in (*_LOOP.values(), *extra.values()):
        if (number := numbers[column]) is not None:
            code += _allow(number)
    code += _allow_values(_BPF[column], 0, _READ_MAPS + (_ATTACH if following else ()))
    code += _allow_values(_BIND[column], 2, _PACKET_ADDRESS)
    code += _allow_values(_IOCTL[column], 1, _BLOCKING + _DEVICES + (_PERF if following else ()))
    code += _allow_without(_OPENAT[column], 2, _WRITES)
    if (old := _OPEN[column]) is not None:
        code += _allow_without(old, 1, _WRITES)
    return [*code, (_RET, 0, 0, _EPERM)]


def install(code: Iterable[_Code]) -> None:
    """Puts a filter on this process, for good; raises Unconfined where the kernel has none."""
    packed = b"".join(struct.pack("=HBBI", *one) for one in code)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    program = ctypes.create_string_buffer(
        struct.pack("@HP", len(packed) // 8, ctypes.addressof(buffer))
    )
    for option, *rest in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program), 0, 0),
    ):
        if _libc.prctl(option, *(ctypes.c_ulong(one) for one in rest)) != 0:
            raise Unconfined(f"prctl({option}): {os.strerror(ctypes.get_errno())}")


def leave_network() -> None:
    """From now on no network connection can be made; raises Unconfined."""
    install(no_network(_machine()))


def keep_to_loop(keeps: frozenset[Capability]) -> None:
    """From now on only the loop's calls are allowed; raises Unconfined."""
    install(loop_only(_machine(), keeps))


def _machine() -> str:
    machine = platform.machine()
    if machine not in _AUDIT_ARCH:
        raise Unconfined(f"{machine} is not a machine whose call numbers are known")
    return machine
