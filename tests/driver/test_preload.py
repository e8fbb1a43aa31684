"""A preload hook before the stand-ins: it sees what the linker binds by name, and nothing else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig import driver

from .conftest import Machine, eventually

HERE = Path(__file__).parent
SIZES = [2, 3, 257, 4099, 65537, 104729, 611953, 1299709, 2097593, 7, 11, 13, 17]
BINDINGS = {
    "lazy": ["-fplt", "-Wl,-z,lazy"],
    "now": ["-fplt", "-Wl,-z,now"],
    "no-plt": ["-fno-plt"],
}


def charged(sizes: list[int]) -> int:
    """What a card has less: each allocation is rounded up to 512 bytes."""
    return sum(-(-size // 512) * 512 for size in sizes)


@dataclass(slots=True)
class Built:
    """Where the hook is, and the program by how its calls are bound."""

    shim: Path
    programs: dict[str, Path]


@pytest.fixture(scope="module")
def built(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The hook and the program, compiled."""
    folder = tmp_path_factory.mktemp("preload")
    made = Built(folder / "shim.so", {name: folder / name for name in BINDINGS})
    strict = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror"]
    shared = ["-shared", "-fPIC", str(HERE / "shim.c"), "-o", str(made.shim), "-ldl"]
    subprocess.run([*strict, *shared], check=True)
    for name, options in BINDINGS.items():
        program = [*options, str(HERE / "linked.c"), "-o", str(made.programs[name])]
        linked = [f"-L{libraries}", "-l:libcuda.so.1", "-l:libcudart.so.13"]
        subprocess.run([*strict, *program, *linked], check=True)
    return made


class Run:
    """The program under the hook; it holds its memory until `finish`."""

    def __init__(
        self, built: Built, folder: Path, binding: str, words: list[object], refuse: int = 0
    ) -> None:
        self.popen = subprocess.Popen(
            [str(built.programs[binding]), *map(str, words)],
            env={
                **os.environ,
                **driver.environment(folder),
                "LD_PRELOAD": str(built.shim),
                "SHIM_REFUSE": str(refuse),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self.popen.pid

    def codes(self, count: int) -> list[int]:
        """The codes of so many allocations."""
        assert self.popen.stdout
        return [int(self.popen.stdout.readline()) for _ in range(count)]

    def finish(self) -> str:
        """Lets it end without a free; what the hook then says."""
        said = self.popen.communicate("\n")[1]
        assert self.popen.returncode == 0, said
        return said.strip()


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    """Programs to be ended when the test is over."""
    started: list[Run] = []
    yield started
    for run in started:
        run.popen.kill()
        run.popen.communicate()


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_hook_sees_each_call_that_is_linked(
    machine: Machine, built: Built, runs: list[Run], binding: str
) -> None:
    """Thirteen calls and their bytes, however bound; NVML shows them until the process ends."""
    watcher = machine.process()
    run = Run(built, machine.folder, binding, ["direct", *SIZES])
    runs.append(run)
    assert run.codes(13) == [0] * 13
    (row,) = watcher.nvml("nvmlDeviceGetComputeRunningProcesses", 0)
    assert (row["pid"], row["usedGpuMemory"]) == (run.pid, charged(SIZES))
    assert run.finish() == f"calls 13 bytes {sum(SIZES)}"
    eventually(lambda: watcher.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0)
    assert watcher.nvml("nvmlDeviceGetComputeRunningProcesses", 0) == []


def test_a_hook_can_refuse_a_call_that_then_costs_nothing(
    machine: Machine, built: Built, runs: list[Run]
) -> None:
    """The seventh is 2 and no memory; the rest is held, and goes with a SIGKILL as well."""
    watcher = machine.process()
    run = Run(built, machine.folder, "no-plt", ["direct", *SIZES], refuse=7)
    runs.append(run)
    assert run.codes(13) == [0] * 6 + [2] + [0] * 6
    held = charged([size for place, size in enumerate(SIZES) if place != 6])
    assert watcher.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == held
    run.popen.kill()
    eventually(lambda: watcher.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0)


@pytest.mark.parametrize("way", ["pointer", "runtime"])
def test_a_hook_misses_what_is_looked_up(
    machine: Machine, built: Built, runs: list[Run], way: str
) -> None:
    """CuGetProcAddress gives the driver's own address, and the runtime takes all it calls there."""
    watcher = machine.process()
    run = Run(built, machine.folder, "lazy", ["direct", 3, 5, way, *SIZES, "direct", 7])
    runs.append(run)
    assert run.codes(16) == [0] * 16
    used = watcher.nvml("nvmlDeviceGetMemoryInfo", 0)["used"]
    assert used == charged([3, 5, *SIZES, 7])
    assert run.finish() == "calls 3 bytes 15"
