"""The device by itself: two ranks in two processes, and what each hears of the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from rig import driver
from rig.part import ROOT

Run = Callable[..., subprocess.Popen[str]]
pytestmark = pytest.mark.e2e
# Rank 0 lets rank 1 join by its id; for each line of input it makes a step and says how it went.
ZERO = """
import sys
from rig.gpu.device import Device, Shape
from rig.gpu.errors import DeviceError
device = Device(0, Shape(0.1, 2))
unique = device.unique_id()
print(unique.hex(), flush=True)
device.join(unique, 2, 0)
for _ in sys.stdin:
    try:
        device.launch(1)
        while not device.done():
            if error := device.asynchronous_error():
                device.abort(error)
        device.synchronise()
        print("done", flush=True)
    except DeviceError as error:
        print(type(error).__name__, error, flush=True)
"""
ONE = """
import sys
from rig.gpu.device import Device, Shape
device = Device(1, Shape(0.1, 2))
device.join(bytes.fromhex(sys.argv[1]), 2, 1)
device.launch(1)
device.synchronise()
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(node: driver.Configuration) -> Iterator[Run]:
    """Start a Python that has the libraries; all of them end with the test."""
    started: list[subprocess.Popen[str]] = []

    def go(*arguments: str) -> subprocess.Popen[str]:
        variables = {**os.environ, **driver.environment(node.folder), "PYTHONPATH": str(ROOT)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen((sys.executable, "-c", *arguments), env=variables, **pipes))
        return started[-1]

    yield go
    for process in started:
        process.kill()
        process.communicate()


def test_killed_rank_is_a_remote_error(node: driver.Configuration, run: Run) -> None:
    """A step of two ranks is done by both; once one has died, NCCL says so to the other."""
    node.set("nccl.remote_error_after", 0.1)
    zero = run(ZERO)
    one = run(ONE, zero.stdout.readline().strip())
    zero.stdin.write("\n")
    zero.stdin.flush()
    assert (zero.stdout.readline(), one.stdout.readline()) == ("done\n", "done\n")
    one.kill()
    one.wait()
    zero.stdin.write("\n")
    zero.stdin.flush()
    assert zero.stdout.readline().startswith("RemoteError NCCL error in ncclAllReduce: remote")
