"""libcuda behaves as a driver does: full is full, an error sticks, what was destroyed is gone."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Machine

STICKY = [700, 702, 710, *range(714, 720), 721]


def test_a_device_is_full_exactly_when_it_is_full(machine: Machine) -> None:
    """The last byte can be had, one allocation more is error 2, and a free makes room again."""
    process = machine.process()
    process.start()
    code, at = process.cuda("cuMemAlloc_v2", "&", (1 << 30) - 512)
    assert code == 0
    assert process.cuda("cuMemAlloc_v2", "&", 512)[0] == 0
    assert process.cuda("cuMemAlloc_v2", "&", 1)[0] == 2
    assert process.cuda("cuMemGetInfo_v2", "&", "&") == [0, 0, 1 << 30]
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["free"] == 0
    assert process.cuda("cuMemFree_v2", at) == 0
    assert process.cuda("cuMemAlloc_v2", "&", 1 << 20)[0] == 0


def test_another_process_counts_against_the_device(machine: Machine) -> None:
    """Two processes share one device's memory; the second is refused what the first holds."""
    first, second = machine.process(), machine.process()
    first.start()
    second.start()
    assert first.cuda("cuMemAlloc_v2", "&", 700 << 20)[0] == 0
    assert second.cuda("cuMemAlloc_v2", "&", 400 << 20)[0] == 2
    first.close()
    assert second.cuda("cuMemAlloc_v2", "&", 400 << 20)[0] == 0


@pytest.mark.parametrize(
    ("allocate", "release"),
    [
        (["cuMemAlloc_v2", "&", 1 << 20], ["cuMemFree_v2"]),
        (["cuMemAllocAsync", "&", 1 << 20, 0], ["cuMemFreeAsync", 0]),
        (["cuMemAllocAsync_ptsz", "&", 1 << 20, 0], ["cuMemFreeAsync_ptsz", 0]),
        (["cuMemAllocFromPoolAsync", "&", 1 << 20, 1, 0], ["cuMemFreeAsync", 0]),
        (["cuMemAllocManaged", "&", 1 << 20, 1], ["cuMemFree_v2"]),
        (["cuMemAllocPitch_v2", "&", "&", 512, 2048, 4], ["cuMemFree_v2"]),
    ],
)
def test_each_way_to_allocate_is_charged_and_given_back(
    machine: Machine, allocate: list[Any], release: list[Any]
) -> None:
    """1 MiB shows in NVML after the call and not after its free; a second free is error 1."""
    process = machine.process()
    process.start()
    code, at, *_ = process.cuda(*allocate)
    assert code == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 1 << 20
    assert process.cuda(release[0], at, *release[1:]) == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0
    assert process.cuda(release[0], at, *release[1:]) == 1


def test_host_memory_is_not_the_devices(machine: Machine) -> None:
    """Page-locked memory is usable and charges nothing."""
    process = machine.process()
    process.start()
    calls: list[list[Any]] = [["cuMemAllocHost_v2", "&", 4096], ["cuMemHostAlloc", "&", 4096, 0]]
    for call in calls:
        code, at = process.cuda(*call)
        assert code == 0
        assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0
        assert process.cuda("cuMemFreeHost", at) == 0


def test_small_copies_move_bytes(machine: Machine) -> None:
    """What is sent to a small allocation comes back; a copy beyond its end is error 1."""
    process = machine.process()
    process.start()
    assert process.roundtrip(60000)
    code, at = process.cuda("cuMemAlloc_v2", "&", 4096)
    assert process.cuda("cuMemsetD8_v2", at, 7, 4097) == 1
    assert process.cuda("cuMemsetD8_v2", at + 4, 7, 4092) == 0
    assert code == 0


@pytest.mark.parametrize("code", STICKY)
def test_a_trap_sticks_to_its_process(machine: Machine, code: int) -> None:
    """The launch succeeds, its synchronise and all after it fail, in this process alone."""
    machine.configuration.set("trap.bad", code)
    process, other = machine.process(), machine.process()
    process.start()
    other.start()
    stream = process.cuda("cuStreamCreate", "&", 0)[1]
    assert process.launch(process.kernel("good")) == 0
    assert process.launch(process.kernel("bad"), stream) == 0
    assert process.cuda("cuStreamSynchronize", stream) == code
    calls: list[list[Any]] = [
        ["cuMemAlloc_v2", "&", 512],
        ["cuCtxSynchronize"],
        ["cuStreamQuery", stream],
        ["cuMemGetInfo_v2", "&", "&"],
        ["cuDevicePrimaryCtxRetain", "&", 0],
    ]
    for call in calls:
        got = process.cuda(*call)
        assert (got[0] if isinstance(got, list) else got) == code
    assert process.text("cuGetErrorName", code).startswith("CUDA_ERROR_")
    assert process.cuda("cuDeviceGetCount", "&") == [0, 2]
    assert other.cuda("cuMemAlloc_v2", "&", 512)[0] == 0


