"""What the wire's bench runs: the server that is watched, its client, and a bystander.

The bystander is in a network namespace of its own, apart from the other two.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench.wire_machine import Outside, Unable, built, cpu_seconds
from bench.wire_truth import OTHER_EVENTS, Asked
from rig.part import Part

_READY = 20.0
PORT, CONTROL = 18080, 18081  # free in a namespace of our own


@dataclass(frozen=True, slots=True)
class Load:
    """How a client asks: so many connections, on each so many requests, one after the other."""

    connections: int
    requests: int
    tokens: int

    @property
    def events(self) -> int:
        """What the server sends for it."""
        return self.connections * self.requests * (self.tokens + OTHER_EVENTS)


@dataclass(frozen=True, slots=True)
class Served:
    """A load that was served: ``cpu_seconds`` of the server for all of it, from the first connect
    to the last close.
    """

    asked: tuple[Asked, ...]
    cpu_seconds: float

    @property
    def events(self) -> int:
        """What was sent."""
        return sum(one.events for one in self.asked)

    @property
    def seconds(self) -> float:
        """From the first request to the last answer's end."""
        return (max(one.ended for one in self.asked) - min(one.sent for one in self.asked)) / 1e9


class Server:
    """uvicorn with an engine of one token a stream and step, on PORT and CONTROL. With
    ``framework`` it makes events as vLLM's front does, else at the least cost there is. Its clients
    come from ``outside``, else over loopback.
    """

    def __init__(
        self,
        folder: Path,
        step_seconds: float,
        outside: Outside | None = None,
        *,
        framework: bool = False,
    ) -> None:
        prefix = () if outside is None else outside.prefix
        address = "127.0.0.1" if outside is None else outside.ADDRESS
        self._client = (*prefix, str(built("wire_client")), address)
        # What can be run by name is a bench, and listed as one.
        program = "from bench import wire_server; wire_server.main()"
        command = [sys.executable, "-c", program, "--port", str(PORT)]
        command += ["--control", str(CONTROL), "--step", str(step_seconds)]
        command += ["--framework"] * framework
        self._part = Part("server", command, folder, f"http://127.0.0.1:{CONTROL}/")
        self._part.wait_ready(time.monotonic() + _READY)

    def _get(self, path: str) -> dict[str, list[int]]:
        connection = HTTPConnection("127.0.0.1", CONTROL, timeout=_READY)
        try:
            connection.request("GET", path)
            told: dict[str, list[int]] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return told

    def serve(self, name: str, load: Load, during: Callable[[], None] | None = None) -> Served:
        """Puts a load on it. ``during`` is called when each connection has sent one request."""
        began = cpu_seconds(self._part.pid)
        words = (PORT, name, load.connections, load.requests, load.tokens)
        command = [*self._client, *map(str, words)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout
            if client.stdout.readline() == "sent\n" and during is not None:
                during()
            lines = client.stdout.read().splitlines()
        if client.returncode:
            self._part.check()
            raise Unable("the load's client failed, see above; is the machine too busy?")
        self._get("/")  # answered after the loop has seen the client's connections close
        spent = cpu_seconds(self._part.pid) - began
        return Served(_asked(lines, self._get("/truth"), load), spent)

    def resumed_after(self, seconds: float) -> Callable[[], None]:
        """For ``during``, when :meth:`stop` came before: what was sent waits for so long."""

        def resume() -> None:
            time.sleep(seconds)
            self._part.send(signal.SIGCONT)

        return resume

    def stop(self) -> None:
        """Neither accepts nor reads from now on."""
        self._part.send(signal.SIGSTOP)

    def close(self) -> None:
        """Ends it."""
        self._part.terminate()
        self._part.reap(time.monotonic() + 5)


def _asked(lines: list[str], truth: dict[str, list[int]], load: Load) -> tuple[Asked, ...]:
    """Raises Unable unless everything was sent, and received as it was sent."""
    asked = []
    for line in lines:
        name, sent, ended, status, events = line.split()
        one = Asked(name, int(sent), int(ended), tuple(truth.get(name, ())))
        if (int(status), int(events), one.events) != (200, one.events, load.tokens + OTHER_EVENTS):
            raise Unable(f"request {name}: {status}, {events} events received, {one.events} sent")
        asked.append(one)
    if len(asked) != load.connections * load.requests:
        raise Unable(f"{len(asked)} requests were answered, not all of {load}")
    return tuple(asked)


class Bystander:
    """Works in a namespace of its own; seconds of one operation when it is asked."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            [built("wire_bystander")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._line() != "ready":
            raise Unable("the bystander did not start, see above")

    def _line(self) -> str:
        assert self._popen.stdout
        return self._popen.stdout.readline().strip()

    def seconds(self, what: str, chunks: int, calls: int) -> float:
        """Of one `syscalls` or `loopback`, the median over chunks of so many calls."""
        assert self._popen.stdin
        print(what, chunks, calls, file=self._popen.stdin, flush=True)
        if not (line := self._line()):
            raise Unable(f"the bystander ended with {self._popen.wait()}")
        return float(line)

    def close(self) -> None:
        """Ends it."""
        self._popen.communicate()
