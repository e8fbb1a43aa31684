"""A campaign of faults as the rig runs it: `model-probe chaos run` on the first engine.

It is a process of its own, as an operator would start it, and speaks to the terminal itself.
"""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from rig.part import TETHER
from rig.report import Document
from rig.stack import Stack

ENVIRONMENT = "staging"  # what the rig is, to those who ask
FAULTS = ("gpu_oom", "nccl_timeout", "cuda_context_loss")
# An engine that notices a collective that hangs in seconds, and is started again in no time: what
# takes minutes on a real one is not waited for here.
FRONT = ("--watchdog-seconds", "2", "--hung-seconds", "2")
SUPERVISOR = ("--stable", "1")
STOP = 30.0  # seconds to undo what is injected


class Campaign:
    """From `start` to `stop`."""

    def __init__(self, stack: Stack, sidecar_url: str, runs: int = 5, shams: int = 5) -> None:
        self._stack, self._sidecar_url = stack, sidecar_url
        self._runs, self._shams = runs, shams
        self.name = f"demo-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        self.state = stack.folder / "chaos"
        self.page = self.state / f"{self.name}.html"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin; what it does is printed by itself."""
        stack = self._stack
        options: tuple[str, ...] = (
            "--target",
            f"port:{stack.engine_ports[0]}",
            "--environment",
            ENVIRONMENT,
        )
        options += ("--url", stack.url, "--engine-url", stack.engine_urls[0])
        options += ("--sidecar", self._sidecar_url, "--seed", str(stack.plan.seed))
        options += ("--runs", str(self._runs), "--shams", str(self._shams))
        options += ("--max-seconds", "60", "--name", self.name, "--state", str(self.state))
        options += ("--period", "0.25")
        key = {} if stack.key is None else {"MODELPROBE_CHAOS_KEY": stack.key}
        self._process = subprocess.Popen(
            (sys.executable, str(TETHER), str(os.getpid()), *_command("run", *FAULTS, *options)),
            stdin=subprocess.DEVNULL,
            env={**os.environ, **stack.gpu_environment, **key},
            start_new_session=True,  # Ctrl-C reaches us, and we stop the parts in order
        )

    def ended(self) -> bool:
        """Whether it is over."""
        return self._process is None or self._process.poll() is not None

    def stop(self) -> int:
        """Ask it to end, unless it has; its exit status."""
        if self._process is None:
            return 0
        if not self.ended():
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its guardian undoes what is injected
            return self._process.wait()

    def report(self) -> Document:
        """Its figures; writes its page as well. Empty when nothing was run."""
        if not (self.state / "campaigns" / f"{self.name}.jsonl").exists():
            return {}
        command = _command("report", self.name, "--state", str(self.state), "--json")
        done = subprocess.run((*command, "--html", str(self.page)), capture_output=True, check=True)
        found: Document = json.loads(done.stdout)
        return found


def _command(*words: str) -> tuple[str, ...]:
    return (str(Path(sys.executable).with_name("model-probe")), "chaos", *words)
