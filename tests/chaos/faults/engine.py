"""An engine for tests: ``engine.py RANKS``; one order a line on its input, one answer a line."""

import ctypes
import subprocess
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p


def opened() -> ctypes.CDLL:
    """The driver, with a primary context current in this thread, and NCCL loaded."""
    cuda = ctypes.CDLL("libcuda.so.1")
    ctypes.CDLL("libnccl.so.2")
    device, context = c_int(), c_void_p()
    codes = (
        cuda.cuInit(0),
        cuda.cuDeviceGet(byref(device), 0),
        cuda.cuDevicePrimaryCtxRetain(byref(context), device),
        cuda.cuCtxSetCurrent(context),
    )
    assert not any(codes), codes
    return cuda


def main() -> None:
    """Until the end of the input."""
    ranks = int(sys.argv[1])
    others = [
        subprocess.Popen(
            (sys.executable, __file__, "1"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(ranks - 1)
    ]
    cuda = opened()
    for other in others:
        other.stdin.write(b"ready\n")
        other.stdin.flush()
        other.stdout.readline()
    for line in sys.stdin:
        match line.split():
            case ["allocate", count]:
                answer = cuda.cuMemAlloc_v2(byref(c_uint64()), c_size_t(int(count)))
            case ["step"]:
                answer = cuda.cuCtxSynchronize()
            case ["free"]:
                free, total = c_size_t(), c_size_t()
                cuda.cuMemGetInfo_v2(byref(free), byref(total))
                answer = free.value
            case _:
                answer = line.strip()
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


main()
