"""A process that takes a device's free memory, so that others' allocations really fail.

``python -m chaos.balloon --leave BYTES`` on the one device that CUDA_VISIBLE_DEVICES shows. Every
line of its standard input makes it take what is free by then and print what it holds; it gives all
of it back by ending: at the end of its input, or when none came for its lease.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import select
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

OUT_OF_MEMORY = 2
LARGEST, SMALLEST = 1 << 30, 1 << 20  # bytes of one allocation


class Failed(Exception):
    """A call of the driver's; the text says which."""


class Device:
    """A context on the first visible device, through cuda.h's names."""

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Failed(f"no driver library: {error}") from None
        device, context = c_int(), c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: object) -> None:
        if code := getattr(self._cuda, name)(*arguments):
            raise Failed(f"{name} answered {code}")

    def free(self) -> int:
        """Bytes that are free on the device."""
        free, total = c_size_t(), c_size_t()
        self._call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value

    def take(self, count: int) -> bool:
        """So many bytes for good; False when they are not there."""
        at = c_uint64()
        code: int = self._cuda.cuMemAlloc_v2(byref(at), c_size_t(count))
        if code not in (0, OUT_OF_MEMORY):
            raise Failed(f"cuMemAlloc_v2 answered {code}")
        return code == 0


def inflate(device: Device, leave: int) -> int:
    """Takes what is free but for ``leave`` bytes; returns the bytes taken."""
    taken, size = 0, LARGEST
    while size >= SMALLEST:
        if device.free() - size >= leave and device.take(size):
            taken += size
        else:
            size //= 2
    return taken


def serve(leave: int, lease: float) -> int:
    """Until the input ends or is silent for ``lease`` seconds."""
    device: Device | None = None
    held, line = 0, b""
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], None if device is None else lease)
        # Bytes that a buffer had taken would not make the descriptor readable again.
        line = os.read(sys.stdin.fileno(), 4096) if ready else b""
        if not line:
            return 0
        device = device or Device()
        held += inflate(device, leave)
        try:
            os.write(sys.stdout.fileno(), f"holding {held} {device.free()}\n".encode())
        except BrokenPipeError:  # whoever wanted to know is gone
            return 0


def main() -> int:
    """Exit 0 when it gave all back, 1 when the driver would not."""
    parser = argparse.ArgumentParser(prog="python -m chaos.balloon", description=__doc__)
    parser.add_argument("--leave", type=int, default=0, help="bytes that stay free")
    parser.add_argument("--lease", type=float, default=1.0, help="seconds without a line")
    args = parser.parse_args()
    try:
        return serve(args.leave, args.lease)
    except Failed as failed:
        print(f"balloon: {failed}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
