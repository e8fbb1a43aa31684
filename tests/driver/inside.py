"""The inside of a `Process`: calls the stand-ins as it is told, one line of JSON a call.

Run with the stand-ins' environment; imports nothing of the project. How arguments are written
stands in `calling`.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import pynvml
from calling import Unique, library, pointed, raw

__all__ = ["pointed"]  # called by name from the other end

threads: dict[int, tuple[threading.Thread, list[Any]]] = {}
kept: list[Any] = []


def start(device: int = 0) -> int:
    """Initialises CUDA and makes the device's primary context current; the context."""
    assert raw("cuda", "cuInit", 0) == [0]
    code, context = raw("cuda", "cuDevicePrimaryCtxRetain", "&", device)
    assert code == 0, code
    assert raw("cuda", "cuCtxSetCurrent", context) == [0]
    return int(context)


def kernel(name: str) -> int:
    """A function of that name."""
    module = raw("cuda", "cuModuleLoadData", "&", "image")[1]
    return int(raw("cuda", "cuModuleGetFunction", "&", module, name)[1])


def launch(function: int, stream: int = 0, times: int = 1) -> int:
    """The code of the last of some launches."""
    code = 0
    for _ in range(times):
        code = raw("cuda", "cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)[0]
    return code


def churn(times: int, seed: int) -> int:
    """Allocates and frees at random, that often; the bytes held at the end."""
    start(0)
    rng = random.Random(seed)
    held: list[tuple[int, int]] = []
    for _ in range(times):
        if held and rng.random() < 0.5:
            at, _ = held.pop(rng.randrange(len(held)))
            assert raw("cuda", "cuMemFree_v2", at) == [0]
        else:
            size = rng.randrange(1, 400000) * 512
            code, at = raw("cuda", "cuMemAlloc_v2", "&", size)
            assert code in {0, 2}, code
            held += [(at, size)] if code == 0 else []
    return sum(size for _, size in held)


def crowd(count: int, times: int) -> list[int]:
    """Threads that launch; the last code of each."""
    context = raw("cuda", "cuCtxGetCurrent", "&")[1]
    function = kernel("gemm")
    codes: list[int] = []

    def work() -> None:
        raw("cuda", "cuCtxSetCurrent", context)
        codes.append(launch(function, 0, times))

    workers = [threading.Thread(target=work) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return codes


def peek(at: int, count: int) -> list[int]:
    """Words of 64 bits at an address of host memory."""
    return list((ctypes.c_uint64 * count).from_address(at))


def attempts(function: str, times: int, *args: Any) -> list[int]:
    """The codes of some calls."""
    return [raw("cuda", function, *args)[0] for _ in range(times)]


def text(function: str, code: int) -> str:
    """What cuGetErrorName and the like say of a code."""
    out = ctypes.c_char_p()
    getattr(library("cuda"), function)(code, ctypes.byref(out))
    return (out.value or b"").decode()


def roundtrip(size: int) -> bool:
    """Whether bytes that went to the device come back."""
    code, at = raw("cuda", "cuMemAlloc_v2", "&", size)
    there = ctypes.create_string_buffer(os.urandom(size), size)
    back = ctypes.create_string_buffer(size)
    cuda = library("cuda")
    where, many = ctypes.c_uint64(at), ctypes.c_size_t(size)
    codes = [cuda.cuMemcpyHtoD_v2(where, there, many), cuda.cuMemcpyDtoH_v2(back, where, many)]
    return [code, *codes] == [0, 0, 0] and there.raw == back.raw


def plain(value: Any) -> Any:
    """NVML's structures as dictionaries."""
    if isinstance(value, ctypes.Structure | ctypes.Union):
        names = [field[0] for field in value._fields_]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, ctypes.c_uint):
        return value.value
    if isinstance(value, ctypes.Array | list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "__dict__"):
        return {name: plain(item) for name, item in vars(value).items()}
    return value if isinstance(value, int | float | str | None) else repr(value)


def handle(device: int | str) -> Any:
    """A GPU by index, a MIG device by `GPU/slot`."""
    if isinstance(device, int):
        return pynvml.nvmlDeviceGetHandleByIndex(device)
    gpu, slot = device.split("/")
    return pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle(int(gpu)), int(slot))


def keep(device: int | str) -> int:
    """Keeps a handle, to be used later as -1, -2, …"""
    kept.append(handle(device))
    return -len(kept)


