"""Keeps an engine front running: restarts it with back-off, and misbehaves where it is told to.

`python -m rig.gpu.supervisor --port P --events FILE [faults] -- [options of the front]`. What it
started ends with it, on SIGTERM and when it or its own parent is killed.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from rig.gpu.events import DIED, Log
from rig.gpu.hidden import Chosen, Hidden
from rig.gpu.liar import lying
from rig.gpu.preload import environment
from rig.gpu.standin import become
from rig.part import TETHER, answers

MODULE = "rig.gpu.supervisor"
GAVE_UP = 3  # exit code
POLL = 0.05  # seconds between two looks at a front that is not ready
GRACE = 3.0  # seconds between SIGTERM and SIGKILL
Process = asyncio.subprocess.Process


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to keep running, and how patiently. Seconds."""

    port: int
    front: tuple[str, ...]
    hidden: Hidden
    backoff: float = 0.2
    backoff_most: float = 10.0
    stable: float = 10.0  # so long ready, and the back-off starts anew
    attempts: int = 5  # starts in a row that came to nothing
    environment: Mapping[str, str] = field(default_factory=dict)  # of the front and its ranks alone


class Supervisor:
    """One front, over its lives."""

    def __init__(self, wanted: Wanted, log: Log) -> None:
        self._wanted, self._log = wanted, log
        self._stop = asyncio.Event()
        self._leftovers: list[Process] = []
        self._delay = wanted.backoff
        self._failed = 0

    async def run(self) -> int:
        """Until SIGTERM (0), or until it gives up (3)."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        event, code = "started", None
        while code is None:
            code = await self._life(event)
            event = "restarted"
        for process in self._leftovers:
            process.kill()
            await process.wait()
        if self._stop.is_set():
            self._log.write("stopped")
        return code

    async def _life(self, event: str) -> int | None:
        """One start to one death, and what comes before the next; the exit code to leave."""
        front = ("-m", "rig.gpu.front", "--port", str(self._wanted.port), *self._wanted.front)
        process = await spawn(*front, more=self._wanted.environment)
        self._log.write(event, pid=process.pid)
        began = asyncio.get_running_loop().time()
        ready = await self._watch(process)
        if self._stop.is_set():
            await end(process)
            return 0
        chosen, death = self._choose(), self._log.deaths()
        self._log.write(DIED, pid=process.pid, code=process.returncode, ready=ready)
        for name in chosen.names:
            self._log.write("fault", name=name, death=death)
        lived = asyncio.get_running_loop().time() - began
        return await self._between(chosen, self._patience(ready, lived))

    def _choose(self) -> Chosen:
        return self._wanted.hidden.at(self._log.deaths())

    def _patience(self, ready: bool, lived: float) -> float:
        """Seconds to wait before the next start."""
        self._failed = 0 if ready else self._failed + 1
        if ready and lived > self._wanted.stable:
            self._delay = self._wanted.backoff
        delay = self._delay
        self._delay = min(2 * delay, self._wanted.backoff_most)
        return delay

    async def _watch(self, process: Process) -> bool:
        """Return at its end or ours; whether it has been ready."""
        ended = asyncio.ensure_future(process.wait())
        stopped = asyncio.ensure_future(self._stop.wait())
        ready, url = False, f"http://127.0.0.1:{self._wanted.port}/health"
        while not (ended.done() or stopped.done()):
            pause = None if ready else POLL
            await asyncio.wait({ended, stopped}, timeout=pause, return_when="FIRST_COMPLETED")
            if not (ready or ended.done()) and await asyncio.to_thread(answers, url):
                ready = True
                self._log.write("ready", pid=process.pid)
        stopped.cancel()
        return ready

    async def _between(self, chosen: Chosen, delay: float) -> int | None:
        """From a death to the next start; an exit code when there is none."""
        async with lying(self._wanted.port if chosen.lie else None):
            if chosen.leak:
                await self._leak()
            if chosen.fail or self._failed >= self._wanted.attempts:
                self._log.write("gave_up", hidden=chosen.fail)
                if chosen.lie:  # to lie it has to stay
                    await self._stop.wait()
                return GAVE_UP
            if chosen.slow:
                delay += self._wanted.hidden.slow_seconds
            stopped = await within(self._stop, delay)
        return 0 if stopped else None

    async def _leak(self) -> None:
        """A process that holds memory from now on; its bytes are there when this returns."""
        count = self._wanted.hidden.leak_bytes
        process = await spawn(
            "-m", "rig.gpu.leftover", "--bytes", str(count), out=asyncio.subprocess.PIPE
        )
        self._leftovers.append(process)
        if process.stdout is not None and await process.stdout.readline():
            self._log.write("leaked", pid=process.pid, bytes=count)


async def spawn(
    *arguments: str, out: int | None = None, more: Mapping[str, str] | None = None
) -> Process:
    """Our Python with these arguments and `more` variables, which dies with us."""
    tether = (str(TETHER), str(os.getpid()), sys.executable)
    return await asyncio.create_subprocess_exec(
        sys.executable, *tether, *arguments, stdout=out, env={**os.environ, **(more or {})}
    )


async def end(process: Process) -> None:
    """SIGTERM, also for a stopped one; then SIGKILL."""
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
    try:
        await asyncio.wait_for(process.wait(), GRACE)
    except TimeoutError:
        process.kill()
        await process.wait()


async def within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event came in time."""
    try:
        return await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False


def parser() -> argparse.ArgumentParser:
    """The command line before `--`."""
    found = argparse.ArgumentParser(prog="python -m rig.gpu.supervisor", description=__doc__)
    found.add_argument("--port", type=int, required=True)
    found.add_argument("--events", type=Path, required=True, help="JSON lines are appended here")
    found.add_argument("--standin", type=Path, help="folder of a stand-in machine to run on")
    found.add_argument("--devices", help="for this engine, as in CUDA_VISIBLE_DEVICES")
    found.add_argument("--backoff", type=float, default=0.2, help="seconds, doubled each time")
    found.add_argument("--backoff-most", type=float, default=10.0, help="seconds")
    found.add_argument("--stable", type=float, default=10.0, help="seconds, then --backoff anew")
    found.add_argument("--attempts", type=int, default=5, help="failed starts before giving up")
    found.add_argument("--preload", type=Path, help="library for the engine (LD_PRELOAD)")
    found.add_argument("--page", type=Path, help="its page; both with --target")
    found.add_argument("--target", help="the environment in which the engine may be broken")
    for item in fields(Hidden):
        flag = f"--{item.name.replace('_', '-')}"
        found.add_argument(flag, type=type(item.default), default=item.default)
    return found


def main() -> int:
    """Exit 0 when asked to end, 3 when it gave up, 2 for bad options."""
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    found = parser()
    args = found.parse_args(arguments[:at])
    try:
        hidden = Hidden(**{item.name: getattr(args, item.name) for item in fields(Hidden)})
        more = environment(args.preload, args.page, args.target, os.environ)
    except ValueError as wrong:
        found.error(str(wrong))
    if args.standin is not None:
        become(MODULE, args.standin, args.devices)
    front = tuple(arguments[at + 1 :])
    patience = (args.backoff, args.backoff_most, args.stable, args.attempts)
    wanted = Wanted(args.port, front, hidden, *patience, environment=more)
    return asyncio.run(Supervisor(wanted, Log(args.events)).run())


if __name__ == "__main__":
    sys.exit(main())
