"""The hooked functions by name; a name's place is its bit in a rule's mask, as in `calls.h`."""

from __future__ import annotations

ALLOCATIONS = (
    "cuMemAlloc_v2",
    "cuMemAllocPitch_v2",
    "cuMemAllocManaged",
    "cuMemAllocAsync",
    "cuMemAllocAsync_ptsz",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocFromPoolAsync_ptsz",
    "cuMemCreate",
)
LAUNCHES = (
    "cuLaunchKernel",
    "cuLaunchKernel_ptsz",
    "cuLaunchKernelEx",
    "cuLaunchKernelEx_ptsz",
    "cuLaunchCooperativeKernel",
    "cuLaunchCooperativeKernel_ptsz",
    "cuGraphLaunch",
    "cuGraphLaunch_ptsz",
)
WAITS = (
    "cuStreamSynchronize",
    "cuStreamSynchronize_ptsz",
    "cuEventSynchronize",
    "cuEventQuery",
    "cuCtxSynchronize",
    "cuCtxSynchronize_v2",
)
CONTEXT = "cuCtxGetCurrent"  # works with a lost context too
INITIALISATIONS = (
    "ncclCommInitAll",
    "ncclCommInitRank",
    "ncclCommInitRankConfig",
    "ncclCommSplit",
)
COLLECTIVES = (
    "ncclAllReduce",
    "ncclAllGather",
    "ncclReduceScatter",
    "ncclBroadcast",
    "ncclReduce",
    "ncclSend",
    "ncclRecv",
)
CUDA = (*ALLOCATIONS, *LAUNCHES, *WAITS, CONTEXT)
NCCL = (*INITIALISATIONS, *COLLECTIVES, "ncclCommGetAsyncError", "ncclCommAbort")
SYMBOLS = (*CUDA, *NCCL)
BITS = {name: 1 << place for place, name in enumerate(SYMBOLS)}
STUCK = sum(BITS[name] for name in CUDA if name != CONTEXT)  # what a lost context refuses


def mask(names: tuple[str, ...]) -> int:
    """The bits of these names, which must be known."""
    return sum(BITS[name] for name in set(names))
