"""Signals that ask a campaign to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from chaos.progress import tell


@contextmanager
def stoppable(stop: asyncio.Event, console: Console) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the run in order; a second one hurries nothing, for it would
    leave the fault where it is.
    """
    loop = asyncio.get_running_loop()

    def asked_to_stop() -> None:
        again = stop.is_set()
        stop.set()
        tell(console, "still undoing what was injected" if again else "stopping: undoing …")

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, asked_to_stop)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
