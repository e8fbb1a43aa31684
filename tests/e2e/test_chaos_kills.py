"""kill -9 to whoever takes part in a real ``chaos run``: what it broke is well again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median

import pytest

from rig import driver
from rig.chaos import ENVIRONMENT, FRONT
from rig.gpu.node import CONTEXT, KERNEL, MEMORY
from rig.ports import free_ports
from rig.stack import Plan, Stack
from tests.e2e import outside
from tests.e2e.killing import METHODS, STEPS, VICTIMS, Found, Plot, Scene, killed, steps

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(driver.lacking()), reason=driver.lacking()),
]
SEED = 20_261_130
FEW = (
    Plot(1, "gpu_oom:hook", "injector", "holding", 0.2),
    Plot(2, "gpu_oom:balloon", "injector", "effect", 0.0),
    Plot(3, "nccl_timeout:stop", "both", "holding", 0.1),
    Plot(4, "nccl_timeout:hook", "guardian", "holding", 0.1),
    Plot(5, "cuda_context_loss:trap", "injector", "effect", 0.0),
    Plot(6, "cuda_context_loss:hook", "engine", "effect", 0.1),
)
MANY, PARTS = 50, 4


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A rig that is up, on which our kernel traps as it does on a device."""
    folder = tmp_path_factory.mktemp("kills")
    gateway, admin, engine = free_ports([0, 0, 0])
    plan = Plan(
        engines=1,
        folder=folder / "rig",
        load=False,
        gpu=True,
        chaos=ENVIRONMENT,
        gpu_front=FRONT,
        gpu_supervisor=("--stable", "0.3", "--attempts", "1000"),
        gateway_port=gateway,
        admin_port=admin,
        engine_port=engine,
    )
    stack = Stack(plan)
    stack.boot()
    driver.Configuration(stack.node.folder).update(
        {
            "devices": stack.node.ranks,
            "memory.total": MEMORY,
            "context_memory": CONTEXT,
            "kernel.seconds": KERNEL,
            "trap.modelprobe_trap": 719,
        }
    )
    with stack:
        yield Scene(stack, folder)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("plot", FEW, ids=lambda p: f"{p.method}-{p.victim}-{p.step}")
def test_whoever_is_killed_the_target_is_well_again(
    scene: Scene, tmp_path: Path, plot: Plot
) -> None:
    """Nobody stopped, nothing armed, no balloon, no memory held; and real answers."""
    found = killed(scene, plot, tmp_path / "state")
    assert found.force or plot.victim == "engine"


def test_the_draw_covers_everybody_and_every_step() -> None:
    """Of two hundred, each victim, method and step many times; and the same again for the seed."""
    plots = [Plot.drawn(SEED, number) for number in range(200)]
    assert plots == [Plot.drawn(SEED, number) for number in range(200)]
    assert min(Counter(plot.victim for plot in plots)[name] for name in VICTIMS) > 20
    assert min(Counter(plot.method for plot in plots)[name] for name in METHODS) > 15
    assert min(Counter(plot.step for plot in plots)[name] for name in STEPS) > 20


@pytest.mark.timeout(60)
def test_a_signal_ends_it_in_order_and_others_do_not_hurry_that(
    scene: Scene, tmp_path: Path
) -> None:
    """What was injected is undone, and the run is kept as what it was."""
    state = tmp_path / "state"
    injector = scene.start(Plot(7, "nccl_timeout:stop", "injector", "effect", 0.0), state)
    outside.within(lambda: "effect" in steps(state), 50, "the effect")
    assert scene.stopped()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        injector.send_signal(number)
    assert injector.wait(20) == 130
    assert not scene.force()
    assert steps(state)[-1] == "healed"
    (line,) = (state / "campaigns" / "kill.jsonl").read_bytes().splitlines()
    assert json.loads(line)["run"]["outcome"] == "inconclusive"
    outside.within(lambda: outside.answers(scene.stack.engine_urls[0]), 30, "an answer")


@pytest.mark.timeout(60)
def test_a_reader_that_has_gone_ends_no_run(scene: Scene, tmp_path: Path) -> None:
    """As behind ``| head -1``: it is played to its end, undone, and kept."""
    state = tmp_path / "state"
    command = scene.command("gpu_oom:balloon", state)
    with subprocess.Popen(
        command, env=scene.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as injector:
        assert injector.stdout is not None
        assert injector.stderr is not None
        assert injector.stdout.read(1)
        injector.stdout.close()
        assert injector.wait(50) == 0
        assert injector.stderr.read() == b""
    assert not scene.force()
    (line,) = (state / "campaigns" / "kill.jsonl").read_bytes().splitlines()
    assert json.loads(line)["run"]["healing"]["ending"] in ("healed", "moot")


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_whoever_is_killed_often(scene: Scene, tmp_path: Path, part: int) -> None:
    """The same two hundred times, at moments that a seed draws. Parts may run at once."""
    found = []
    for number in range(part * MANY, (part + 1) * MANY):
        plot = Plot.drawn(SEED, number)
        found.append(killed(scene, plot, tmp_path / f"state-{number}"))
        if told := os.environ.get("MODELPROBE_KILLS_FILE"):
            with Path(f"{told}.{part}").open("a") as file:
                file.write(json.dumps(asdict(found[-1])) + "\n")
    sys.stdout.write(f"{_summary(found)}\n")
    assert len(found) == MANY


def _summary(found: list[Found]) -> str:
    took = [one.healed for one in found if one.healed is not None]
    counts = Counter((one.plot.victim, one.plot.step) for one in found)
    times = f"median {median(took):.3f} s, at most {max(took):.3f} s" if took else "nothing"
    force = sum(one.force for one in found)
    return (
        f"{len(found)} kills, in force {force}; healed after {times} (n = {len(took)}); "
        f"{dict(counts)}"
    )
