"""A whole stack on stand-in devices, and what is said where there can be none."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rig import driver
from rig.gateway import Absent
from rig.gpu.node import Node
from rig.part import State
from rig.stack import Plan, Stack
from tests.rig.gpu.conftest import MIB, Nvml, gone

Until = Callable[..., None]


def requests(stack: Stack) -> int:
    """How many have ended."""
    truth = stack.truth()
    return truth.requests if truth else 0


@pytest.mark.e2e
def test_stack_serves_on_four_devices(plan: Plan, until: Until, able: None) -> None:
    """Two engines of two ranks serve through the gateway, and NVML has each process on its own.

    A killed engine comes back by itself; nothing is left when the stack has stopped.
    """
    wanted = replace(plan, gpu=True, load=True, rate=8.0, tokens=11)
    with Stack(wanted) as stack:
        assert (stack.gpu_library_folder / "libcuda.so.1").exists()
        nvml = Nvml(stack.node.folder)
        until(lambda: requests(stack) > 9)
        truth = stack.truth()
        assert truth is not None
        assert truth.failures == {}
        devices = nvml.devices()
        pids = [int(pid) for device in devices for pid in device["pids"]]
        assert len(devices) == len(set(pids)) == 4
        fronts = stack.gpu_fronts
        assert [pids[0], pids[2]] == [fronts["engine-0"], fronts["engine-1"]]
        os.kill(fronts["engine-0"], signal.SIGKILL)
        until(lambda: stack.gpu_fronts.get("engine-0", pids[0]) != pids[0])
        until(lambda: nvml.used(0) > 1000)
        assert {part.state for part in stack.parts().values()} == {State.RUNNING}
        pids += [int(pid) for device in nvml.devices() for pid in device["pids"]]
    until(lambda: all(map(gone, pids)))
    assert [device["used"] // MIB for device in nvml.devices()] == [0, 0, 0, 0]
    nvml.close()


def test_no_compiler_is_one_line(tmp_path: Path) -> None:
    """Where the libraries cannot be built, the start ends with what to install."""

    def build() -> Path:
        raise driver.Unavailable("gcc not found: apt install gcc make libc6-dev")

    with pytest.raises(Absent, match=r"^no stand-in GPU: gcc not found: apt install gcc make"):
        Node(tmp_path, build=build).prepare()


def test_stack_without_gpu_has_none(plan: Plan) -> None:
    """By default engines run as before, and there is nothing to look at."""
    stack = Stack(plan)
    found = (stack.gpu_environment, stack.gpu_library_folder, stack.gpu_fronts)
    assert found == ({}, None, {})
