"""One rank's part of one device: weights, KV blocks, the kernels of a step and its all-reduce.

Work is put on one stream and waited for later, as engines do: an error of a step shows at the
next call that looks. Every method belongs to one thread, but for `watch`.
"""

from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from time import monotonic

from rig.gpu.abi import BFLOAT16, SUM, Call, Cuda, Nccl, UniqueId
from rig.gpu.errors import NCCL_CUDA, Absent, DeviceError

HIDDEN = 4096  # elements a token that an all-reduce sums up
NON_BLOCKING, NO_TIMING = 1, 2  # CU_STREAM_NON_BLOCKING, CU_EVENT_DISABLE_TIMING
BATCH = 256  # tokens that the all-reduce's buffer has room for
# name, and grid and block as a function of the tokens in the batch: a layer of a llama in vLLM
KERNELS: tuple[tuple[str, Callable[[int], tuple[int, int, int]], int], ...] = (
    ("fused_add_rms_norm", lambda tokens: (tokens, 1, 1), 1024),
    ("gemm_qkv", lambda tokens: (48, -(-tokens // 64), 1), 384),
    ("flash_fwd_splitkv", lambda tokens: (1, 8, tokens), 128),
    ("gemm_gate_up", lambda tokens: (112, -(-tokens // 64), 1), 384),
)
# Empty kernels, so that a real driver takes the module as well; the stand-in reads no image.
PTX = ".version 7.0\n.target sm_70\n.address_size 64\n" + "".join(
    f".visible .entry {name}() {{ ret; }}\n" for name, _, _ in KERNELS
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model does to a device: `weights` is a share of its memory, 0 to 1."""

    weights: float = 0.5
    layers: int = 8


@dataclass(frozen=True, slots=True)
class Flight:
    """The step under way, as the watchdog sees it; `since` in seconds of the monotonic clock."""

    sequence: int
    since: float
    numel: int


class Device:
    """A context with weights in it. `ordinal` counts the devices visible to this process."""

    def __init__(self, ordinal: int, shape: Shape) -> None:
        self.cuda, self.nccl = Cuda(), Nccl()
        self.flight: Flight | None = None
        self.aborted: DeviceError | None = None
        self.allocated = 0
        self._sizes: dict[int, int] = {}
        self._comm, self._buffer = c_void_p(), c_void_p()
        self._steps = 0
        self._plans: dict[int, tuple[tuple[object, ...], ...]] = {}
        self._layers = shape.layers
        self._launch: Call = self.cuda["cuLaunchKernel"]
        self.device = self._open(ordinal)
        try:
            self._load(shape)
        except DeviceError:
            self.release()  # or its memory would be held by nobody, and missing in the next attempt
            raise

    def _load(self, shape: Shape) -> None:
        self.total = self.cuda.memory()[1]
        for _ in range(shape.layers):
            self.allocate(int(self.total * shape.weights) // shape.layers)

    def _open(self, ordinal: int) -> int:
        count, device, self._context = c_int(), c_int(), c_void_p()
        self.cuda("cuInit", 0)
        self.cuda("cuDeviceGetCount", byref(count))
        if not count.value:
            raise Absent("no CUDA device is visible")
        # As many ranks as devices is the rule; on fewer devices, ranks share (real NCCL refuses).
        self.cuda("cuDeviceGet", byref(device), ordinal % count.value)
        self.cuda("cuDevicePrimaryCtxRetain", byref(self._context), device)
        self.adopt()
        self._stream, self._event, module = c_void_p(), c_void_p(), c_void_p()
        self.cuda("cuStreamCreate", byref(self._stream), NON_BLOCKING)
        self.cuda("cuEventCreate", byref(self._event), NO_TIMING)
        self.cuda("cuModuleLoadData", byref(module), c_char_p(PTX.encode()))
        self._functions = [c_void_p() for _ in KERNELS]
        for function, (name, _, _) in zip(self._functions, KERNELS, strict=True):
            self.cuda("cuModuleGetFunction", byref(function), module, name.encode())
        return device.value

    def adopt(self) -> None:
        """Make the context current in the calling thread."""
        self.cuda("cuCtxSetCurrent", self._context)

    def unique_id(self) -> bytes:
        """A new communicator's id, for all ranks."""
        unique = UniqueId()
        self.nccl("ncclGetUniqueId", byref(unique))
        return bytes(unique)

    def join(self, unique: bytes, ranks: int, rank: int) -> None:
        """Become a rank; returns when all are there."""
        self._buffer = c_void_p(self.allocate(BATCH * HIDDEN * 2))
        identity = UniqueId.from_buffer_copy(unique)
        self.nccl("ncclCommInitRank", byref(self._comm), ranks, identity, rank)

    def allocate(self, count: int) -> int:
        """So many bytes; raises OutOfMemory."""
        at = c_uint64()
        self.cuda("cuMemAlloc_v2", byref(at), c_size_t(count), wanted=count, mine=self.allocated)
        self._sizes[at.value] = count
        self.allocated += count
        return at.value

    def free(self, at: int) -> None:
        """Give an allocation back."""
        self.cuda("cuMemFree_v2", at)
        self.allocated -= self._sizes.pop(at)

    def launch(self, tokens: int) -> None:
        """Put one step on the stream: kernels of each layer, then the ranks' all-reduce.

        Real engines reduce twice a layer; once a step is enough for ranks to wait for each other.
        """
        tokens = min(max(tokens, 1), BATCH)
        launch = self._launch
        plan = self._plans.get(tokens) or self._plan(tokens)
        self._steps += 1
        for _ in range(self._layers):
            for arguments in plan:
                if code := launch(*arguments):
                    raise self.cuda.error(code, "cuLaunchKernel")
        if self._comm:
            count = c_size_t(tokens * HIDDEN)
            buffer, stream = self._buffer, self._stream
            code = self.nccl["ncclAllReduce"](
                buffer, buffer, count, BFLOAT16, SUM, self._comm, stream
            )
            if code:
                self._raise(code)
        self.cuda("cuEventRecord", self._event, self._stream)
        self.flight = Flight(self._steps, monotonic(), tokens * HIDDEN)

    def _plan(self, tokens: int) -> tuple[tuple[object, ...], ...]:
        """The arguments of a layer's launches, converted once."""
        plan = tuple(
            (function, *map(c_uint, (*grid(tokens), block, 1, 1, 0)), self._stream, None, None)
            for function, (_, grid, block) in zip(self._functions, KERNELS, strict=True)
        )
        self._plans[tokens] = plan
        return plan

    def _raise(self, code: int) -> None:
        """An error of NCCL's; one that is only CUDA's is told as that."""
        if code == NCCL_CUDA:
            self.cuda("cuStreamSynchronize", self._stream)
        raise self.aborted or self.nccl.error(code, "ncclAllReduce")

    def synchronise(self) -> None:
        """Wait for all that was launched; raises what went wrong on the device meanwhile."""
        if self.flight is None:
            return
        self.cuda("cuStreamSynchronize", self._stream)
        if self.aborted is not None:  # an aborted collective is over without having been done
            raise self.aborted
        self.flight = None

    def done(self) -> bool:
        """Whether the last step's collective is over; from any thread that has the context."""
        return self.cuda["cuEventQuery"](self._event) == 0

    def asynchronous_error(self) -> DeviceError | None:
        """What NCCL has noticed on its own, such as a rank that has gone; from any thread."""
        found = c_int()
        if not self._comm:
            return None
        code = self.nccl["ncclCommGetAsyncError"](self._comm, byref(found)) or found.value
        return self.nccl.error(code, "ncclAllReduce") if code else None

    def abort(self, reason: DeviceError) -> None:
        """End the communicator and what waits in it, from any thread; `reason` is then raised."""
        self.aborted = reason
        comm, self._comm = self._comm, c_void_p()
        if comm:
            self.nccl["ncclCommAbort"](comm)

    def release(self) -> None:
        """Let go of the context, which may be gone already: that is legal also after a reset."""
        self.cuda["cuDevicePrimaryCtxRelease_v2"](self.device)

    def close(self) -> None:
        """Leave the communicator and the context; its memory is freed with it."""
        if self._comm:
            self.nccl("ncclCommDestroy", self._comm)
            self._comm = c_void_p()
        self.cuda("cuDevicePrimaryCtxRelease_v2", self.device)
