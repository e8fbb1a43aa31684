"""The sidecar as the rig runs it: `model-probe attach` on the rig's ports, asked over HTTP.

It is watched as an operator would watch it: by its state endpoint, from outside.
"""

import json
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from os import geteuid
from pathlib import Path
from threading import Event
from time import monotonic

from rig.part import Part, PartDied
from rig.report import Document, milliseconds
from rig.stack import Stack

READY = 30.0  # seconds for the page
SEEING = 20.0  # seconds for every collector to find its source
POLL = 0.25
INTERVAL = "2"  # seconds between two reads of an engine: a demo should move


class Sidecar:
    """One `model-probe attach`. `state` is None while it does not answer.

    `settings` are further ``MODELPROBE_`` variables.
    """

    def __init__(
        self, stack: Stack, port: int, *, settings: Mapping[str, str] | None = None
    ) -> None:
        self._settings = dict(settings or {})
        self._stack = stack
        self._port = port
        self._pause = Event()
        self._part: Part | None = None

    @property
    def url(self) -> str:
        """Its page."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """Its process, None before the start."""
        return None if self._part is None else self._part.pid

    def start(self) -> None:
        """Returns when the page answers; raises PartDied or TimeoutError."""
        self._stack.folder.mkdir(parents=True, exist_ok=True)
        self._part = Part(
            "sidecar",
            self._command(),
            self._stack.folder,
            ready_url=f"{self.url}/readyz",
            environment=self._environment(),
        )
        self._part.wait_ready(monotonic() + READY)

    def _environment(self) -> dict[str, str]:
        """What its GPU reader needs to find the stand-in driver, and nothing for anybody else."""
        if self._stack.gpu_library_folder is None:
            return self._settings
        found = self._stack.gpu_environment
        found.pop("LD_LIBRARY_PATH", None)
        folder = str(self._stack.gpu_library_folder)
        return {**found, **self._settings, "MODELPROBE_GPU__LIBRARY_FOLDER": folder}

    def _command(self) -> tuple[str, ...]:
        program = str(Path(sys.executable).with_name("model-probe"))
        command = [program, "attach", "--listen", f"127.0.0.1:{self._port}"]
        command += ["--port", str(self._stack.gateway_port), "--interval", INTERVAL]
        for port, url in zip(self._stack.engine_ports, self._stack.engine_urls, strict=True):
            command += ["--upstream-port", str(port), "--engine", url]
        command += ["--gateway", self._stack.admin_url]
        return tuple(command)

    def state(self) -> Document | None:
        """What it says now."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=2)
        try:
            connection.request("GET", "/api/v1/state")
            answer = connection.getresponse()
            found: Document = json.loads(answer.read())
        except (OSError, HTTPException, ValueError):
            return None
        else:
            return found if answer.status == 200 else None
        finally:
            connection.close()

    def wait_seeing(self) -> None:
        """Returns when no collector is blind or starting, or after a while all the same: what is
        blind then is said on the page and in the report.
        """
        deadline = monotonic() + (SEEING if geteuid() == 0 else 2 * POLL)
        while monotonic() < deadline:
            state = self.state() or {}
            states = [one["state"] for one in state.get("collectors", [])]
            if states and not {"blind", "starting"} & set(states):
                return
            self._pause.wait(POLL)

    def settled(self, seconds: float) -> Document | None:
        """The state once no request is open and the engines were read again, or at the end."""
        first = self.state()
        deadline = monotonic() + seconds
        while first is not None and monotonic() < deadline:
            state = self.state()
            if state is not None and _still(first, state):
                return state
            self._pause.wait(POLL)
        return self.state()

    def line(self) -> str:
        """One line of progress."""
        state = self.state()
        if state is None:
            return "sidecar    does not answer"
        window = state["windows"]["downstream"]
        ttft, itl = window["ttft_seconds"], window["itl_seconds"]
        return (
            f"last {window['seconds']:.0f} s  {window['requests']} requests, "
            f"{window['failed']} failed; TTFT p50 {milliseconds(ttft['p50'])} "
            f"p99 {milliseconds(ttft['p99'])}; ITL p50 {milliseconds(itl['p50'])} "
            f"p99 {milliseconds(itl['p99'])}"
        )

    def died(self) -> list[str]:
        """Why it is not running any more, or nothing."""
        try:
            if self._part is not None:
                self._part.check()
        except PartDied as died:
            return [str(died)]
        return []

    def stop(self) -> None:
        """Ends it; it ends what it started."""
        if self._part is not None:
            self._part.terminate()
            self._part.reap(monotonic() + 6)


def _still(before: Document, now: Document) -> bool:
    """Nothing is open, and every engine was read twice more since: its counters are final."""
    if any(window["open_requests"] for window in now["totals"].values()):
        return False
    counts = {one["name"]: one["collections"] for one in before["collectors"]}
    return all(
        one["collections"] >= counts.get(one["name"], 0) + 2 or one["state"] == "blind"
        for one in now["collectors"]
    )
