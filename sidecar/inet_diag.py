"""Asks the kernel for the TCP sockets of our own network namespace (sock_diag(7), inet_diag).

It needs no privilege, and unlike /proc/net/tcp it tells a listener's limit, how long a TIME_WAIT
still lasts, and only the sockets asked for: the kernel runs the filter.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sidecar.signals import Absence, NoData

ESTABLISHED, TIME_WAIT, CLOSE_WAIT, LISTEN = 1, 6, 8, 10  # include/net/tcp_states.h
_CLOSED = 7
_CONNECTED = 0xFFF & ~(1 << LISTEN | 1 << _CLOSED)  # a bit a state
_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY, linux/sock_diag.h
_ERROR, _DONE, _DUMP = 2, 3, 0x301  # linux/netlink.h; NLM_F_REQUEST | NLM_F_DUMP
_BYTECODE, _JUMP, _SOURCE_IS, _DESTINATION_IS = 1, 1, 11, 12  # linux/inet_diag.h
_MEMORY, _DROPS = 7, 8  # INET_DIAG_SKMEMINFO, and where in it SK_MEMINFO_DROPS is
_HEAD = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")  # inet_diag_req_v2, of any socket
_ERRNO = struct.Struct("=i")
_OPERATION = struct.Struct("=BBH")  # inet_diag_bc_op
_ATTRIBUTE = struct.Struct("=HH")
_COUNT = struct.Struct("=I")
# A netlink head, and of inet_diag_msg: family, state, ports, addresses, expires, both queues.
_SOCKET = struct.Struct("=16xBB2xHH16s16s12xIII8x")
_MAPPED = b"\0" * 10 + b"\xff\xff"
_BUFFER_BYTES = 65_536  # offered so much, the kernel fills 32 kB at a time (af_netlink.c)


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket. ``limit`` is the backlog it was given, cut to net.core.somaxconn; one
    connection more than that fits. ``dropped`` counts what it turned away since it listens (SYNs
    that came again are counted again), None where the kernel does not tell.
    """

    port: int
    queue: int
    limit: int
    dropped: int | None


class Connection(NamedTuple):
    """One end of a connection. ``timer_milliseconds`` are left until its timer ends, of TIME_WAIT
    until it is gone. An address is 4 or 16 bytes; IPv4 mapped into IPv6 is 4.
    """

    state: int
    local_port: int
    remote_port: int
    local: bytes
    remote: bytes
    timer_milliseconds: int


def listeners(deadline_seconds: float = 1.0) -> list[Listener]:
    """Every listening socket; NoData where the kernel does not answer, or not in time."""
    found = []
    wanted = 1 << (_MEMORY - 1)
    for block, at, size in _dump(1 << LISTEN, b"", wanted, deadline_seconds):
        _, _, port, _, _, _, _, queue, limit = _SOCKET.unpack_from(block, at)
        dropped = _dropped(block, at + _SOCKET.size, at + size)
        found.append(Listener(socket.ntohs(port), queue, limit, dropped))
    return found


def connections(ports: Collection[int], deadline_seconds: float = 2.0) -> Iterator[Connection]:
    """Every socket with one of these ports at either end that does not listen; NoData as above."""
    if not ports:
        return
    make, port_of, narrow = (
        tuple.__new__,
        socket.ntohs,
        _narrow,
    )  # not its own, which is slower: they are many
    for block, at, _ in _dump(_CONNECTED, _either_end(ports), 0, deadline_seconds):
        family, state, here, there, local, remote, left, _, _ = _SOCKET.unpack_from(block, at)
        if family == socket.AF_INET:
            local, remote = local[:4], remote[:4]
        else:
            local, remote = narrow(local), narrow(remote)
        yield make(Connection, (state, port_of(here), port_of(there), local, remote, left))


def _narrow(address: bytes) -> bytes:
    return address[12:] if address.startswith(_MAPPED) else address


def _either_end(ports: Collection[int]) -> bytes:
    """The filter: one test for each port and end, each followed by a jump to the end, where the
    kernel takes the socket; the last test jumps one step beyond it, which refuses.
    """
    tests = [(code, port) for port in ports for code in (_SOURCE_IS, _DESTINATION_IS)]
    program = b""
    for code, port in reversed(tests):
        # The port stands in the place where the next operation's jump would.
        step = _OPERATION.pack(code, 8, 12) + _OPERATION.pack(0, 0, port)
        jump = _OPERATION.pack(_JUMP, 4, 4 + len(program)) if program else b""
        program = step + jump + program
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(program), _BYTECODE) + program


def _dropped(block: memoryview, at: int, end: int) -> int | None:
    """The drops of a socket, from the attributes behind it."""
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(block, at)
        if length < _ATTRIBUTE.size:
            return None
        place = at + _ATTRIBUTE.size + _COUNT.size * _DROPS
        if kind == _MEMORY and place + _COUNT.size <= min(at + length, end):
            dropped: int = _COUNT.unpack_from(block, place)[0]
            return dropped
        at += (length + 3) & ~3
    return None


def _dump(
    states: int, bytecode: bytes, extensions: int, deadline_seconds: float
) -> Iterator[tuple[memoryview, int, int]]:
    """Where each message about a socket is: a block that lasts until the next, offset and size."""
    deadline = time.monotonic() + deadline_seconds
    buffer = bytearray(_BUFFER_BYTES)
    for family in (socket.AF_INET, socket.AF_INET6):
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, extensions, states) + bytecode
        head = _HEAD.pack(_HEAD.size + len(request), _BY_FAMILY, _DUMP, 0, 0)
        try:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as link:
                link.settimeout(deadline_seconds)
                link.sendall(head + request)
                yield from _messages(link, buffer, deadline)
        except OSError as error:
            raise _refused(error) from error


def _messages(
    link: socket.socket, buffer: bytearray, deadline: float
) -> Iterator[tuple[memoryview, int, int]]:
    while True:
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "not done in time")
        length = link.recv_into(buffer)
        block, at = memoryview(buffer)[:length], 0
        while at + _HEAD.size <= length:
            size, kind, _, _, _ = _HEAD.unpack_from(block, at)
            if kind in (_DONE, _ERROR):
                _check(block, at + _HEAD.size)
                return
            whole = _HEAD.size <= size <= length - at
            if not whole or (kind == _BY_FAMILY and size < _SOCKET.size):
                raise OSError(errno.EPROTO, "an answer of another layout")
            if kind == _BY_FAMILY:
                yield block, at, size
            at += (size + 3) & ~3


def _check(block: memoryview, at: int) -> None:
    code = -_ERRNO.unpack_from(block, at)[0] if at + _ERRNO.size <= len(block) else 0
    if code:
        raise OSError(code, os.strerror(code))


def _refused(error: OSError) -> NoData:
    what = f"NETLINK_SOCK_DIAG of the kernel: {error.strerror or error}"
    if isinstance(error, TimeoutError):
        return NoData(Absence.TIMEOUT, what)
    if isinstance(error, PermissionError):
        return NoData(Absence.NO_PERMISSION, f"{what}; allow AF_NETLINK in the seccomp profile")
    return NoData(Absence.UNSUPPORTED, f"{what}; load tcp_diag and inet_diag on the node")
