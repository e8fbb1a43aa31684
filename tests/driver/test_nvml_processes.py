"""NVML's process lists: whose memory it is, and what a driver can get wrong about it."""

from __future__ import annotations

import os
import signal

import pytest

from .conftest import Machine, eventually


def test_memory_follows_a_process_and_returns_when_it_is_killed(machine: Machine) -> None:
    """An allocation shows at once under its pid; SIGKILL gives it back before it is reaped."""
    watcher, user = machine.process(), machine.process(nvml=False)
    user.start(1)
    assert user.cuda("cuMemAlloc_v2", "&", 300 << 20)[0] == 0
    assert watcher.nvml("nvmlDeviceGetMemoryInfo", 1)["used"] == 300 << 20
    (row,) = watcher.nvml("nvmlDeviceGetComputeRunningProcesses", 1)
    assert (row["pid"], row["usedGpuMemory"]) == (user.pid, 300 << 20)
    assert "python" in watcher.nvml("nvmlSystemGetProcessName", None, user.pid)
    os.kill(user.pid, signal.SIGKILL)
    eventually(lambda: watcher.nvml("nvmlDeviceGetMemoryInfo", 1)["used"] == 0)
    assert watcher.nvml("nvmlDeviceGetComputeRunningProcesses", 1) == []
    assert user.popen.poll() is None or user.popen.returncode == -9


def test_pids_can_be_of_the_host(machine: Machine) -> None:
    """With an offset the list shows no pid that exists here."""
    machine.configuration.set("pid_offset", 546036)
    process = machine.process()
    process.start()
    (row,) = process.nvml("nvmlDeviceGetComputeRunningProcesses", 0)
    assert row["pid"] == process.pid + 546036


def test_memory_of_a_process_can_be_not_available(machine: Machine) -> None:
    """All bits set, which pynvml turns into None."""
    machine.configuration.update({"process.memory": "unavailable"})
    process = machine.process()
    process.start()
    (row,) = process.nvml("nvmlDeviceGetComputeRunningProcesses", 0)
    assert row["usedGpuMemory"] is None


def test_processes_of_no_process_can_be_listed(machine: Machine) -> None:
    """`process` lines stand in each list by their type, with memory that counts as used."""
    machine.configuration.set(
        "process",
        ["546113 memory 59.97GiB", "7 memory unavailable type graphics", "8 memory 1 type mps"],
    )
    machine.configuration.set("memory.total", 80 << 30)
    process = machine.process()
    (row,) = process.nvml("nvmlDeviceGetComputeRunningProcesses", 0)
    assert (row["pid"], row["usedGpuMemory"]) == (546113, int(59.97 * (1 << 30)))
    (row,) = process.nvml("nvmlDeviceGetGraphicsRunningProcesses", 0)
    assert (row["pid"], row["usedGpuMemory"]) == (7, None)
    (row,) = process.nvml("nvmlDeviceGetMPSComputeRunningProcesses", 0)
    assert (row["pid"], row["usedGpuMemory"]) == (8, 1)


def test_mps_shows_its_daemon_for_all_clients(machine: Machine) -> None:
    """Compute list: the daemon with the sum; MPS list: each client."""
    machine.configuration.set("mps.server", 4242)
    clients = [machine.process(nvml=False) for _ in range(2)]
    for client in clients:
        client.start()
        client.cuda("cuMemAlloc_v2", "&", 1 << 20)
    watcher = machine.process()
    (row,) = watcher.nvml("nvmlDeviceGetComputeRunningProcesses", 0)
    assert (row["pid"], row["usedGpuMemory"]) == (4242, 2 << 20)
    rows = watcher.nvml("nvmlDeviceGetMPSComputeRunningProcesses", 0)
    assert {row["pid"] for row in rows} == {client.pid for client in clients}


@pytest.mark.parametrize(
    ("symbol", "stride"),
    [
        ("nvmlDeviceGetComputeRunningProcesses", 16),
        ("nvmlDeviceGetComputeRunningProcesses_v2", 24),
        ("nvmlDeviceGetComputeRunningProcesses_v3", 24),
    ],
)
def test_each_version_of_the_process_struct_has_its_size(
    machine: Machine, symbol: str, stride: int
) -> None:
    """Read with its own size, each list is right; too small a buffer says how many there are."""
    machine.configuration.set("process", [f"{pid} memory {pid * 4096}" for pid in (11, 13, 17)])
    process = machine.process()
    rows = [[pid, pid * 4096] for pid in (11, 13, 17)]
    assert process.processes(0, symbol, 5, stride) == [0, 3, rows]
    assert process.processes(0, symbol, 2, stride)[:2] == [7, 3]


def test_a_driver_can_fill_another_struct_than_asked_for(machine: Machine) -> None:
    """With the layout of a later driver the second pid is scrambled, as was seen in the field."""
    machine.configuration.set("process", [f"{pid} memory {pid * 4096}" for pid in (11, 13)])
    machine.configuration.set("process.layout.v3", 32)
    process = machine.process()
    symbol = "nvmlDeviceGetComputeRunningProcesses_v3"
    assert process.processes(0, symbol, 5, 24)[2] != [[11, 11 * 4096], [13, 13 * 4096]]
    assert process.processes(0, symbol, 5, 32)[2] == [[11, 11 * 4096], [13, 13 * 4096]]
