"""One real ``chaos run`` on a rig, somebody in it killed at some moment, and what is left then.

Who dies and when is drawn from a seed. The journal tells when a step is reached; that all is well
again is read from the system (``outside``).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rig.chaos import ENVIRONMENT
from rig.stack import ENGINE, Stack
from tests.e2e import outside

ROOT = Path(__file__).parents[2]
METHODS = (
    "gpu_oom:hook",
    "gpu_oom:balloon",
    "nccl_timeout:hook",
    "nccl_timeout:stop",
    "cuda_context_loss:hook",
    "cuda_context_loss:reset",
    "cuda_context_loss:trap",
)
VICTIMS = ("injector", "guardian", "both", "engine", "rank")
STEPS = ("planned", "injected", "effect", "holding", "healing", "watching", "random")
BRIEF = ("planned", "injected", "healing")  # over before one could look at the system
HOLD = 0.7  # seconds
LEASE = 1.0  # of the page and the balloon
# Beyond the lease: 0.1 s that are promised, and what a process on two shared cores may wait for
# its turn, this one's polling included.
SLACK = 0.1 + 0.5
_OVER = ("healed", "moot")
_COMMAND = "from sidecar.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Plot:
    """Who is killed in a run of which method, and when: ``step`` and so many seconds later."""

    number: int
    method: str
    victim: str
    step: str
    later: float

    @classmethod
    def drawn(cls, seed: int, number: int) -> Plot:
        """All of it by the seed; every step and victim comes equally often."""
        rng = random.Random(f"{seed}/{number}")
        step = STEPS[number % len(STEPS)]
        spread = {"holding": 0.8 * HOLD, "watching": 1.0, "random": 4.0}.get(step, 0.0)
        return cls(number, rng.choice(METHODS), rng.choice(VICTIMS), step, rng.uniform(0.0, spread))


@dataclass(frozen=True, slots=True)
class Found:
    """``reached`` is the last step in the journal at the kill; ``force`` whether the fault was in
    force then by what the system said (for a brief step: right after), and ``healed`` the seconds
    until it was not.
    """

    plot: Plot
    reached: str
    force: bool
    healed: float | None
    answered: float


class Scene:
    """A stack with one engine that may be broken."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self._folder = stack, folder
        self.page = stack.node.page(0)
        self.former = outside.used(stack.gpu_environment)

    def environment(self) -> dict[str, str]:
        paths = f"{ROOT}:{ROOT / 'hooks'}"
        return {**os.environ, **self.stack.gpu_environment, "PYTHONPATH": paths}

    def _chaos(self, *words: str) -> tuple[str, ...]:
        return (sys.executable, "-P", "-c", _COMMAND, "chaos", *words)

    def command(self, method: str, state: Path, seed: int = 1) -> tuple[str, ...]:
        """The injector's: one run, quickly."""
        stack, port = self.stack, self.stack.engine_ports[0]
        options = ("--target", f"port:{port}", "--environment", ENVIRONMENT)
        options += ("--url", stack.url, "--engine-url", stack.engine_urls[0])
        options += ("--runs", "1", "--seed", str(seed), "--name", "kill")
        options += ("--hold", str(HOLD), "--period", "0.2", "--max-seconds", "15")
        return self._chaos("run", method, *options, "--state", str(state))

    def start(self, plot: Plot, state: Path) -> subprocess.Popen[bytes]:
        """The injector."""
        command = self.command(plot.method, state, plot.number)
        with (self._folder / f"{state.name}.log").open("wb") as log:
            return subprocess.Popen(command, env=self.environment(), stdout=log, stderr=log)

    def recover(self, state: Path) -> None:
        """Has to leave nothing."""
        command = self._chaos("recover", "--state", str(state))
        done = subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def stopped(self) -> list[int]:
        """Processes of the target that the kernel says are stopped."""
        engine = self.stack.pids.get(f"{ENGINE}0", -1)
        return [one.pid for one in outside.below(engine) if one.state in "Tt"]

    def balloons(self) -> list[int]:
        """Processes on this node that were started to fill a device."""
        config = self.stack.gpu_environment["MODELPROBE_STANDIN_CONFIG"]
        every = outside.started_with("MODELPROBE_STANDIN_CONFIG", config)
        return [one.pid for one in every if "chaos.balloon" in one.command]

    def force(self) -> bool:
        """Whether anything is in force."""
        return bool(outside.judged(self.page) or self.stopped() or self.balloons())

    def pids(self, victim: str, injector: int, state: Path) -> list[int]:
        """Whom to kill; nobody when there is none at this moment."""
        guardians = self.guardians(state)
        if victim == "both":
            return random.Random(injector).sample([injector, *guardians], 1 + len(guardians))
        if victim in ("injector", "guardian"):
            return [injector] if victim == "injector" else guardians
        front = self.stack.gpu_fronts.get(f"{ENGINE}0")
        if victim == "engine" or front is None:
            return [] if front is None else [front]
        return [one.pid for one in outside.below(front) if "rig.gpu.rank" in one.command]

    def guardians(self, state: Path) -> list[int]:
        """Those of that state folder."""
        every = outside.processes().values()
        return [
            one.pid
            for one in every
            if "chaos.guardian" in one.command and f"--journal {state} " in one.command
        ]