def test_a_failure_can_be_sticky_or_not(machine: Machine) -> None:
    """`fail` ends one call; with `sticky` the process keeps the code when the line is gone."""
    process = machine.process()
    process.start()
    machine.configuration.set("fail.cuMemAlloc_v2", "2 times 1")
    assert process.attempts("cuMemAlloc_v2", 2, "&", 512) == [2, 0]
    machine.configuration.set("fail.cuMemAlloc_v2", "719 sticky times 1")
    assert process.attempts("cuMemAlloc_v2", 2, "&", 512) == [719, 719]
    machine.configuration.remove("fail.cuMemAlloc_v2")
    assert process.cuda("cuCtxSynchronize") == 719


def test_a_destroyed_context_is_709_and_none_is_201(machine: Machine) -> None:
    """Who had it current elsewhere gets 709; popped, there is none; its memory is given back."""
    process = machine.process()
    assert process.cuda("cuInit", 0) == 0
    code, context = process.cuda("cuCtxCreate_v2", "&", 0, 0)
    assert code == 0
    assert process.cuda("cuMemAlloc_v2", "&", 1 << 20)[0] == 0
    assert process.cuda("cuCtxPushCurrent_v2", context) == 0
    assert process.cuda("cuCtxDestroy_v2", context) == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0
    assert process.cuda("cuMemAlloc_v2", "&", 512)[0] == 709
    assert process.cuda("cuCtxPopCurrent_v2", "&")[0] == 0
    assert process.cuda("cuMemAlloc_v2", "&", 512)[0] == 201
    assert process.cuda("cuCtxDestroy_v2", context) == 709


def test_a_reset_takes_everything_and_a_new_retain_begins_anew(machine: Machine) -> None:
    """After the reset 709 and no memory; retained and set again, the device works."""
    process = machine.process()
    context = process.start()
    assert process.cuda("cuMemAlloc_v2", "&", 1 << 20)[0] == 0
    stream = process.cuda("cuStreamCreate", "&", 1)[1]
    assert process.cuda("cuDevicePrimaryCtxReset_v2", 0) == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0
    assert process.cuda("cuMemAlloc_v2", "&", 512)[0] == 709
    assert process.cuda("cuDevicePrimaryCtxGetState", 0, "&", "&")[2] == 0
    assert process.start() == context
    assert process.cuda("cuMemAlloc_v2", "&", 512)[0] == 0
    assert process.cuda("cuStreamQuery", stream) == 400


def test_before_initialisation_and_without_devices(machine: Machine) -> None:
    """3 before cuInit, 100 without a device, and what the file says of cuInit."""
    process = machine.process()
    assert process.cuda("cuDeviceGetCount", "&")[0] == 3
    machine.configuration.set("fail.cuInit", 46)
    assert process.cuda("cuInit", 0) == 46
    machine.configuration.remove("fail.cuInit")
    machine.configuration.set("devices", 0)
    assert process.cuda("cuInit", 0) == 100


def test_a_forked_child_cannot_use_its_parents_cuda(machine: Machine) -> None:
    """As with the real driver, the child gets error 3."""
    process = machine.process()
    process.start()
    assert process.forked()[0] == 3


def test_visible_devices_choose_and_order(machine: Machine) -> None:
    """CUDA_VISIBLE_DEVICES: ordinal 0 is then device 1 of the machine."""
    process = machine.process(CUDA_VISIBLE_DEVICES="1")
    process.start(0)
    assert process.cuda("cuDeviceGetCount", "&") == [0, 1]
    assert process.cuda("cuMemAlloc_v2", "&", 1 << 20)[0] == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 1)["used"] == 1 << 20


def test_attributes_are_those_of_the_capability(machine: Machine) -> None:
    """What occupancy is computed from follows the compute capability in the file."""
    process = machine.process()
    machine.configuration.set("compute_capability", "8.6", device=1)
    assert process.cuda("cuInit", 0) == 0
    wanted = {39: (2048, 1536), 106: (32, 16), 81: (233472, 102400), 97: (232448, 101376)}
    for which, expected in wanted.items():
        got = [process.cuda("cuDeviceGetAttribute", "&", which, device)[1] for device in (0, 1)]
        assert tuple(got) == expected


