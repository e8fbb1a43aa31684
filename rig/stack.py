"""The whole rig as one object: engines, a gateway before them, a load, each a real process.

Parts die with the process that started them, even by SIGKILL. Surprise: the kernel ties them to
the *thread* that called `start`, so start from one that lives as long as the stack.
"""

import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

from rig import litellm_proxy, load, vllm_engine
from rig.engine import model_path
from rig.gateway import Launch, plan
from rig.gpu.node import Node
from rig.part import Part, State, Status
from rig.plan import Plan
from rig.ports import free_ports
from rig.truth import Summary, read

__all__ = ["ENGINE", "LOAD", "Plan", "Stack"]
LOAD, ENGINE = "load", "engine-"  # names of parts; the gateway's is its own
READY = 20.0  # seconds for all parts to answer, unless one of them is known to be slow
STOP = 5.0  # seconds between SIGTERM and SIGKILL


def interposer() -> Path:
    """The library that breaks engines; imported only by a stack whose engines may be broken."""
    from chaos.interposer.library import library

    return Path(library())


class Stack:
    """A rig that is up between `start` and `stop`, or inside `with`."""

    def __init__(self, wanted: Plan | None = None) -> None:
        self.plan = wanted or Plan()
        wishes = [self.plan.engine_port + at for at in range(self.plan.engines)]
        self.gateway_port, self.admin_port, *rest = free_ports(
            [self.plan.gateway_port, self.plan.admin_port, *wishes]
        )
        self.engine_ports = tuple(rest)
        self.gateway_name = self.plan.gateway
        self.folder = self.plan.folder.absolute()
        self._parts: dict[str, Part] = {}
        self._launch: Launch | None = None
        self._booted = False
        self.node = Node(  # unused without `gpu`
            self.folder / "gpu",
            self.plan.engines,
            self.plan.gpu_ranks,
            self.plan.gpu_front,
            self.plan.gpu_supervisor,
            chaos=self.plan.chaos,
            preload=interposer,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where clients send requests: the gateway."""
        return f"http://127.0.0.1:{self.gateway_port}"

    @property
    def engine_urls(self) -> tuple[str, ...]:
        """Where each engine answers, `/metrics` included."""
        return tuple(f"http://127.0.0.1:{port}" for port in self.engine_ports)

    @property
    def admin_url(self) -> str:
        """The gateway's own statistics in Prometheus text."""
        return self._planned().metrics_url

    @property
    def key(self) -> str | None:
        """What clients have to send as a bearer token; None when the gateway wants none."""
        return self._planned().key

    @property
    def gpu_environment(self) -> dict[str, str]:
        """Variables for the process that is to see the devices; none without `gpu`."""
        return self.node.environment() if self.plan.gpu else {}

    @property
    def gpu_fronts(self) -> dict[str, int]:
        """With `gpu`: the engines' own processes below their supervisors, those that are up."""
        engines = range(self.plan.engines if self.plan.gpu else 0)
        found = {f"{ENGINE}{at}": self.node.front_pid(at) for at in engines}
        return {name: pid for name, pid in found.items() if pid is not None}

    @property
    def gpu_library_folder(self) -> Path | None:
        """Where the driver's libraries lie; None without `gpu`."""
        return self.node.libraries() if self.plan.gpu else None

    @property
    def truth_file(self) -> Path:
        """The load's summary, replaced every second while it runs."""
        return self.folder / "load.json"

    @property
    def pids(self) -> dict[str, int]:
        """The processes of parts that have not ended."""
        ended = (State.STOPPED, State.DONE, State.DEAD)
        return {name: now.pid for name, now in self.parts().items() if now.state not in ended}

    def parts(self) -> dict[str, Status]:
        """What every part is doing now."""
        return {name: part.status() for name, part in self._parts.items()}

    def truth(self) -> Summary | None:
        """What the client has seen so far; None in its first second."""
        return read(self.truth_file)

    def check(self) -> None:
        """Raise `PartDied`, with the log's tail, for the first part that has died."""
        for part in self._parts.values():
            part.check()

    def start(self) -> None:
        """Bring everything up. On any error nothing is left running.

        Raises FileNotFoundError (no such model), `gateway.Absent`, `PartDied`, TimeoutError.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.plan.serving == "llama.cpp":
            model_path(self.plan.model)  # written or missed here, not in two engines at once
        self.boot()
        try:
            for at in range(self.plan.engines):
                self._start_engine(at)
            self._start_gateway()
            deadline = monotonic() + self._patience
            for part in self._parts.values():
                part.wait_ready(deadline)
            if self.plan.load:
                self.start_load()
        except BaseException:
            self.stop()
            raise

    def boot(self) -> None:
        """Makes the GPU node once, before what reads it or works on it; nothing without `gpu`."""
        if self.plan.gpu and not self._booted:
            self.node.prepare()
            self._booted = True

    def start_load(self) -> None:
        """Begin to send requests; for a caller that wants to watch from the first one."""
        self.truth_file.unlink(missing_ok=True)
        options: tuple[str, ...] = ("--url", self.url, "--json", str(self.truth_file))
        for name in ("rate", "tokens", "clients", "seed", "seconds"):
            value = getattr(self.plan, name)
            options += () if value is None else (f"--{name}", str(value))
        environment = {} if self.key is None else {load.KEY: self.key}
        command = (sys.executable, "-m", "rig.load", *options)
        self._run(LOAD, command, environment=environment)

    def restart(self, name: str) -> None:
        """Start an ended part again, on the same port, and wait until it answers."""
        if name == LOAD:
            self.start_load()
        elif name == self.gateway_name:
            self._start_gateway()
        else:
            self._start_engine(int(name.removeprefix(ENGINE)))
        self._parts[name].wait_ready(monotonic() + self._patience)

    def kill(self, name: str) -> None:
        """SIGKILL: as a crash."""
        self._parts[name].send(signal.SIGKILL)
        self._parts[name].reap(monotonic() + STOP)

    def freeze(self, name: str) -> None:
        """SIGSTOP: it keeps its ports and answers nobody."""
        self._parts[name].send(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """SIGCONT, after `freeze`."""
        self._parts[name].send(signal.SIGCONT)

    def stop(self, *names: str) -> None:
        """End these parts, or all: then the load first, or requests fail for our leaving."""
        if names:
            self._stop(names)
            return
        self._stop([name for name in self._parts if name == LOAD])
        self._stop([name for name in self._parts if name != LOAD])

    def _stop(self, names: Sequence[str]) -> None:
        for name in names:
            self._parts[name].terminate()
        deadline = monotonic() + STOP
        for name in names:
            self._parts[name].reap(deadline)

    @property
    def _patience(self) -> float:
        vllm = vllm_engine.READY if self.plan.serving == "vllm" else READY
        return max(vllm, litellm_proxy.READY if self.gateway_name == "litellm" else READY)

    def _start_engine(self, at: int) -> None:
        port = self.engine_ports[at]
        if self.plan.serving == "vllm":
            vllm = vllm_engine.plan(port, self.plan.overload)
            self._run(f"{ENGINE}{at}", vllm.command, vllm.ready_url, vllm.environment)
            return
        command: tuple[str, ...] = (sys.executable, "-m", "rig.engine", "--port", str(port))
        command += ("--model", self.plan.model)
        if self.plan.gpu:
            command = self.node.command(at, port, self.plan.model)
        self._run(f"{ENGINE}{at}", command, f"http://127.0.0.1:{port}/health")

    def _planned(self) -> Launch:
        """The gateway's launch, made once: some have a key that is made with it."""
        if self._launch is None:
            self._launch = plan(
                self.gateway_name,
                self.folder,
                self.gateway_port,
                self.admin_port,
                self.engine_ports,
            )
        return self._launch

    def _start_gateway(self) -> None:
        launch = self._planned()
        self._run(self.gateway_name, launch.command, launch.ready_url, launch.environment)

    def _run(
        self,
        name: str,
        command: Sequence[str],
        ready_url: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._parts[name] = Part(name, command, self.folder, ready_url, environment)