def steps(state: Path) -> list[str]:
    """What the journal says by now, line by line."""
    try:
        lines = (state / "journal.jsonl").read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        with suppress(ValueError):
            found.append(str(json.loads(line)["step"]))
    return found


def _reached(plot: Plot, injector: subprocess.Popen[bytes], state: Path) -> None:
    """Waits for the plot's moment, or for the injector's end, whichever comes first. Where it is a
    step that lasts milliseconds, nothing may come between it and the kill.
    """
    wanted = {"holding": ("effect",), "watching": _OVER, "random": ("planned",)}
    names = wanted.get(plot.step, (plot.step,))
    due: float | None = None
    deadline = time.monotonic() + 90
    while injector.poll() is None and (due is None or time.monotonic() < due):
        assert time.monotonic() < deadline, f"{plot}: its step never came"
        if due is None and any(name in steps(state) for name in names):
            due = time.monotonic() + plot.later
        time.sleep(0.003)  # a file tells nobody


def killed(scene: Scene, plot: Plot, state: Path) -> Found:
    """One run and one kill; asserts that everything is as it was before."""
    injector = scene.start(plot, state)
    try:
        outside.within(lambda: bool(scene.guardians(state)), 30, f"{plot}: a guardian")
        pids = scene.pids(plot.victim, injector.pid, state)
        _reached(plot, injector, state)
        force = plot.step not in BRIEF and scene.force()
        told = steps(state)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        force = force or scene.force()
        healed = _healed(scene, plot, injector, state, force, began)
        outside.within(lambda: injector.poll() is not None, 90, f"{plot}: the injector's end")
        outside.within(lambda: not scene.guardians(state), 30, f"{plot}: its guardian's end")
    finally:
        injector.kill()
        injector.wait()
    _restored(scene, plot, state)
    outside.within(lambda: outside.answers(scene.stack.engine_urls[0]), 60, f"{plot}: an answer")
    outside.within(lambda: outside.answers(scene.stack.url), 30, f"{plot}: the gateway's answer")
    answered = time.monotonic() - began
    outside.within(
        lambda: outside.used(scene.stack.gpu_environment) == scene.former,
        20,
        f"{plot}: memory is {scene.former} again",
    )
    return Found(plot, told[-1] if told else "none", force, healed, answered)


def _healed(
    scene: Scene,
    plot: Plot,
    injector: subprocess.Popen[bytes],
    state: Path,
    force: bool,
    began: float,
) -> float | None:
    """Seconds until nothing was in force any more, where something was and its healer was hit."""
    if not force or plot.victim in ("engine", "rank"):
        return None
    if plot.victim == "both" and scene.stopped():
        injector.wait()
        outside.within(lambda: not scene.guardians(state), 5, f"{plot}: both are dead")
        if scene.stopped():  # else the guardian was quicker than its end
            began = time.monotonic()  # nobody is left to do it but this
            scene.recover(state)
        assert not scene.force(), f"{plot}: still in force after recover"
        return time.monotonic() - began
    outside.within(lambda: not scene.force(), LEASE + SLACK, f"{plot}: in force", 0.005)
    return time.monotonic() - began


def _restored(scene: Scene, plot: Plot, state: Path) -> None:
    """By the system, and then by the journal, which must agree."""
    scene.recover(state)
    assert not scene.stopped(), f"{plot}: stopped"
    assert not outside.judged(scene.page), f"{plot}: armed"
    assert not scene.balloons(), f"{plot}: a balloon"
    over: dict[str, bool] = {}
    journal = state / "journal.jsonl"
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        found = json.loads(line)  # readable to its end, whoever died in the middle of a line
        over[found["run"]] = found["step"] in _OVER
    assert all(over.values()), f"{plot}: outstanding {over}"
    results = state / "campaigns" / "kill.jsonl"
    for line in results.read_bytes().splitlines() if results.exists() else ():
        run = json.loads(line)["run"]
        if run["outcome"] == "recovered":
            assert run["effect"] is not None, f"{plot}: recovered from nothing"
            assert run["healing"]["ending"] != "failed", f"{plot}: recovered and not undone"