def nvml(function: str, device: Any = None, *args: Any) -> Any:
    """A call of pynvml, of a device unless that is None; {"error": code} when it raises."""
    try:
        if device is None:
            return plain(getattr(pynvml, function)(*args))
        on = kept[-device - 1] if isinstance(device, int) and device < 0 else handle(device)
        return plain(getattr(pynvml, function)(on, *args))
    except pynvml.NVMLError as error:
        return {"error": error.value, "text": str(error)}


def processes(device: int, symbol: str, count: int, stride: int) -> list[Any]:
    """The bytes of one process list, cut by this struct's size: pid and memory of each."""
    buffer = ctypes.create_string_buffer(64 * 64)
    many = ctypes.c_uint(count)
    code = getattr(pynvml.nvmlLib, symbol)(handle(device), ctypes.byref(many), buffer)
    rows = [buffer.raw[i * stride : i * stride + 16] for i in range(many.value if not code else 0)]
    return [
        code,
        many.value,
        [[int.from_bytes(row[:4], "little"), int.from_bytes(row[8:], "little")] for row in rows],
    ]


def events(kinds: int, *devices: int) -> None:
    """Opens an event set on devices."""
    kept.append(pynvml.nvmlEventSetCreate())
    for device in devices:
        pynvml.nvmlDeviceRegisterEvents(handle(device), kinds, kept[-1])


def event(milliseconds: int) -> Any:
    """The next event of the set opened last."""
    try:
        data = pynvml.nvmlEventSetWait_v2(kept[-1], milliseconds)
    except pynvml.NVMLError as error:
        return {"error": error.value}
    seen = plain(data)
    seen["device"] = pynvml.nvmlDeviceGetIndex(data.device)
    return seen


def gpm(device: int, ids: list[int], launches: int = 0, function: int = 0) -> Any:
    """GPM metrics over some launches, with what each answered."""
    first, second = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
    try:
        pynvml.nvmlGpmSampleGet(handle(device), first)
        if launches:
            launch(function, 0, launches)
            raw("cuda", "cuStreamSynchronize", 0)
        pynvml.nvmlGpmSampleGet(handle(device), second)
    except pynvml.NVMLError as error:
        return {"error": error.value}
    get = pynvml.c_nvmlGpmMetricsGet_t()
    get.version, get.numMetrics = 1, len(ids)
    get.sample1, get.sample2 = first, second
    for place, number in enumerate(ids):
        get.metrics[place].metricId = number
    pynvml.nvmlGpmMetricsGet(get)
    return [[get.metrics[i].nvmlReturn, get.metrics[i].value] for i in range(len(ids))]


def unique() -> str:
    """A fresh ncclUniqueId, in hex."""
    made = Unique()
    assert library("nccl").ncclGetUniqueId(ctypes.byref(made)) == 0
    return bytes(made).hex()


def join(identity: str, ranks: int, rank: int, context: int = 0) -> list[int]:
    """ncclCommInitRank: the code and the communicator."""
    if context:
        raw("cuda", "cuCtxSetCurrent", context)
    return raw("nccl", "ncclCommInitRank", "&", ranks, {"id": identity}, rank)


def reduce(comm: int, count: int = 1024, stream: int = 0) -> int:
    """One all-reduce of floats, put on the stream."""
    return int(raw("nccl", "ncclAllReduce", 4096, 4096, count, 7, 0, comm, stream)[0])


def async_error(comm: int) -> list[Any]:
    """What ncclCommGetAsyncError gives."""
    out = ctypes.c_int(-1)
    code = library("nccl").ncclCommGetAsyncError(ctypes.c_uint64(comm), ctypes.byref(out))
    return [code, out.value]


def begin(context: int, name: str, function: str, *args: Any) -> int:
    """Calls from a thread of its own, that has this context; a number for `ended`."""
    result: list[Any] = []

    def work() -> None:
        raw("cuda", "cuCtxSetCurrent", context)
        result.append(raw(name, function, *args))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    threads[len(threads)] = (thread, result)
    return len(threads) - 1


def ended(number: int, seconds: float) -> Any:
    """What the call gave, None while it is not back within that time."""
    thread, result = threads[number]
    thread.join(seconds)
    return result[0] if result else None


def forked() -> list[Any]:
    """What a forked child gets from the parent's CUDA."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, json.dumps(raw("cuda", "cuMemAlloc_v2", "&", 4096)).encode())
        os._exit(0)
    os.wait()
    return list(json.loads(os.read(reader, 4096)))


def main() -> None:
    """Serves calls until the other end closes."""
    names: dict[str, Callable[..., Any]] = {
        name: value for name, value in globals().items() if callable(value)
    }
    for line in sys.stdin:
        name, args = json.loads(line)
        try:
            reply = {"value": names[name](*args)}
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to the other end
            reply = {"raised": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
