"""The kernel's uprobes on the stand-ins: each call is a hit, its arguments where the ABI says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Machine, Process
from .uprobes import Lacking, Tracer, events, sweep

# Not BPF, but as with it: root, and a kernel that takes probes.
pytestmark = pytest.mark.ebpf

SIZES = [2, 3, 257, 4099, 65537, 104729, 611953, 1299709, 2097593, 7, 11, 13, 17]
SIZE = "size=%si:u64"
LAUNCH = (
    "f=%di:x64 gx=%si:u32 gy=%dx:u32 gz=%cx:u32 bx=%r8:u32 by=%r9:u32 "
    "bz=$stack1:u32 smem=$stack2:u32 stream=$stack3:x64"
)
LAUNCH_BY_DIM3 = (
    "f=%di:x64 gxy=%si:x64 gz=%dx:u32 bxy=%cx:x64 bz=%r8:u32 args=%r9:x64 "
    "smem=$stack1:u64 stream=$stack2:x64"
)
# Grid, block and shared memory of eleven launches, no two figures of one alike.
SHAPES = [
    [(103 + 2 * turn, 107 + 2 * turn, 109 + 2 * turn), (5, 11, 17), 211 + turn]
    for turn in range(11)
]


@pytest.fixture
def tracer(libraries: Path) -> Iterator[Tracer]:
    """A tracer that leaves nothing behind, whatever the test does."""
    try:
        made = Tracer()
    except Lacking as reason:
        pytest.skip(str(reason))
    try:
        yield made
    finally:
        made.close()


def allocate(process: Process, by: str, size: int) -> int:
    """The code of an allocation by symbol or by the pointer that was looked up."""
    if by == "symbol":
        return int(process.raw("cuda", "cuMemAlloc_v2", "&", size)[0])
    return int(process.pointed("cuMemAlloc", 3020, "&", size)[0])


def launch(process: Process, by: str, *args: Any) -> int:
    """The code of a launch, likewise."""
    if by == "symbol":
        return int(process.raw("cuda", "cuLaunchKernel", *args)[0])
    return int(process.pointed("cuLaunchKernel", 4000, *args)[0])


@pytest.mark.parametrize("by", ["symbol", "pointer"])
def test_an_allocation_is_one_hit_with_its_size(
    machine: Machine, tracer: Tracer, libraries: Path, by: str
) -> None:
    """Thirteen calls, thirteen hits, their bytes in the second register."""
    tracer.probe("alloc", libraries / "libcuda.so.1", "cuMemAlloc_v2", SIZE)
    process, other = machine.process(), machine.process()
    process.start()
    other.start()
    tracer.watch(process.pid)
    assert [allocate(process, by, size) for size in SIZES] == [0] * 13
    assert allocate(other, by, 19) == 0
    assert [hit["size"] for hit in tracer.hits("alloc")] == SIZES


@pytest.mark.parametrize("by", ["symbol", "pointer"])
def test_a_launch_is_one_hit_with_its_shape(
    machine: Machine, tracer: Tracer, libraries: Path, by: str
) -> None:
    """Five sizes in registers, then the block's depth, shared memory and stream on the stack."""
    tracer.probe("launch", libraries / "libcuda.so.1", "cuLaunchKernel", LAUNCH)
    process = machine.process()
    process.start()
    function = process.kernel("gemm")
    stream = process.cuda("cuStreamCreate", "&", 1)[1]
    tracer.watch(process.pid)
    for grid, block, shared in SHAPES:
        assert launch(process, by, function, *grid, *block, shared, stream, None, None) == 0
    names = ("f", "gx", "gy", "gz", "bx", "by", "bz", "smem", "stream")
    assert [tuple(hit[name] for name in names) for hit in tracer.hits("launch")] == [
        (function, *grid, *block, shared, stream) for grid, block, shared in SHAPES
    ]


def test_a_launch_of_the_runtime_splits_each_dim3_over_two_registers(
    machine: Machine, tracer: Tracer, libraries: Path
) -> None:
    """Two share a register, the third has the next; the driver's launch behind it is a hit too."""
    tracer.probe("outer", libraries / "libcudart.so.13", "cudaLaunchKernel", LAUNCH_BY_DIM3)
    tracer.probe("inner", libraries / "libcuda.so.1", "cuLaunchKernel", LAUNCH)
    process = machine.process()
    stream = process.raw("cudart", "cudaStreamCreate", "&")[1]
    tracer.watch(process.pid)
    for grid, block, shared in SHAPES:
        call = ("cudaLaunchKernel", 8191, list(grid), list(block), 131071, shared, stream)
        assert process.raw("cudart", *call) == [0]
    outer = [
        (hit["f"], hit["gxy"], hit["gz"], hit["bxy"], hit["bz"], hit["args"], hit["smem"])
        for hit in tracer.hits("outer")
    ]
    assert outer == [
        (8191, x | y << 32, z, bx | by << 32, bz, 131071, shared)
        for (x, y, z), (bx, by, bz), shared in SHAPES
    ]
    assert {hit["stream"] for hit in tracer.hits("outer")} == {stream}
    names = ("gx", "gy", "gz", "bx", "by", "bz", "smem", "stream")
    assert [tuple(hit[name] for name in names) for hit in tracer.hits("inner")] == [
        (*grid, *block, shared, stream) for grid, block, shared in SHAPES
    ]


