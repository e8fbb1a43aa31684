"""Real processes for chaos to be let loose on, and waiting for what becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from chaos.processes import Process
from tests.alarms.waiting import until

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True);"
    "time.sleep(600)"
)


@contextmanager
def started(
    *command: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child that is there, and is gone afterwards whatever became of it."""
    env = None if environment is None else {**os.environ, **environment}
    child = subprocess.Popen(command or ("sleep", "600"), stdout=subprocess.PIPE, env=env)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


@contextmanager
def sleeper(environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A child that sleeps, and ends when asked to."""
    with started(environment=environment) as child:
        yield child


@contextmanager
def stubborn() -> Iterator[subprocess.Popen[bytes]]:
    """A child that does not end when asked to."""
    with started(sys.executable, "-c", STUBBORN) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"1\n"
        yield child


def stop(child: subprocess.Popen[bytes]) -> None:
    """SIGSTOP, seen to have stopped it."""
    child.send_signal(signal.SIGSTOP)
    until(lambda: Process.from_pid(child.pid).state() == "T")


def me() -> Process:
    """The process that runs the tests."""
    return Process.from_pid(os.getpid())
