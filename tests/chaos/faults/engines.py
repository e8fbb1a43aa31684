"""A process that agreed to be broken: it has the stand-in driver loaded and does as it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.interposer.library import library
from chaos.target import CONSENT, PAGE, Target
from rig import driver

ENGINE = Path(__file__).with_name("engine.py")
needs_driver = pytest.mark.skipif(bool(driver.lacking()), reason=f"{driver.lacking()}")


@dataclass
class Engine:
    """One, with a line to it."""

    process: subprocess.Popen[str]

    @property
    def target(self) -> Target:
        return Target(f"pid:{self.process.pid}", "staging")

    def ask(self, *words: str) -> str:
        """One order, and its answer: a code of the driver's, or bytes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@contextmanager
def engine(folder: Path, ranks: int = 1) -> Iterator[Engine]:
    """Up once its context is, its ranks too."""
    more = {
        "LD_PRELOAD": str(library()),
        PAGE: str(folder / "page"),
        CONSENT: "staging",
    }
    with subprocess.Popen(
        (sys.executable, str(ENGINE), str(ranks)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | driver.environment(folder) | more,
    ) as process:
        found = Engine(process)
        try:
            assert found.ask("ready") == "ready"
            yield found
        finally:
            process.kill()


def injecting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this process one that has the driver, as an injector has."""
    for name, value in driver.environment(folder).items():
        monkeypatch.setenv(name, value)
