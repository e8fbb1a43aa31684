"""The calls of libcuda.so.1 and libnccl.so.2 that the rig makes, by their public ABI.

By name through ctypes and nothing in between, so that probes and preloaded hooks on these
functions see them. Sources: cuda.h (CUDA 13) and nccl.h (NCCL 2.28).
"""

import ctypes
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

from rig.gpu.errors import (
    NCCL_REMOTE,
    OUT_OF_MEMORY,
    STICKY,
    Absent,
    CudaError,
    NcclError,
    OutOfMemory,
    RemoteError,
    StickyError,
)

UNIQUE_ID = 128  # bytes of an ncclUniqueId
BFLOAT16, SUM = 9, 0
Call = Callable[..., int]


class UniqueId(ctypes.Structure):
    """ncclUniqueId, handed over by value."""

    _fields_ = (("internal", ctypes.c_char * UNIQUE_ID),)


HANDLE = POINTER(c_void_p)
CUDA: dict[str, tuple[type, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDevicePrimaryCtxRetain": (HANDLE, c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuModuleLoadData": (HANDLE, c_char_p),
    "cuModuleGetFunction": (HANDLE, c_void_p, c_char_p),
    "cuStreamCreate": (HANDLE, c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuEventCreate": (HANDLE, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}
NCCL: dict[str, tuple[type, ...]] = {
    "ncclGetUniqueId": (POINTER(UniqueId),),
    "ncclCommInitRank": (HANDLE, c_int, UniqueId, c_int),
    "ncclAllReduce": (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclCommGetAsyncError": (c_void_p, POINTER(c_int)),
    "ncclCommAbort": (c_void_p,),
    "ncclCommDestroy": (c_void_p,),
}


class Library:
    """One library's calls as attributes-by-name, typed by its table."""

    def __init__(self, name: str, table: dict[str, tuple[type, ...]]) -> None:
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise Absent(f"{name} is not there ({error}): use --standin FOLDER") from None
        self._calls: dict[str, Call] = {}
        for call, arguments in table.items():
            function = getattr(self._library, call)
            function.restype, function.argtypes = c_int, arguments
            self._calls[call] = function

    def __getitem__(self, call: str) -> Call:
        """The bare function: it answers the library's code. The GIL is free meanwhile."""
        return self._calls[call]


class Cuda(Library):
    """libcuda, whose codes other than 0 become exceptions."""

    def __init__(self) -> None:
        super().__init__("libcuda.so.1", CUDA)

    def __call__(self, call: str, *arguments: object, wanted: int = 0, mine: int = 0) -> None:
        """Make one call; `wanted` and `mine` are bytes for the text of an out of memory."""
        if code := self[call](*arguments):
            raise self.error(code, call, wanted, mine)

    def error(
        self, code: int, call: str, wanted: int = 0, mine: int = 0
    ) -> CudaError | OutOfMemory:
        """The exception for a code."""
        if code == OUT_OF_MEMORY:
            free, total = self.memory()
            return OutOfMemory(wanted, free, total, mine)
        text = c_char_p()
        self["cuGetErrorString"](code, byref(text))
        kind = StickyError if code in STICKY else CudaError
        return kind(code, call, (text.value or b"unknown error").decode())

    def memory(self) -> tuple[int, int]:
        """Bytes free and in total on the current device; zeros when it does not say."""
        free, total = c_size_t(), c_size_t()
        self["cuMemGetInfo_v2"](byref(free), byref(total))
        return free.value, total.value


class Nccl(Library):
    """libnccl, whose codes other than 0 become exceptions."""

    def __init__(self) -> None:
        super().__init__("libnccl.so.2", NCCL)
        describe = self._library.ncclGetErrorString
        describe.restype, describe.argtypes = c_char_p, (c_int,)
        self._describe: Callable[[int], bytes] = describe

    def __call__(self, call: str, *arguments: object) -> None:
        """Make one call."""
        if code := self[call](*arguments):
            raise self.error(code, call)

    def error(self, code: int, call: str) -> NcclError:
        """The exception for a code."""
        kind = RemoteError if code == NCCL_REMOTE else NcclError
        return kind(code, call, self._describe(code).decode())
