"""A scripted client and server over real loopback sockets, in one thread: what one end sends the
other has read before the script goes on, so nothing has to be waited for.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_LINGER = struct.pack("=ii", 1, 0)


@dataclass
class Pair:
    """A connected client and server."""

    client: socket.socket
    server: socket.socket

    @property
    def port(self) -> int:
        """The server's port."""
        return int(self.server.getsockname()[1])

    def ask(self, data: bytes) -> None:
        """Client to server."""
        _move(self.client, self.server, data)

    def answer(self, data: bytes) -> None:
        """Server to client."""
        _move(self.server, self.client, data)


def _move(source: socket.socket, target: socket.socket, data: bytes) -> None:
    sender = threading.Thread(target=source.sendall, args=(data,))
    sender.start()
    left = len(data)
    while left:
        left -= len(target.recv(min(left, 1 << 20)))
    sender.join()


def reset(end: socket.socket) -> None:
    """Closes with RST instead of FIN."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    end.close()


@contextmanager
def listening(host: str = "127.0.0.1") -> Iterator[socket.socket]:
    """A listening socket on a port of the kernel's choice."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        listener.listen(64)
        yield listener


@contextmanager
def connected(listener: socket.socket) -> Iterator[Pair]:
    """A connection to it."""
    client = socket.create_connection(listener.getsockname()[:2], timeout=20)
    server, _ = listener.accept()
    server.settimeout(20)
    for end in (client, server):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with client, server:
        yield Pair(client, server)
