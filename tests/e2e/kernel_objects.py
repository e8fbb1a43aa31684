"""The BPF programs that the kernel holds, and which of them no process holds any more."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from pathlib import Path

_SYSCALL = {"x86_64": 321, "aarch64": 280}
_libc = ctypes.CDLL(None, use_errno=True)
_NEXT_ID, _FD_BY_ID, _INFO = 11, 13, 15  # commands of bpf(2), linux/bpf.h
_NAME = slice(64, 80)  # bpf_prog_info.name
_INFO_BYTES = 128


def _bpf(command: int, attr: ctypes.Array[ctypes.c_char]) -> int:
    """bpf(2)'s own result; OSError."""
    done = int(_libc.syscall(_SYSCALL[os.uname().machine], command, attr, len(attr)))
    if done < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return done


def _name(identity: int) -> str:
    """A program's name; empty when it has just gone."""
    try:
        fd = _bpf(_FD_BY_ID, ctypes.create_string_buffer(struct.pack("=III", identity, 0, 0)))
    except FileNotFoundError:
        return ""
    try:
        info = ctypes.create_string_buffer(_INFO_BYTES)
        attr = struct.pack("=IIQ", fd, _INFO_BYTES, ctypes.addressof(info))
        _bpf(_INFO, ctypes.create_string_buffer(attr, len(attr)))
    finally:
        os.close(fd)
    return info.raw[_NAME].split(b"\0")[0].decode()


def programs() -> dict[int, str]:
    """All programs of this machine by number, with their names."""
    found: dict[int, str] = {}
    attr = ctypes.create_string_buffer(12)
    while True:
        try:
            _bpf(_NEXT_ID, attr)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return found
        (identity,) = struct.unpack_from("=I", attr, 4)
        found[identity] = _name(identity)
        struct.pack_into("=I", attr, 0, identity)


def held() -> set[int]:
    """The programs that some process has a descriptor of, or a socket with (proc(5), fdinfo)."""
    found: set[int] = set()
    for info in Path("/proc").glob("[0-9]*/fdinfo/*"):
        try:
            text = info.read_text()
        except OSError:  # closed, or the process has ended
            continue
        found |= {int(number) for number in re.findall(r"^prog_id:\s*(\d+)", text, re.M)}
    return found


def orphans(before: set[int], name: str = "wire") -> dict[int, str]:
    """Programs of that name, newer than ``before``, that no process holds: somebody left them."""
    newer = {at: named for at, named in programs().items() if at not in before}
    ours = {at for at, named in newer.items() if named.startswith(name)}
    return {at: newer[at] for at in ours - held()}
