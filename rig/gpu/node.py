"""A small GPU node for a stack: each rank of each engine has a stand-in device of its own.

That is what a node looks like on which tensor-parallel engines run: real NCCL refuses two ranks on
one device. Engine N has devices N * ranks and up, and sees them as 0 and up.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rig import driver
from rig.gateway import Absent
from rig.gpu.events import DIED, Log

MEMORY = 24 << 30  # bytes a device: small, so that a request's blocks show
KERNEL = 50e-6  # seconds: a step is about 1.6 ms, a third of what llama.cpp takes for it
CONTEXT = 256 << 20  # bytes that a CUDA context takes by itself


@dataclass(frozen=True, slots=True)
class Node:
    """`front` and `supervisor` are further options of those two programs.

    `chaos` names the environment in which the engines may be broken, through the library `preload`.
    """

    folder: Path
    engines: int = 2
    ranks: int = 2
    front: tuple[str, ...] = ()
    supervisor: tuple[str, ...] = ()
    build: Callable[[], Path] = driver.build
    chaos: str | None = None
    preload: Callable[[], Path] | None = None  # asked for when an engine is started

    def prepare(self) -> None:
        """A machine that has just booted; raises `gateway.Absent` without a compiler."""
        try:
            self.build()
        except driver.Unavailable as reason:
            raise Absent(f"no stand-in GPU: {reason}") from None
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "state").unlink(missing_ok=True)
        for at in range(self.engines):
            self.events(at).path.unlink(missing_ok=True)
            self.page(at).unlink(missing_ok=True)  # what was armed before must not be after
        self.configuration().update(
            {
                "devices": self.engines * self.ranks,
                "memory.total": MEMORY,
                "context_memory": CONTEXT,
                "kernel.seconds": KERNEL,
            }
        )

    def configuration(self) -> driver.Configuration:
        """The machine's behaviour, to be changed while it runs; a new object knows no old keys."""
        return driver.Configuration(self.folder)

    def environment(self) -> dict[str, str]:
        """For a process that is to see all of its devices, such as an NVML collector."""
        return driver.environment(self.folder)

    def libraries(self) -> Path:
        """Where libcuda.so.1, libnccl.so.2 and libnvidia-ml.so.1 lie."""
        return driver.build()

    def events(self, at: int) -> Log:
        """What the supervisor of engine `at` did."""
        return Log(self.folder / f"engine-{at}.jsonl")

    def page(self, at: int) -> Path:
        """Where the engine `at` looks for what is to be broken in it; made by who breaks it."""
        return self.folder / f"engine-{at}.page"

    def front_pid(self, at: int) -> int | None:
        """The engine itself, below its supervisor; None while it is down."""
        pid: int | None = None
        for event in self.events(at).read():
            if event["event"] in ("started", "restarted"):
                pid = int(str(event["pid"]))
            elif event["event"] in (DIED, "stopped"):
                pid = None
        return pid

    def command(self, at: int, port: int, model: str) -> tuple[str, ...]:
        """Engine `at`: its supervisor, which starts the front, which starts the ranks."""
        devices = ",".join(str(at * self.ranks + rank) for rank in range(self.ranks))
        own = ("--port", str(port), "--events", str(self.events(at).path), "--devices", devices)
        front = ("--model", model, "--ranks", str(self.ranks), *self.front)
        program = (sys.executable, "-m", "rig.gpu.supervisor")
        machine = ("--standin", str(self.folder), *self._target(at))
        return (*program, *own, *machine, *self.supervisor, "--", *front)

    def _target(self, at: int) -> tuple[str, ...]:
        """What makes engine `at` a target of chaos; nothing without its environment's name."""
        if self.chaos is None or self.preload is None:
            return ()
        page = ("--page", str(self.page(at)))
        return ("--preload", str(self.preload()), *page, "--target", self.chaos)
