"""A stand-in machine for each test: a folder, its configuration, and processes on it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rig import driver

INSIDE = Path(__file__).with_name("inside.py")
PATIENCE = 10.0


def eventually(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The first true value of the condition; fails after that time."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, "it did not come true"
        select.select([], [], [], 0.005)
    return value


class Process:
    """A Python with the stand-ins loaded; each method of `inside` is a method here."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, str(INSIDE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self.pid = self.popen.pid

    def send(self, name: str, *args: Any) -> None:
        """Starts a call, without waiting for it."""
        assert self.popen.stdin
        self.popen.stdin.write(json.dumps([name, args]).encode() + b"\n")
        self.popen.stdin.flush()

    def silent(self, seconds: float) -> bool:
        """Whether the call has not come back after that time."""
        assert self.popen.stdout
        return not select.select([self.popen.stdout], [], [], seconds)[0]

    def reply(self) -> Any:
        """What the call gave."""
        assert self.popen.stdout
        assert not self.silent(PATIENCE), "no answer"
        answer = json.loads(self.popen.stdout.readline())
        assert "raised" not in answer, answer["raised"]
        return answer["value"]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.send(name, *args)
            return self.reply()

        return call

    def cuda(self, function: str, *args: Any) -> Any:
        """A call of libcuda: its code, and in a list with it what it filled."""
        got = self.raw("cuda", function, *args)
        return got if len(got) > 1 else got[0]

    def close(self) -> None:
        """Ends it, also when it is stopped or blocked."""
        self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe:
                pipe.close()


class Machine:
    """Processes that share one state, and the file that says how it behaves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configuration = driver.Configuration(folder)
        self.processes: list[Process] = []

    def process(self, *, nvml: bool = True, **variables: str) -> Process:
        """A new process, with NVML initialised unless told otherwise."""
        made = Process({**driver.environment(self.folder), **variables})
        self.processes.append(made)
        if nvml:
            assert made.nvml("nvmlInit") is None
        return made


@pytest.fixture(scope="session")
def libraries() -> Path:
    """Where the built libraries lie; skips without a compiler."""
    try:
        return driver.build()
    except driver.Unavailable as reason:
        if driver.lacking():
            pytest.skip(str(reason))
        raise


@pytest.fixture
def machine(libraries: Path, tmp_path: Path) -> Iterator[Machine]:
    """A machine with two devices of 1 GiB each and nothing on them."""
    made = Machine(tmp_path)
    made.configuration.update({"devices": 2, "memory.total": 1 << 30})
    yield made
    for process in made.processes:
        process.close()
