"""Real pynvml reads what the configuration says, in every field and every failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Machine

# pynvml's function, its arguments, the key, the value in the file, what must come back
FIELDS: list[tuple[str, list[Any], str, Any, Any]] = [
    ("nvmlDeviceGetName", [], "name", "NVIDIA H200", "NVIDIA H200"),
    ("nvmlDeviceGetUUID", [], "uuid", "GPU-1", "GPU-1"),
    ("nvmlDeviceGetSerial", [], "serial", "165", "165"),
    ("nvmlDeviceGetMinorNumber", [], "minor", 3, 3),
    ("nvmlDeviceGetCudaComputeCapability", [], "compute_capability", "8.6", [8, 6]),
    ("nvmlDeviceGetArchitecture", [], "compute_capability", "8.9", 8),
    ("nvmlDeviceGetTemperature", [0], "temperature", 91, 91),
    ("nvmlDeviceGetTemperatureV", [0], "temperature", -3, -3),
    ("nvmlDeviceGetTemperatureThreshold", [1], "temperature.threshold.1", 88, 88),
    ("nvmlDeviceGetMarginTemperature", [], "temperature.margin", 17, 17),
    ("nvmlDeviceGetPowerUsage", [], "power", 11170, 11170),
    ("nvmlDeviceGetEnforcedPowerLimit", [], "power.limit", 140000, 140000),
    ("nvmlDeviceGetPowerManagementLimit", [], "power.limit", 140000, 140000),
    ("nvmlDeviceGetPowerManagementLimitConstraints", [], "power.limit.min", 7, [7, 700000]),
    ("nvmlDeviceGetTotalEnergyConsumption", [], "energy", 2**40 + 1, 2**40 + 1),
    ("nvmlDeviceGetClockInfo", [1], "clock.sm", 1155, 1155),
    ("nvmlDeviceGetClockInfo", [2], "clock.memory", 2619, 2619),
    ("nvmlDeviceGetMaxClockInfo", [1], "clock.sm.max", 1875, 1875),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", [], "throttle.reasons", "0x48", 0x48),
    ("nvmlDeviceGetCurrentClocksEventReasons", [], "throttle.reasons", "0x48", 0x48),
    ("nvmlDeviceGetPerformanceState", [], "pstate", 2, 2),
    ("nvmlDeviceGetPersistenceMode", [], "persistence_mode", 0, 0),
    ("nvmlDeviceGetComputeMode", [], "compute_mode", 3, 3),
    ("nvmlDeviceGetUtilizationRates", [], "utilization.gpu", 97, {"gpu": 97, "memory": 48}),
    ("nvmlDeviceGetEncoderUtilization", [], "utilization.encoder", 7, [7, 167000]),
    ("nvmlDeviceGetDecoderUtilization", [], "utilization.decoder", 5, [5, 167000]),
    ("nvmlDeviceGetPcieThroughput", [0], "pcie.tx", 4711, 4711),
    ("nvmlDeviceGetPcieThroughput", [1], "pcie.rx", 11, 11),
    ("nvmlDeviceGetPcieReplayCounter", [], "pcie.replay", 13, 13),
    ("nvmlDeviceGetCurrPcieLinkGeneration", [], "pcie.generation", 3, 3),
    ("nvmlDeviceGetCurrPcieLinkWidth", [], "pcie.width", 8, 8),
    ("nvmlDeviceGetEccMode", [], "ecc.mode", 0, [0, 0]),
    ("nvmlDeviceGetTotalEccErrors", [1, 0], "ecc.uncorrected.volatile", 3, 3),
    ("nvmlDeviceGetTotalEccErrors", [0, 1], "ecc.corrected.aggregate", 9, 9),
    ("nvmlDeviceGetMemoryErrorCounter", [1, 1, 2], "ecc.uncorrected.aggregate.dram", 2, 2),
    ("nvmlDeviceGetRemappedRows", [], "remapped.uncorrected", 1, [0, 1, 0, 0]),
    ("nvmlDeviceGetRetiredPages", [1], "retired.double", 1, [1 << 20]),
    ("nvmlDeviceGetRetiredPagesPendingStatus", [], "retired.pending", 1, 1),
    ("nvmlDeviceGetMigMode", [], "mig", 1, [1, 1]),
    ("nvmlDeviceGetNumaNodeId", [], "numa", 1, 1),
]
# field, the key, the value, what must come back in which member of the union
VALUES = [
    (82, "temperature.memory", 95, "uiVal"),
    (83, "energy", 2**33, "ullVal"),
    (94, "pcie.replay", 7, "uiVal"),
    (142, "remapped.corrected", 5, "uiVal"),
    (186, "power", 350000, "uiVal"),
    (230, "recovery_action", 2, "uiVal"),
    (138, "nvlink.tx", 2**35, "ullVal"),
    (269, "throttle.sw_thermal", 903158000, "ullVal"),
]


@pytest.mark.parametrize(("function", "args", "key", "value", "expected"), FIELDS)
def test_a_field_is_what_the_file_says_on_that_device_alone(
    machine: Machine, function: str, args: list[Any], key: str, value: Any, expected: Any
) -> None:
    """Set for device 1 while a process runs, a field changes there and stays on device 0."""
    process = machine.process()
    before = process.nvml(function, 0, *args)
    machine.configuration.set(key, value, device=1)
    assert process.nvml(function, 1, *args) == expected
    if "Energy" not in function:
        assert process.nvml(function, 0, *args) == before
    machine.configuration.set(f"fail.{function}*", 3, device=1)
    assert process.nvml(function, 1, *args)["error"] == 3


@pytest.mark.parametrize(("field", "key", "value", "member"), VALUES)
def test_a_field_value_is_what_the_file_says(
    machine: Machine, field: int, key: str, value: int, member: str
) -> None:
    """The field API reads the same keys; `field.ID` refuses one field and not its call."""
    process = machine.process()
    machine.configuration.set(key, value)
    (got,) = process.nvml("nvmlDeviceGetFieldValues", 0, [field])
    assert (got["nvmlReturn"], got["value"][member]) == (0, value)
    machine.configuration.set(f"field.{field}", "unsupported")
    (got,) = process.nvml("nvmlDeviceGetFieldValues", 0, [field])
    assert got["nvmlReturn"] == 3


def test_sentinels_pass_through_exactly(machine: Machine) -> None:
    """Values beyond 2**53 and negative ones arrive bit by bit, also as a double."""
    process = machine.process()
    sentinel = 9223372036854775794
    machine.configuration.update({"energy": sentinel, "power": 4294967295, "field.82": "1.5e14"})
    assert process.nvml("nvmlDeviceGetTotalEnergyConsumption", 0) == sentinel
    assert process.nvml("nvmlDeviceGetPowerUsage", 0) == 4294967295
    (got,) = process.nvml("nvmlDeviceGetFieldValues", 0, [82])
    assert got["value"]["ullVal"] == 150000000000000


def test_memory_v1_counts_reserved_as_used_and_v2_does_not(machine: Machine) -> None:
    """The two calls differ by the reserve alone, and each adds up to the total."""
    machine.configuration.update(
        {
            "memory.total": 24146608128,
            "memory.reserved": 540868608,
            "memory.used_base": 1048576,
        }
    )
    process = machine.process()
    first = process.nvml("nvmlDeviceGetMemoryInfo", 0)
    second = process.nvml("nvmlDeviceGetMemoryInfo", 0, 0x02000028)
    assert first == {"total": 24146608128, "free": 23604690944, "used": 541917184}
    assert (second["used"], second["reserved"]) == (1048576, 540868608)
    assert second["free"] == first["free"]


@pytest.mark.parametrize("code", [13, 999, 3])
def test_memory_v2_can_fail_while_v1_answers(machine: Machine, code: int) -> None:
    """An old driver, WSL and unified memory: one call refused, the other as before."""
    process = machine.process()
    machine.configuration.set("fail.nvmlDeviceGetMemoryInfo_v2", code)
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0, 0x02000028)["error"] == code
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["total"] == 1 << 30


def test_unified_memory_can_be_inconsistent(machine: Machine) -> None:
    """Each figure of a memory call can be replaced alone, so that they need not add up."""
    process = machine.process()
    figures = {"total": 128501256192, "used": 6910320640, "free": 7976902656}
    machine.configuration.update({f"memory.v1.{key}": value for key, value in figures.items()})
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0) == figures


@pytest.mark.parametrize("code", [18, 9, 999])
def test_initialisation_fails_with_the_code_asked_for(machine: Machine, code: int) -> None:
    """Mismatch, no driver, unknown: nvmlInit says so, and later succeeds in the same process."""
    machine.configuration.set("fail.nvmlInit*", code)
    process = machine.process(nvml=False)
    assert process.nvml("nvmlInit")["error"] == code
    assert process.nvml("nvmlDeviceGetCount")["error"] == 1
    machine.configuration.remove("fail.nvmlInit*")
    assert process.nvml("nvmlInit") is None
    assert process.nvml("nvmlDeviceGetCount") == 2


def test_every_call_of_a_process_can_start_to_fail(machine: Machine) -> None:
    """A container that lost its device: what worked answers 999 from then on."""
    process = machine.process()
    assert process.nvml("nvmlDeviceGetPowerUsage", 0) > 0
    machine.configuration.set("fail.nvml*", 999)
    assert process.nvml("nvmlDeviceGetPowerUsage", 0)["error"] == 999


def test_a_lost_device_is_lost_alone(machine: Machine) -> None:
    """GPU_IS_LOST on each call of one device, by handle or by index; its neighbour answers."""
    process = machine.process()
    held = process.keep(1)
    machine.configuration.set("lost", 1, device=1)
    assert process.nvml("nvmlDeviceGetName", held)["error"] == 15
    assert process.nvml("nvmlDeviceGetName", 1)["error"] == 15
    assert process.nvml("nvmlDeviceGetName", 0) == "Stand-in GPU"
    assert process.nvml("nvmlDeviceGetCount") == 2


def test_a_delay_holds_up_one_device_alone(machine: Machine) -> None:
    """A call on the slow device is not back when three on the other one are."""
    machine.configuration.set("delay.nvmlDeviceGetPowerUsage", 0.6, device=1)
    slow, fast = machine.process(), machine.process()
    slow.send("nvml", "nvmlDeviceGetPowerUsage", 1)
    assert all(fast.nvml("nvmlDeviceGetPowerUsage", 0) > 0 for _ in range(3))
    assert slow.silent(0)
    assert slow.reply() > 0


def test_failures_can_be_counted_out(machine: Machine) -> None:
    """`after` and `times` bound a failure; its count survives a change of other lines."""
    process = machine.process()
    machine.configuration.set("fail.nvmlDeviceGetPowerUsage", "999 after 1 times 2")
    ask = ("nvmlDeviceGetPowerUsage", 0)
    first = [isinstance(process.nvml(*ask), dict) for _ in range(2)]
    machine.configuration.set("name", "other")
    assert first + [isinstance(process.nvml(*ask), dict) for _ in range(2)] == [
        False,
        True,
        True,
        False,
    ]


def test_random_failures_come_from_the_seed(machine: Machine) -> None:
    """Two processes with one seed fail at the same calls, about as often as asked for."""
    machine.configuration.update({"seed": 7, "fail.nvmlDeviceGetPowerUsage": "3 probability 0.3"})
    runs = [
        [isinstance(one.nvml("nvmlDeviceGetPowerUsage", 0), dict) for _ in range(101)]
        for one in (machine.process(), machine.process())
    ]
    assert runs[0] == runs[1]
    assert 15 < sum(runs[0]) < 46


def test_versions_can_be_parsed(machine: Machine) -> None:
    """Driver, NVML and CUDA versions look like versions; the file can say others."""
    process = machine.process()
    assert process.nvml("nvmlSystemGetDriverVersion").split(".")[0].isdigit()
    assert process.nvml("nvmlSystemGetNVMLVersion").count(".") >= 2
    assert process.nvml("nvmlSystemGetCudaDriverVersion") == 13000
    machine.configuration.set("driver.version", "570.195")
    assert process.nvml("nvmlSystemGetDriverVersion") == "570.195"


def test_what_is_not_modelled_refuses_or_is_absent(machine: Machine) -> None:
    """Accounting: not supported; changes: no permission; newest calls: no such function."""
    process = machine.process()
    assert process.nvml("nvmlDeviceGetAccountingMode", 0)["error"] == 3
    assert process.nvml("nvmlDeviceSetPersistenceMode", 0, 1)["error"] == 4
    assert process.nvml("nvmlDeviceGetPdi", 0)["error"] == 13


def test_handles_by_uuid_and_bus_address(machine: Machine, tmp_path: Path) -> None:
    """Both find the device; an unknown one is NOT_FOUND."""
    machine.configuration.update({"uuid": "GPU-b", "pci": "0000:3b:00"}, device=1)
    process = machine.process()
    assert process.nvml("nvmlDeviceGetPciInfo", 1)["busId"] == "00000000:3B:00.0"
    assert "error" not in process.nvml("nvmlDeviceGetHandleByUUID", None, "GPU-b")
    assert "error" not in process.nvml("nvmlDeviceGetHandleByPciBusId", None, "00000000:3B:00.0")
    assert process.nvml("nvmlDeviceGetHandleByUUID", None, "GPU-x")["error"] == 6