def test_an_allocation_of_the_runtime_is_a_hit_there_and_one_in_the_driver(
    machine: Machine, tracer: Tracer, libraries: Path
) -> None:
    """A probe sits on the function: it sees the call though the runtime looked its address up."""
    tracer.probe("outer", libraries / "libcudart.so.13", "cudaMalloc", SIZE)
    tracer.probe("inner", libraries / "libcuda.so.1", "cuMemAlloc_v2", SIZE)
    process = machine.process()
    tracer.watch(process.pid)
    for size in SIZES:
        assert process.raw("cudart", "cudaMalloc", "&", size)[0] == 0
    assert [hit["size"] for hit in tracer.hits("outer")] == SIZES
    assert [hit["size"] for hit in tracer.hits("inner")] == SIZES


def test_each_failure_is_a_return_of_its_code(
    machine: Machine, tracer: Tracer, libraries: Path
) -> None:
    """On a full card the probe on the return sees 2, of the driver's call and of the runtime's."""
    tracer.probe("driver", libraries / "libcuda.so.1", "cuMemAlloc_v2", "code=$retval:s32")
    tracer.probe("runtime", libraries / "libcudart.so.13", "cudaMalloc", "code=$retval:s32")
    process = machine.process()
    process.start()
    tracer.watch(process.pid)
    sizes = [257 << 20, 263 << 20, 269 << 20, 271 << 20, 277 << 20, 5 << 20]  # of 1 GiB
    codes = [allocate(process, "symbol", size) for size in sizes]
    codes += [allocate(process, "pointer", size) for size in sizes[3:]]
    codes += [process.raw("cudart", "cudaMalloc", "&", size)[0] for size in sizes[3:]]
    assert codes == [0, 0, 0, 2, 2, 0] + [2, 2, 0] * 2
    assert [hit["code"] for hit in tracer.hits("driver")] == codes
    assert [hit["code"] for hit in tracer.hits("runtime")] == [2, 2, 0]


def test_a_ranks_number_is_the_third_register(
    machine: Machine, tracer: Tracer, libraries: Path
) -> None:
    """ncclCommInitRank: ranks in %si, rank in %dx, and the id's 128 bytes on the stack between."""
    fetch = "ranks=%si:s32 rank=%dx:s32 first=$stack1:x64 last=$stack16:x64"
    tracer.probe("join", libraries / "libnccl.so.2", "ncclCommInitRank", fetch)
    processes = [machine.process() for _ in range(3)]
    for process in processes:
        process.start()
    tracer.watch(*(process.pid for process in processes))
    words = [2**61 - 1, *range(14), 2**31 - 1]
    identity = b"".join(word.to_bytes(8, "little") for word in words).hex()
    for rank, process in enumerate(processes):
        process.send("join", identity, 3, rank)
    assert [process.reply()[0] for process in processes] == [0, 0, 0]
    seen = {hit.pop("pid"): hit for hit in tracer.hits("join")}
    assert seen == {
        process.pid: {"ranks": 3, "rank": rank, "first": words[0], "last": words[-1]}
        for rank, process in enumerate(processes)
    }
    assert len(tracer.hits("join")) == 3


def test_a_collective_is_one_hit_with_its_count(
    machine: Machine, tracer: Tracer, libraries: Path
) -> None:
    """ncclAllReduce: six arguments in registers, the stream alone on the stack."""
    fetch = (
        "from=%di:x64 to=%si:x64 count=%dx:u64 type=%cx:u32 op=%r8:u32 comm=%r9:x64 "
        "stream=$stack1:x64"
    )
    tracer.probe("reduce", libraries / "libnccl.so.2", "ncclAllReduce", fetch)
    process = machine.process()
    process.start()
    comm = process.join(process.unique(), 1, 0)[1]
    stream = process.cuda("cuStreamCreate", "&", 1)[1]
    tracer.watch(process.pid)
    calls = [(8191, 131071, count, 7, 2, comm, stream) for count in (3, 5, 7, 11, 13, 17, 19)]
    for call in calls:
        assert process.raw("nccl", "ncclAllReduce", *call) == [0]
    names = ("from", "to", "count", "type", "op", "comm", "stream")
    hits = tracer.hits("reduce")
    assert [tuple(hit[name] for name in names) for hit in hits] == calls


def test_what_a_killed_run_left_in_the_kernel_is_swept(tracer: Tracer, libraries: Path) -> None:
    """Events and instance of a process stay while it lives, and go with a later tracer's start."""
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    left = Tracer(owner.pid)
    left.probe("alloc", libraries / "libcuda.so.1", "cuMemAlloc_v2", SIZE)
    left.watch(owner.pid)
    sweep(tracer.root)
    assert (left.group, "alloc") in events(tracer.root)
    owner.kill()
    owner.communicate()
    sweep(tracer.root)
    assert left.group not in {group for group, _ in events(tracer.root)}
    assert not left.instance.exists()
