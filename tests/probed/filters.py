"""Runs a filter of system calls the way the kernel does (net/core/filter.c), without installing
it: so those of other machines can be tried too.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence

ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def decide(
    code: Sequence[tuple[int, int, int, int]], arch: int, number: int, *arguments: int
) -> bool:
    """Whether a call is allowed; AssertionError for an instruction or an answer of another kind."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *(*arguments, *[0] * 6)[:6])
    at = accumulator = 0
    while True:
        kind, yes, no, value = code[at]
        at += 1
        if kind == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif kind == 0x15:
            at += yes if accumulator == value else no
        elif kind == 0x45:
            at += yes if accumulator & value else no
        else:
            assert kind == 0x06
            assert value in (ALLOW, REFUSE)
            return value == ALLOW
