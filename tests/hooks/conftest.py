"""Guarded processes on a stand-in machine, and guards on a driver that is only told of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import modelprobe_hooks
import pytest

from rig import driver

HERE = Path(__file__).parent
HOOKS = Path(modelprobe_hooks.__file__).parents[1]
PATIENCE = 20.0  # seconds for a process to end
BEGIN = """
import os, signal, sys, threading, time
from engine import *
from modelprobe_hooks.guard import ContextLost, Guard, Leave, State
"""


@dataclass(frozen=True)
class Ended:
    """A process that has ended: what it told, its log, its exit code."""

    told: list[dict[str, Any]]
    log: str
    code: int


@dataclass
class Inside:
    """Runs scripts in processes of one stand-in machine."""

    machine: driver.Configuration
    folder: Path

    def run(self, script: str, begin: str = BEGIN, **variables: str) -> Ended:
        """The script's end; `begin` imports `engine`'s words and the guard's."""
        path = os.pathsep.join((str(HERE), str(HOOKS)))
        done = subprocess.run(
            (sys.executable, "-c", begin + dedent(script)),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env={**os.environ, **driver.environment(self.folder), "PYTHONPATH": path, **variables},
        )
        told = [json.loads(line) for line in done.stdout.splitlines()]
        return Ended(told, done.stderr, done.returncode)


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    """A machine with one device; skips where no stand-in can be built."""
    try:
        driver.build()
    except driver.Unavailable as reason:
        if driver.lacking():
            pytest.skip(str(reason))
        raise
    machine = driver.Configuration(tmp_path)
    machine.update({"devices": 1, "memory.total": 1 << 30, "kernel.seconds": 1e-6})
    return Inside(machine, tmp_path)


@dataclass
class Told:
    """A driver that answers each look with the next code, and then with the last."""

    codes: list[int] = field(default_factory=lambda: [0])

    def look(self) -> int:
        return self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]


@dataclass
class Clock:
    """Time that passes when it is waited for."""

    now: float = 100.0
    waits: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    """A clock at 100 s."""
    return Clock()
