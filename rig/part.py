"""One process of the rig: started tethered to us, watched, stopped; never anybody else's.

Its output goes to a log file, whose tail is quoted when it dies.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent
TETHER = Path(__file__).with_name("tether.py")
POLL = 0.02  # seconds between two looks at a part that is not ready
TAIL = 15  # lines of a log that are quoted


class State(StrEnum):
    """What a part is doing."""

    STARTING = "starting"  # runs, and has not yet answered
    RUNNING = "running"
    FROZEN = "frozen"  # SIGSTOP: it holds its ports and answers nobody
    STOPPED = "stopped"  # by `stop`
    DONE = "done"  # ended by itself, exit 0
    DEAD = "dead"  # ended in any other way


@dataclass(frozen=True, slots=True)
class Status:
    """A part at one moment; `detail` is one line for a reader."""

    name: str
    state: State
    pid: int
    exit_code: int | None
    detail: str


class PartDied(Exception):
    """A part ended that should not have; the text names it and quotes its log."""


def answers(url: str, timeout: float = 1.0) -> bool:
    """Whether a GET of an http:// URL gives 200 within `timeout` seconds."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def frozen(pid: int) -> bool:
    """Whether the kernel has the process stopped (proc(5), the state after the name)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # reaped or going: it is not stopped
        return False
    return stat.rpartition(")")[2].split()[0] in "Tt"


class Part:
    """A running command. `ready_url` answers 200 when it is up; None: it is up at once."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        ready_url: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.ready_url = name, ready_url
        self.log = folder / f"{name}.log"
        self._ready = ready_url is None
        self._stopping = False
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                (sys.executable, str(TETHER), str(os.getpid()), *command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    **(environment or {}),
                    "PYTHONPATH": path,
                    "PYTHONUNBUFFERED": "1",
                },
                start_new_session=True,  # Ctrl-C reaches us, and we stop the parts in order
            )

    @property
    def pid(self) -> int:
        """The process's own number: the tether becomes the command."""
        return self._process.pid

    def status(self) -> Status:
        """What it is doing now."""
        code = self._process.poll()
        state, detail = self._judge(code)
        return Status(self.name, state, self.pid, code, detail)

    def _judge(self, code: int | None) -> tuple[State, str]:
        if code is None and frozen(self.pid):
            return State.FROZEN, "stopped by a signal (SIGSTOP): holds its ports, answers nobody"
        if code is None:
            return (State.RUNNING, "running") if self._ready else (State.STARTING, "starting")
        if self._stopping:
            return State.STOPPED, "stopped on request"
        if code == 0:
            return State.DONE, "ended by itself"
        if code < 0:
            return State.DEAD, f"killed by {signal.Signals(-code).name}"
        return State.DEAD, f"ended with exit code {code}"

    def tail(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-TAIL:])

    def _quote(self) -> str:
        return f"its log ends:\n{self.tail()}"

    def check(self) -> None:
        """Raise `PartDied` when it has ended in any way but the one asked for."""
        status = self.status()
        if status.state is State.DEAD:
            raise PartDied(f"{self.name} {status.detail}; {self._quote()}")

    def wait_ready(self, deadline: float) -> None:
        """Return once it answers; raises `PartDied`, or TimeoutError at monotonic `deadline`."""
        while not self._ready:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(POLL)  # a pause that its death cuts short
                raise PartDied(f"{self.name} ended with {code} at its start; {self._quote()}")
            self._ready = self.ready_url is not None and answers(self.ready_url)
            if not self._ready and monotonic() > deadline:
                raise TimeoutError(f"{self.name} is not ready; {self._quote()}")

    def send(self, number: signal.Signals) -> None:
        """Signal it if it still runs; an ended process's number may be somebody else's."""
        self._process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end; a frozen one is woken, for SIGTERM waits while it is stopped."""
        if self._process.poll() is None:
            self._stopping = True
            self.send(signal.SIGTERM)
            self.send(signal.SIGCONT)

    def reap(self, deadline: float) -> None:
        """Wait for its end until monotonic `deadline`, then kill it."""
        try:
            self._process.wait(max(0.0, deadline - monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