def test_a_kernel_has_the_attributes_of_the_file(machine: Machine) -> None:
    """Registers and shared memory of one kernel, and the occupancy that follows from them."""
    machine.configuration.update({"kernel.gemm.registers": 128, "kernel.gemm.shared": 49152})
    process = machine.process()
    process.start()
    function = process.kernel("gemm")
    assert process.cuda("cuFuncGetAttribute", "&", 4, function) == [0, 128]
    assert process.cuda("cuFuncGetAttribute", "&", 1, function) == [0, 49152]
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    assert process.cuda(name, "&", function, 256, 0) == [0, 2]
    assert process.cuda(name, "&", process.kernel("small"), 256, 0) == [0, 8]


def test_physical_memory_is_charged_when_created(machine: Machine) -> None:
    """What cuMemCreate makes is charged, mapping does not, release gives back."""
    process = machine.process()
    process.start()
    size = 2 << 20
    code, at = process.cuda("cuMemAddressReserve", "&", size, 0, 0, 0)
    assert code == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0
    properties = process.cuda("cuMemHostAlloc", "&", 4096, 0)[1]
    assert process.cuda("cuMemsetD8_v2", properties, 0, 4096) == 0  # pinned memory of device 0
    code, memory = process.cuda("cuMemCreate", "&", size, properties, 0)
    assert code == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == size
    assert process.cuda("cuMemMap", at, size, 0, memory, 0) == 0
    assert process.cuda("cuMemUnmap", at, size) == 0
    assert process.cuda("cuMemRelease", memory) == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0


def test_look_ups_go_by_version_and_flags(machine: Machine) -> None:
    """The newest form a version knows, the per-thread form on request, and reasons when none."""
    process = machine.process()

    def look(name: str, version: int, flags: int = 0) -> list[int]:
        got: list[int] = process.cuda("cuGetProcAddress_v2", name, "&", version, flags, "&")
        return got

    assert look("cuMemAlloc", 3020)[0] == 0
    assert look("cuMemAlloc", 3020)[1] != 0
    assert look("cuMemAlloc", 2000) == [0, 0, 2]
    assert look("cuNoSuchThing", 13000) == [0, 0, 1]
    assert look("", 0) == [0, 0, 1]
    assert look("cuMemAlloc_v2", 13000) == [0, 0, 1]
    assert look("cuCtxCreate", 3020)[1] != look("cuCtxCreate", 11040)[1]
    assert look("cuCtxCreate", 12050)[1] == look("cuCtxCreate", 13000)[1]
    assert look("cuLaunchKernel", 7000, 1)[1] != look("cuLaunchKernel", 7000, 2)[1]
    assert look("cuMemFree", 7000, 1)[1] == look("cuMemFree", 7000, 2)[1]
    assert process.cuda("cuGetProcAddress", "cuNoSuchThing", "&", 12000, 0)[0] == 500


def test_export_tables_are_not_there(machine: Machine) -> None:
    """Private tables of the real driver are answered with 500."""
    process = machine.process()
    assert process.cuda("cuGetExportTable", "&", "0123456789abcdef") == [500, 0]


def test_a_lost_device_fails_cuda_too(machine: Machine) -> None:
    """Calls on its context answer 999, or what the file says."""
    process = machine.process()
    process.start(1)
    machine.configuration.set("lost", 1, device=1)
    assert process.cuda("cuCtxSynchronize") == 999
    machine.configuration.set("lost.cuda", 719, device=1)
    assert process.cuda("cuCtxSynchronize") == 719


def test_contexts_can_cost_memory(machine: Machine) -> None:
    """`context_memory` is charged with the context, not with the library."""
    machine.configuration.set("context_memory", 256 << 20)
    process = machine.process()
    assert process.cuda("cuInit", 0) == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0
    process.start()
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 256 << 20
    assert process.cuda("cuDevicePrimaryCtxReset_v2", 0) == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0


def test_the_runtime_is_the_driver_under_other_names(machine: Machine) -> None:
    """What cudaMalloc got shows in NVML; an error is kept until it is asked for."""
    process = machine.process()

    def run(name: str, *args: Any) -> Any:
        got = process.raw("cudart", name, *args)
        return got if len(got) > 1 else got[0]

    code, at = run("cudaMalloc", "&", 1 << 20)
    assert code == 0
    assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 1 << 20
    assert run("cudaMalloc", "&", 2 << 30)[0] == 2
    assert [run("cudaPeekAtLastError"), run("cudaGetLastError"), run("cudaGetLastError")] == [
        2,
        2,
        0,
    ]
    assert run("cudaFree", at) == 0
    assert run("cudaGetDeviceCount", "&") == [0, 2]
    assert run("cudaLaunchKernel", 4096, 1 | 1 << 32, 1, 32 | 1 << 32, 1, 0, 0, 0) == 0
    assert run("cudaDeviceSynchronize") == 0
    assert run("cudaDeviceReset") == 0
    assert run("cudaMalloc", "&", 512)[0] == 0
