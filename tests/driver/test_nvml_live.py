"""What NVML tells of a machine at work: events, MIG layouts, utilisation, GPM."""

from __future__ import annotations

import re
from pathlib import Path

from rig import driver

from .conftest import Machine, eventually


def test_an_xid_reaches_those_who_wait_for_it(machine: Machine) -> None:
    """Posted while two processes wait: each gets it once, with its device and no MIG ids."""
    waiting = [machine.process() for _ in range(2)]
    for process in waiting:
        process.events(8, 0, 1)
        process.send("event", 5000)
    driver.inject_xid(machine.folder, 79, 1)
    for process in waiting:
        got = process.reply()
        assert (got["device"], got["eventType"], got["eventData"]) == (1, 8, 79)
        assert got["gpuInstanceId"] == got["computeInstanceId"] == 4294967295
        assert process.event(0) == {"error": 10}


def test_events_are_chosen_by_kind_and_device(machine: Machine) -> None:
    """Not registered is not delivered; a kind that is no Xid can be posted with data 0."""
    process = machine.process()
    process.events(8 | 2, 1)
    driver.inject_xid(machine.folder, 94, 0)
    driver.post(machine.folder, "type 4 data 1 device 1")
    driver.post(machine.folder, "type 2 data 0 device 1")
    assert process.event(1000)["eventType"] == 2
    assert process.event(0) == {"error": 10}


def test_waiting_for_an_event_costs_little(machine: Machine) -> None:
    """Half a second of waiting wakes up tens of times, for the file, and not hundreds."""
    process = machine.process()
    process.events(8, 0)
    status = Path(f"/proc/{process.pid}/status")

    def switches() -> int:
        (count,) = re.findall(
            r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(), re.MULTILINE
        )
        return int(count)

    before = switches()
    assert process.event(500) == {"error": 10}
    assert switches() - before < 60


def test_events_come_from_the_file_too_and_once(machine: Machine) -> None:
    """`event.N` is posted by the first process that reads it, never again."""
    process = machine.process()
    process.events(8, 0)
    machine.configuration.set("event.1", "xid 119 device 0")
    assert process.event(2000)["eventData"] == 119
    machine.configuration.set("name", "other")
    assert process.event(30) == {"error": 10}
    machine.configuration.set("event.2", "xid 120 device 0")
    assert process.event(2000)["eventData"] == 120


def test_waiting_ends_when_the_device_is_lost(machine: Machine) -> None:
    """A wait that runs while the card falls off the bus answers GPU_IS_LOST."""
    process = machine.process()
    process.events(8, 0)
    process.send("event", 8000)
    machine.configuration.set("lost", 1, device=0)
    assert process.reply() == {"error": 15}


def test_mig_can_be_reconfigured_while_it_is_read(machine: Machine) -> None:
    """Instances come and go with the file; a handle of one that is gone answers NOT_FOUND."""
    machine.configuration.update(
        {"mig": 1, "mig.instance": ["1 ci 0 memory 20GiB slices 2 sm 32", "5 ci 0 memory 10GiB"]},
        device=0,
    )
    process = machine.process()
    held = process.keep("0/0")
    assert process.nvml("nvmlDeviceGetName", held).endswith("MIG 2g.20gb")
    assert process.nvml("nvmlDeviceGetGpuInstanceId", held) == 1
    assert process.nvml("nvmlDeviceGetMemoryInfo", held)["total"] == 20 << 30
    assert process.nvml("nvmlDeviceGetAttributes", held)["multiprocessorCount"] == 32
    assert process.nvml("nvmlDeviceIsMigDeviceHandle", held) == 1
    assert process.nvml("nvmlDeviceGetUtilizationRates", 0)["error"] == 3
    uuid = process.nvml("nvmlDeviceGetUUID", "0/1")
    assert uuid.startswith("MIG-")
    machine.configuration.set("mig.instance", ["7 ci 0 memory 40GiB slices 3"], device=0)
    assert process.nvml("nvmlDeviceGetName", held)["error"] == 6
    assert process.nvml("nvmlDeviceGetGpuInstanceId", "0/0") == 7
    assert process.nvml("nvmlDeviceGetName", "0/1")["error"] == 6
    machine.configuration.set("mig", 0, device=0)
    assert process.nvml("nvmlDeviceGetUtilizationRates", 0) == {"gpu": 0, "memory": 0}


def test_a_process_on_a_mig_device_is_seen_there(machine: Machine) -> None:
    """CUDA_VISIBLE_DEVICES names an instance: its memory bounds the process and is charged."""
    uuid = "MIG-aaaa"
    lines = [f"3 ci 0 memory 64MiB uuid {uuid}", "4 ci 0 memory 64MiB"]
    machine.configuration.update({"mig": 1, "mig.instance": lines}, device=1)
    user = machine.process(CUDA_VISIBLE_DEVICES=uuid)
    user.start(0)
    assert user.cuda("cuMemAlloc_v2", "&", 40 << 20)[0] == 0
    assert user.cuda("cuMemAlloc_v2", "&", 40 << 20)[0] == 2
    assert user.nvml("nvmlDeviceGetMemoryInfo", "1/0")["used"] == 40 << 20
    assert user.nvml("nvmlDeviceGetMemoryInfo", "1/1")["used"] == 0
    (row,) = user.nvml("nvmlDeviceGetComputeRunningProcesses", 1)
    assert row["gpuInstanceId"] == 3


def test_gpm_follows_kernels_and_can_be_absent(machine: Machine) -> None:
    """Half a second of kernels on an idle device shows in SM activity; older cards refuse."""
    machine.configuration.set("kernel.seconds", 0.01)
    process = machine.process()
    process.start()
    idle = process.gpm(0, [2])
    busy = process.gpm(0, [2, 3, 999], 20, process.kernel("gemm"))
    assert idle == [[0, 0.0]]
    assert busy[0][0] == 0
    assert busy[0][1] > 60
    assert busy[2][0] == 3
    machine.configuration.update({"gpm.2": 0, "compute_capability": "8.0", "gpm": 1})
    assert process.gpm(0, [2])[0] == [0, 0.0]
    machine.configuration.remove("gpm")
    assert process.gpm(0, [2]) == {"error": 3}


def test_utilisation_rises_and_falls_with_launches(machine: Machine) -> None:
    """Kernels of 0.2 s make a device busy, power follows, and both fall when they end."""
    machine.configuration.set("kernel.seconds", 0.2)
    process = machine.process()
    process.start()
    function = process.kernel("gemm")
    assert process.nvml("nvmlDeviceGetUtilizationRates", 0)["gpu"] == 0
    idle = process.nvml("nvmlDeviceGetPowerUsage", 0)
    process.launch(function, 0, 4)
    eventually(lambda: process.nvml("nvmlDeviceGetUtilizationRates", 0)["gpu"] >= 40)
    assert process.nvml("nvmlDeviceGetPowerUsage", 0) > idle
    assert process.nvml("nvmlDeviceGetUtilizationRates", 1)["gpu"] == 0
    eventually(lambda: process.nvml("nvmlDeviceGetUtilizationRates", 0)["gpu"] == 0)


def test_energy_grows_and_never_falls(machine: Machine) -> None:
    """The counter is power over time, the same for each process that reads it."""
    one, other = machine.process(), machine.process()
    readings = [
        reader.nvml("nvmlDeviceGetTotalEnergyConsumption", 0)
        for _ in range(20)
        for reader in (one, other)
    ]
    assert readings == sorted(readings)
