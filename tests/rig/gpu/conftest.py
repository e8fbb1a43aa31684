"""A stand-in node for each test, engines on it, and NVML's view of it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from rig import driver
from rig.gpu.events import Log
from rig.part import Part
from rig.ports import free_ports

WATCH = Path(__file__).with_name("watch.py")
MIB = 1 << 20
READY = 20.0


class Nvml:
    """What real pynvml sees of a node, asked in a process that lives as long as the test."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            (sys.executable, str(WATCH)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **driver.environment(folder)},
            text=True,
        )

    def devices(self) -> list[dict[str, Any]]:
        """Every device now."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        return found

    def used(self, device: int = 0) -> int:
        """MiB in use on one device."""
        return int(self.devices()[device]["used"]) // MIB

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@dataclass
class Engine:
    """A front, alone or under a supervisor, and a client of it."""

    part: Part
    port: int
    log: Log
    open: list[HTTPConnection] = field(default_factory=list)

    def ask(self, tokens: int = 8, *, port: int | None = None, **more: object) -> HTTPConnection:
        """Send one chat completion, streamed unless told otherwise; the answer is not read."""
        words = more.pop("words", "the river is")
        body = {"messages": [{"role": "user", "content": words}], "max_tokens": tokens}
        body |= {"stream": True, "ignore_eos": True, "seed": 3, **more}
        connection = HTTPConnection("127.0.0.1", port or self.port, timeout=20)
        self.open.append(connection)
        fields = {"Content-Type": "application/json", "X-Request-Id": "mine"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), fields)
        return connection

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body; status 0 when nobody answers."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            return 0, b""
        finally:
            connection.close()

    def state(self) -> dict[str, Any]:
        """The front's own account of itself."""
        found: dict[str, Any] = json.loads(self.get("/rig")[1])
        return found

    def events(self, name: str) -> list[dict[str, Any]]:
        """What the supervisor did of that name."""
        return [event for event in self.log.read() if event["event"] == name]

    def pid(self) -> int:
        """The front's process below the supervisor."""
        starts = self.events("started") + self.events("restarted")
        return int(starts[-1]["pid"])


def content(body: bytes) -> list[str]:
    """The texts of a stream's events, in order; `[DONE]` and errors as they are."""
    found = []
    for line in body.decode().split("\n"):
        payload = line.removeprefix("data: ")
        if not line.startswith("data: ") or payload == "[DONE]":
            found += [payload] * line.startswith("data: ")
            continue
        event = json.loads(payload)
        if "error" in event:
            found.append("error: " + event["error"]["message"])
        elif text := event["choices"][0]["delta"].get("content"):
            found.append(text)
    return found


@pytest.fixture(scope="session")
def able() -> None:
    """Skip where the parts are not there."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: the group `rig`")
    try:
        driver.build()
    except driver.Unavailable as reason:
        if driver.lacking():
            pytest.skip(str(reason))
        raise


@pytest.fixture
def node(able: None, tmp_path: Path) -> driver.Configuration:
    """A machine with two devices of 4 GiB, whose kernels take almost no time."""
    found = driver.Configuration(tmp_path / "gpu")
    found.update({"devices": 2, "memory.total": 4 << 30, "kernel.seconds": 1e-6})
    return found


@pytest.fixture
def nvml(node: driver.Configuration) -> Iterator[Nvml]:
    """The view from outside."""
    found = Nvml(node.folder)
    yield found
    found.close()


Start = Callable[..., Engine]


@pytest.fixture
def start(node: driver.Configuration, tmp_path: Path) -> Iterator[Start]:
    """Start a front with these options; `supervisor`: those of one above it."""
    engines: list[Engine] = []

    def go(*front: str, supervisor: tuple[str, ...] | None = None) -> Engine:
        (port,) = free_ports([0])
        log = Log(tmp_path / "events.jsonl")
        own = ("--port", str(port), "--standin", str(node.folder))
        command: tuple[str, ...] = (sys.executable, "-m", "rig.gpu.front", *own, *front)
        if supervisor is not None:
            program = (sys.executable, "-m", "rig.gpu.supervisor", *own)
            command = (*program, "--events", str(log.path), *supervisor, "--", *front)
        url = f"http://127.0.0.1:{port}/health"
        part = Part("engine", command, tmp_path, url)
        engines.append(Engine(part, port, log))
        part.wait_ready(monotonic() + READY)
        return engines[-1]

    yield go
    for engine in engines:
        for connection in engine.open:
            connection.close()
        engine.part.terminate()
        engine.part.reap(monotonic() + 5)


def gone(pid: int) -> bool:
    """Whether the process has ended, reaped or not."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True
