"""Loopback ports for parts that have to be told theirs before they start."""

import socket
from collections.abc import Sequence
from contextlib import ExitStack


def free_ports(wishes: Sequence[int]) -> tuple[int, ...]:
    """A loopback port for each wish: itself, or when it is taken any free one."""
    with ExitStack() as held:  # all at once, so that no two are the same
        return tuple(_bind(held, wish) for wish in wishes)


def _bind(held: ExitStack, wish: int) -> int:
    listener = held.enter_context(socket.socket())
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # TIME_WAIT is not taken
    try:
        listener.bind(("127.0.0.1", wish))
    except OSError:
        listener.bind(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    return port
