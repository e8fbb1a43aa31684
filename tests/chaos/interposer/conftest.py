"""A program on the stand-in driver with the interposer before it, and the page between us."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chaos.interposer.library import MACHINES, library
from chaos.interposer.page import Page
from rig import driver

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PATIENCE = 10.0


def eventually(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The first true value of the condition; fails after that time."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, "it did not come true"
        select.select([], [], [], 0.002)
    return value


def compiled(folder: Path, name: str, *words: str) -> Path:
    """A program or library of these words for gcc."""
    made = folder / name
    flags = ["-O2", "-Wall", "-Werror"]
    subprocess.run(["gcc", *flags, *words, "-o", str(made)], check=True)  # noqa: S607 - from PATH
    return made


class Target:
    """The program of `caller.c`; commands and answers are lines."""

    def __init__(self, program: Path, environment: dict[str, str]) -> None:
        self.popen = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            bufsize=1,
        )
        self.pid = self.popen.pid
        assert self.answer() == "ready"

    def send(self, *words: object) -> None:
        assert self.popen.stdin
        self.popen.stdin.write(" ".join(map(str, words)) + "\n")

    def silent(self, seconds: float = 0.0) -> bool:
        """Whether there is no answer after that time."""
        assert self.popen.stdout
        return not select.select([self.popen.stdout], [], [], seconds)[0]

    def answer(self) -> str:
        assert self.popen.stdout
        assert not self.silent(PATIENCE), "no answer"
        line = self.popen.stdout.readline().strip()
        assert line, f"it ended: {self.popen.wait()}"
        return line

    def codes(self) -> dict[int, int]:
        """An answer's codes, and how often each."""
        pairs = (pair.split(":") for pair in self.answer().split())
        return {int(code): int(count) for code, count in pairs}

    def run(
        self, way: str, name: str, count: int = 1, size: int = 1, command: str = "run"
    ) -> dict[int, int]:
        """What so many calls were answered."""
        self.send(command, way, name, count, size)
        return self.codes()

    def close(self) -> str:
        """Ends it as its user would; what it wrote to stderr. It must not have crashed."""
        assert self.popen.stdin
        assert self.popen.stderr
        assert self.popen.stdout
        self.popen.stdin.close()
        said = self.popen.stderr.read()
        assert self.popen.wait(PATIENCE) == 0, said
        self.popen.stdout.close()
        self.popen.stderr.close()
        return said

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


@dataclass(slots=True)
class Stage:
    """One stand-in machine, its targets and their page."""

    folder: Path
    programs: dict[str, Path]
    configuration: driver.Configuration
    targets: list[Target] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.folder / "page"

    def environment(self, **variables: str) -> dict[str, str]:
        return {
            **os.environ,
            **driver.environment(self.folder),
            "LD_PRELOAD": str(library()),
            "MODELPROBE_CHAOS_PAGE": str(self.path),
            **variables,
        }

    def target(self, program: str = "plain", **variables: str) -> Target:
        made = Target(self.programs[program], self.environment(**variables))
        self.targets.append(made)
        return made

    def page(self) -> Page:
        made = Page.open(self.path)
        self.pages.append(made)
        return made

    def holder(self, lease: float, symbol: str, code: int) -> subprocess.Popen[str]:
        """An injector in a process of its own, armed."""
        made = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "holder.py"),
                str(self.path),
                str(lease),
                symbol,
                str(code),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert made.stdout
        assert made.stdout.readline() == "armed\n"
        return made


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`caller.c` by how its calls are bound; skips where nothing can be built, or run."""
    if os.uname().machine not in MACHINES:
        pytest.skip(f"the interposer is not built for {os.uname().machine}")
    try:
        libraries = driver.build()
    except driver.Unavailable as reason:
        if driver.lacking():
            pytest.skip(str(reason))
        raise
    folder = tmp_path_factory.mktemp("interposer")
    linked = [f"-L{libraries}", "-l:libcuda.so.1", "-l:libnccl.so.2", "-pthread"]
    source = str(HERE / "caller.c")
    return {
        "plain": compiled(folder, "plain", "-fplt", source, *linked),
        "no-plt": compiled(folder, "no-plt", "-fno-plt", "-Wl,-z,now", source, *linked),
    }


@pytest.fixture
def stage(programs: dict[str, Path], tmp_path: Path) -> Iterator[Stage]:
    """An empty machine of one device; what runs on it is ended with the test."""
    made = Stage(tmp_path, programs, driver.Configuration(tmp_path))
    made.configuration.update({"memory.total": 1 << 40, "kernel.seconds": 0})
    yield made
    for page in made.pages:
        page.close()
    for target in made.targets:
        target.kill()
