"""An engine whose text is llama.cpp's and whose device work is real calls: `-m rig.gpu.front`.

It reacts to device errors as vLLM does: 500 for what does not fit, and its own end for the rest.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from threading import Event, Thread
from typing import NoReturn

from rig.engine import load, model_path
from rig.gpu.core import Core
from rig.gpu.errors import Absent, EngineDead, WorkerDied
from rig.gpu.guarded import ContextGone
from rig.gpu.log import fatal
from rig.gpu.options import Options, options
from rig.gpu.ranks import Ranks
from rig.gpu.room import Room
from rig.gpu.server import Server
from rig.gpu.watchdog import patrol
from rig.ports import free_ports

STOP = 2.0  # seconds for the device's thread to leave


class Front:
    """One engine process, from the first rank's start to its own exit code."""

    def __init__(self, wanted: Options) -> None:
        self._wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._code: asyncio.Future[int] = self._loop.create_future()
        self._stopping = Event()
        self._server: Server | None = None
        self._ranks = Ranks(wanted.settings.ranks, wanted.rank_options)
        self._core = Core(wanted.settings, self._ranks, self.dead, wanted.rebuilds)

    async def run(self) -> int:
        """Serve until SIGTERM (0) or the engine's death (1; no device 2, by its guard 75)."""
        Thread(target=self._ranks.watch, args=(self._rank_died,), daemon=True).start()
        with suppress(EngineDead):
            port = await self._start()
            print(f"front {self._wanted.alias} listens on http://127.0.0.1:{port}", flush=True)
        code = await self._code
        self._stopping.set()
        if code == 0:
            self._core.stop(STOP)
        self._ranks.close()
        return code

    async def _start(self) -> int:
        wanted = self._wanted
        (inner,) = free_ports([0])
        text = self._loop.run_in_executor(None, load, wanted.engine(inner))
        await self._core.start()
        self._llama = await text
        guard = (self._core, wanted.limits, self.dead, self._stopping)
        Thread(target=patrol, args=guard, daemon=True).start()
        room = Room(wanted.parallel, wanted.settings.pool or None)
        self._server = Server(self._core, room, inner, wanted.hung)
        self._listener = await asyncio.start_server(
            self._server.connection, "127.0.0.1", wanted.port
        )
        # llama.cpp's threads are up and keep them blocked; here they are for the loop.
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            self._loop.add_signal_handler(number, self._finish, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return wanted.port

    def _rank_died(self, rank: int) -> None:
        if not self._stopping.is_set():
            self.dead(WorkerDied(rank))

    def dead(self, error: Exception) -> None:
        """From any thread: the engine cannot go on."""
        self._loop.call_soon_threadsafe(self._died, error)

    def _died(self, error: Exception) -> None:
        if self._core.error is not None or self._code.done():
            return
        fatal(error)
        self._core.die(error)
        if self._server is not None:
            self._server.abort()
        code = 2 if isinstance(error, Absent) else 1
        if isinstance(error, ContextGone):
            code = error.exit_code
        self._loop.call_later(self._wanted.linger if self._server else 0, self._finish, code)

    def _finish(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)


async def serve(wanted: Options) -> NoReturn:
    """Leave by `_exit`: the device's thread may never return, and llama.cpp's need no goodbye."""
    try:
        code = await Front(wanted).run()
    except (OSError, RuntimeError) as refused:  # the port is taken, or llama.cpp would not start
        print(f"front {wanted.alias} could not start: {refused}", file=sys.stderr)
        code = 1
    sys.stdout.flush()
    os._exit(code)


def main() -> NoReturn:
    """Exit 2 when the model or the device is missing, 1 after the engine's death."""
    wanted = options()
    try:
        model_path(wanted.model)
    except FileNotFoundError as absent:
        print(absent, file=sys.stderr)
        sys.exit(2)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    asyncio.run(serve(wanted))
    raise AssertionError("`serve` does not return")


if __name__ == "__main__":
    main()
