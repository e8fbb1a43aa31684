"""Servers on loopback for tests: each connection is handed to a function."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Serve = Callable[[socket.socket], None]


@contextmanager
def server(serve: Serve, heads: list[str] | None = None) -> Iterator[str]:
    """Hands each connection to ``serve`` after reading its head, which is added to ``heads``;
    gives the address as a URL.
    """
    read = [] if heads is None else heads
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        read.append(connection.recv(65536).decode())
                        serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def answering(body: bytes, status: str = "200 OK", length: int | None = None) -> Serve:
    """A ``serve`` that sends one whole answer, or one that claims another length."""
    size = len(body) if length is None else length

    def serve(connection: socket.socket) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + body)

    return serve


def in_turn(*bodies: bytes) -> Serve:
    """One body after the other, then the last one for ever."""
    rest = list(bodies)

    def serve(connection: socket.socket) -> None:
        body = rest.pop(0) if len(rest) > 1 else rest[0]
        answering(body)(connection)

    return serve
