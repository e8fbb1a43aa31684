"""Real servers of known content, started and ended: the scripted one alone or behind a gateway."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from rig import caddy, envoy, haproxy, nginx, uvicorn
from rig.gateway import Absent, Launch
from rig.part import Part, State
from rig.ports import free_ports
from rig.tiny import Dims, cached
from sidecar.signals import Leg

READY = 60.0  # seconds, on a machine that has other things to do
SMALL = Dims(width=128, layers=3, heads=4, feed_forward=320)  # a model that answers at once
CACHE = Path(__file__).parents[2] / ".cache"
Planner = Callable[[Path, int, int, Sequence[int]], Launch]


def _nginx_defaults(folder: Path, port: int, admin_port: int, engines: Sequence[int]) -> Launch:
    return nginx.plan(folder, port, admin_port, engines, streaming=False)


GATEWAYS: dict[str, Planner] = {
    "envoy": envoy.plan,
    "haproxy": haproxy.plan,
    "nginx": nginx.plan,
    "nginx-defaults": _nginx_defaults,
    "caddy": caddy.plan,
}
SLOW = pytest.mark.slow  # of those that are left for a run by hand
SCRIPTED = ("asyncio-h11", "asyncio-httptools", "uvloop-h11", "uvloop-httptools")


@dataclass(frozen=True, slots=True)
class Served:
    """Where clients ask, where the engine listens (the same without a gateway), the processes."""

    port: int
    engine_port: int
    server: Part
    engine: Part

    @property
    def legs(self) -> dict[int, Leg]:
        """What to watch."""
        return {self.engine_port: Leg.UPSTREAM, self.port: Leg.DOWNSTREAM}


@contextmanager
def running(launch: Launch, folder: Path, seconds: float = READY) -> Iterator[Part]:
    """A launch's process once it answers, until the block ends."""
    part = Part(launch.name, launch.command, folder, launch.ready_url, launch.environment)
    try:
        part.wait_ready(monotonic() + seconds)
        yield part
        now = part.status()
        killed = now.exit_code == -signal.SIGKILL  # which only tests send
        assert killed or now.state is not State.DEAD, f"{now.detail}: {part.tail()}"
    finally:
        part.terminate()
        part.reap(monotonic() + 2)


def planned(plan: Callable[[], Launch]) -> Launch:
    """Skips the test, with the reason, where the program is absent."""
    try:
        return plan()
    except Absent as absent:
        pytest.skip(str(absent))


def llama(port: int, parallel: int = 4) -> Launch:
    """The real llama.cpp with a model so small that it costs next to nothing."""
    command = (sys.executable, "-m", "rig.engine", "--port", str(port))
    command += ("--model", str(cached(CACHE, SMALL)), "--parallel", str(parallel))
    url = f"http://127.0.0.1:{port}"
    return Launch("llama.cpp", command, f"{url}/health", f"{url}/metrics")


def scripted(port: int, kind: str = "asyncio-h11") -> Launch:
    """The scripted application under uvicorn."""
    loop, http = kind.split("-")
    return planned(lambda: uvicorn.plan(port, loop, http))


@contextmanager
def serving(folder: Path, kind: str, engine: str = "asyncio-h11") -> Iterator[Served]:
    """One of SCRIPTED or "llama.cpp" alone, or one of GATEWAYS before the engine of that kind."""
    folder.chmod(0o755)  # nginx's workers are another user's when root starts it
    port, admin, engine_port = free_ports([0, 0, 0])
    with ExitStack() as stack:
        if kind not in GATEWAYS:
            launch = llama(port) if kind == "llama.cpp" else scripted(port, kind)
            part = stack.enter_context(running(launch, folder))
            yield Served(port, port, part, part)
            return
        gateway = planned(lambda: GATEWAYS[kind](folder, port, admin, [engine_port]))
        launch = llama(engine_port) if engine == "llama.cpp" else scripted(engine_port, engine)
        first = stack.enter_context(running(launch, folder))
        part = stack.enter_context(running(gateway, folder))
        yield Served(port, engine_port, part, first)
