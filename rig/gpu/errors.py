"""What goes wrong on a device, as types, in the words of torch, NCCL and vLLM.

Sources: torch `c10/cuda/CUDACachingAllocator.cpp`, `c10/cuda/CUDAException.cpp`,
`ProcessGroupNCCL.cpp`; vLLM `v1/engine/exceptions.py`.
"""

OUT_OF_MEMORY = 2
STICKY = frozenset({700, 702, 710, *range(714, 720), 721})  # the context is lost until exit
NCCL_CUDA, NCCL_REMOTE = 1, 6
ASYNCHRONOUS = (
    "CUDA kernel errors might be asynchronously reported at some other API call, "
    "so the stacktrace below might be incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)


def size(count: int) -> str:
    """Bytes as torch writes them, like `20.00 MiB`."""
    for unit, step in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << step:
            return f"{count / (1 << step):.2f} {unit}"
    return f"{count} bytes"


class Absent(Exception):
    """No libcuda or libnccl here, or no device behind them; one line says what to do."""


class DeviceError(Exception):
    """Anything that a device or a communicator answers; `kind` is the name torch gives it."""

    kind = "RuntimeError"


class CudaError(DeviceError):
    """A CUresult other than success and out of memory."""

    kind = "torch.AcceleratorError"

    def __init__(self, code: int, call: str, text: str) -> None:
        super().__init__(f"CUDA error: {text}\n{ASYNCHRONOUS}")
        self.code, self.call = code, call


class StickyError(CudaError):
    """One after which every call of this process fails: only its end helps."""


class OutOfMemory(DeviceError):
    """CUDA_ERROR_OUT_OF_MEMORY; the process can go on. Sizes in bytes."""

    kind = "torch.OutOfMemoryError"

    def __init__(self, wanted: int, free: int, total: int, mine: int, ordinal: int = 0) -> None:
        super().__init__(
            f"CUDA out of memory. Tried to allocate {size(wanted)}. GPU {ordinal} has a total "
            f"capacity of {size(total)} of which {size(free)} is free. Including non-PyTorch "
            f"memory, this process has {size(mine)} memory in use."
        )
        self.wanted, self.free, self.total, self.mine = wanted, free, total, mine


class NcclError(DeviceError):
    """An ncclResult_t other than success."""

    kind = "torch.distributed.DistBackendError"

    def __init__(self, code: int, call: str, text: str) -> None:
        super().__init__(f"NCCL error in {call}: {text}")
        self.code, self.call = code, call


class RemoteError(NcclError):
    """ncclRemoteError: another rank of the communicator has gone."""


class NcclTimeout(DeviceError):
    """A collective that did not end in time; the text is the watchdog's line. Times in seconds."""

    kind = "torch.distributed.DistBackendError"

    def __init__(self, rank: int, sequence: int, numel: int, limit: float, ran: float) -> None:
        super().__init__(
            f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL("
            f"SeqNum={sequence}, OpType=ALLREDUCE, NumelIn={numel}, NumelOut={numel}, "
            f"Timeout(ms)={limit * 1000:.0f}) ran for {ran * 1000:.0f} milliseconds "
            "before timing out."
        )


class StepTimeout(DeviceError):
    """A step that did not come back although its collective did: the host side hangs."""

    kind = "TimeoutError"

    def __init__(self) -> None:
        super().__init__("RPC call to execute_model timed out.")


class WorkerDied(DeviceError):
    """A rank's process has ended."""

    def __init__(self, rank: int) -> None:
        super().__init__(
            f"Worker proc VllmWorker-{rank} died unexpectedly, shutting down executor."
        )


class EngineDead(Exception):
    """The engine has met an error that it cannot survive; vLLM's words for every request then."""

    def __init__(self) -> None:
        super().__init__(
            "EngineCore encountered an issue. See stack trace (above) for the root cause."
        )
