"""Which instructions of a library wire_tls probes, and what is to happen there."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from sidecar.probed import elf, prologue
from sidecar.signals import Absence, NoData

CALLED, RETURNED = "tls_called", "tls_returned"
PROGRAMS = (CALLED, RETURNED)
NO_OPENSSL = "it exports no SSL_read, SSL_write and SSL_free"


class Function(IntEnum):
    """What a probe is at: enum function of ``wire_tls_state.h``."""

    RETURN = 0
    READ = 1
    READ_EX = 2
    READ_INNER = 3
    WRITE = 4
    WRITE_EX = 5
    SENDFILE = 6
    ACCEPT_STATE = 7
    CONNECT_STATE = 8
    SET_FD = 9
    SHUTDOWN = 10
    FREE = 11


# Of a session's life, once a connection; put in place before the calls that move bytes.
_LIFE = {
    "SSL_set_accept_state": Function.ACCEPT_STATE,
    "SSL_set_connect_state": Function.CONNECT_STATE,
    "SSL_set_fd": Function.SET_FD,
    "SSL_set_rfd": Function.SET_FD,
    "SSL_set_wfd": Function.SET_FD,
    "SSL_shutdown": Function.SHUTDOWN,
    "SSL_free": Function.FREE,
}
_MOVING = {
    "SSL_read": Function.READ,
    "SSL_read_ex": Function.READ_EX,
    "SSL_write": Function.WRITE,
    "SSL_write_ex": Function.WRITE_EX,
    "SSL_sendfile": Function.SENDFILE,
}
# Two public functions with one behind them, and what that one is.
_PAIRS = (
    ("SSL_read", "SSL_read_ex", Function.READ_INNER),
    ("SSL_write", "SSL_write_ex", Function.WRITE_EX),
)


@dataclass(frozen=True, slots=True)
class Hook:
    """A probe at an offset in the file. ``cheap`` says that the kernel emulates the instruction and
    does not single-step it.
    """

    function: Function
    offset: int
    cheap: bool


def hooks(fd: int) -> tuple[Hook, ...]:
    """What is to be probed in a file. Raises NoData: NOT_FOUND when it has no OpenSSL that can be
    seen, UNSUPPORTED when it cannot be read.
    """
    try:
        found = elf.functions(fd, (*_LIFE, *_MOVING))
    except (elf.Unreadable, OSError) as error:
        raise NoData(Absence.UNSUPPORTED, f"it cannot be read: {error}") from error
    names = found.offsets
    if not {"SSL_read", "SSL_write", "SSL_free"} <= names.keys():
        raise NoData(Absence.NOT_FOUND, NO_OPENSSL)
    chosen = [_hook(fd, function, names[n]) for n, function in _LIFE.items() if n in names]
    for function, offset in _moving(fd, found):
        chosen.append(_hook(fd, Function.RETURN, offset))
        chosen.append(_hook(fd, function, offset))
    return tuple(chosen)


def _moving(fd: int, found: elf.Functions) -> Iterator[tuple[Function, int]]:
    """The calls that move bytes, and where they lie: one function behind two where that can be told
    and is cheaper.
    """
    left = {name: found.offsets[name] for name in _MOVING if name in found.offsets}
    for plain, ex, function in _PAIRS:
        inside = _behind(fd, found, plain, ex)
        if inside is not None:
            yield function, inside
            del left[plain], left[ex]
    yield from ((_MOVING[name], offset) for name, offset in left.items())


def _behind(fd: int, found: elf.Functions, plain: str, ex: str) -> int | None:
    if platform.machine() != "x86_64" or ex not in found.offsets:
        return None
    code = _code(fd, found.offsets[ex])
    distance = prologue.inner(code)
    if distance is None or prologue.is_cheap(code):
        return None
    inside = found.offsets[ex] + distance
    both = prologue.calls(_code(fd, found.offsets[plain]), inside - found.offsets[plain])
    if not both or not found.contains(inside) or not prologue.is_cheap(_code(fd, inside)):
        return None
    return inside


def _code(fd: int, offset: int) -> bytes:
    return os.pread(fd, prologue.CODE_BYTES, offset)


def _hook(fd: int, function: Function, offset: int) -> Hook:
    if platform.machine() != "x86_64":
        return Hook(function, offset, False)
    code = _code(fd, offset)
    return Hook(function, offset + prologue.entry(code), prologue.is_cheap(code))
