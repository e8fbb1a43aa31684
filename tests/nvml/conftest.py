"""A stand-in machine, and a view of what the collector says of it through real pynvml."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rig import driver
from sidecar.collectors.nvml import NvmlCollector
from sidecar.collectors.nvml.protocol import Options
from sidecar.signals import Event, NoData, Sample, Signal
from sidecar.testing import wait_for

# Everything quick; a call may still take a second of a busy machine's time.
QUICK = {"fast": 0.1, "middle": 0.2, "slow": 0.2, "events": 0.1, "deadline": 1.0, "backoff": 0.2}


class View:
    """Collects when asked, keeps all events, and finds samples by name and labels."""

    def __init__(self, collector: NvmlCollector) -> None:
        self.collector = collector
        self.signals: list[Signal] = []
        self.events: list[Event] = []

    def refresh(self) -> View:
        self.signals = list(self.collector.collect(time.time()))
        self.events += [signal for signal in self.signals if isinstance(signal, Event)]
        return self

    def all(self, name: str, **labels: str) -> list[Sample]:
        """Samples of a metric (without its prefix) that carry these labels."""
        return [
            s
            for s in self.signals
            if isinstance(s, Sample)
            and s.metric.removeprefix("modelprobe_").removeprefix("gpu_") == name
            and labels.items() <= dict(s.labels).items()
        ]

    def get(self, name: str, **labels: str) -> float | None:
        """The one value, None when there is none."""
        found = self.all(name, **labels)
        assert len(found) < 2, found
        return found[0].value if found else None

    def state(self, gpu: int) -> str:
        found = [dict(s.labels)["state"] for s in self.all("state", gpu=str(gpu)) if s.value]
        return found[0] if found else ""

    def wait(self, condition: Callable[[View], object], what: str = "condition") -> View:
        """Collects until it is true."""
        wait_for(lambda: condition(self.refresh()), what=what)
        return self

    def blind(self) -> NoData:
        """Collects until that raises NoData, and gives that."""

        def raised() -> NoData | None:
            try:
                self.refresh()
            except NoData as error:
                return error
            return None

        return wait_for(raised, what="NoData")  # type: ignore[return-value]


class Machine:
    """One stand-in machine and the collectors on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configuration = driver.Configuration(folder)
        self.set = self.configuration.set
        self.update = self.configuration.update
        self.set("devices", 1)
        self._collectors: list[NvmlCollector] = []

    def collector(self, expected: int = 0, look_again: float = 0.3, **options: object):
        """A collector that is not open yet."""
        environment = {**os.environ, **driver.environment(self.folder)}
        settings = Options(**{**QUICK, **options})  # type: ignore[arg-type]
        made = NvmlCollector(expected, settings, environment, look_again)
        self._collectors.append(made)
        return made

    def view(self, expected: int = 0, look_again: float = 0.3, **options: object) -> View:
        """An open collector whose cards have all answered once."""
        made = self.collector(expected, look_again, **options)
        made.open()
        return View(made).wait(
            lambda v: v.all("up") and all(s.value for s in v.all("up")), "first answers"
        )

    def proc(self, **files: str) -> str:
        """A /proc of the host as seen from its own pid namespace, with these files."""
        proc = self.folder / "proc"
        (proc / "self" / "ns").mkdir(parents=True)
        (proc / "self" / "ns" / "pid").symlink_to("pid:[4026531836]")
        (proc / "self" / "status").write_text("Name:\tx\nNSpid:\t4000\n")
        for name, text in files.items():
            path = proc / name.removeprefix("_").replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return str(proc)

    def close(self) -> None:
        for collector in self._collectors:
            collector.close()


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The built libraries; skips where they cannot be built."""
    try:
        return driver.build()
    except driver.Unavailable as reason:
        pytest.skip(f"no stand-in driver: {reason}")


@pytest.fixture
def machine(libraries: Path, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One machine for all tests of a module."""
    made = Machine(tmp_path_factory.mktemp("machine"))
    yield made
    made.close()
