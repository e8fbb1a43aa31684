"""A small engine for the inside of a guarded process: a context on the stand-in driver, and breaks.

Run with the stand-ins' environment; imports nothing of the project.
"""

from __future__ import annotations

import ctypes
import json
import sys
from ctypes import byref, c_char_p, c_int, c_uint, c_void_p
from typing import Any

cuda = ctypes.CDLL("libcuda.so.1")
contexts: list[int] = []


def call(name: str, *arguments: Any) -> None:
    """One call that has to succeed."""
    code = getattr(cuda, name)(*arguments)
    if code:
        raise RuntimeError(f"{name}: {code}")


def reopen() -> None:
    """Retain device 0's primary context and make it current in this thread."""
    context = c_void_p()
    call("cuDevicePrimaryCtxRetain", byref(context), 0)
    call("cuCtxSetCurrent", context)
    contexts.append(int(context.value or 0))


def start() -> None:
    """Initialise CUDA and open the device."""
    call("cuInit", 0)
    reopen()


def reset() -> None:
    """Destroy the primary context, as a thread of the same process may."""
    call("cuDevicePrimaryCtxReset_v2", 0)


def unbind() -> None:
    """Leave this thread without a current context."""
    call("cuCtxSetCurrent", None)


def trap() -> None:
    """Launch the kernel `broken`, which ends in the error that the machine has for it."""
    module, function = c_void_p(), c_void_p()
    call("cuModuleLoadData", byref(module), c_char_p(b"image"))
    call("cuModuleGetFunction", byref(function), module, c_char_p(b"broken"))
    cuda.cuLaunchKernel(function, *(c_uint(1),) * 6, c_uint(0), None, None, None)
    cuda.cuCtxSynchronize()


def capture() -> None:
    """Begin to capture a stream of this thread's context."""
    stream = c_void_p()
    call("cuStreamCreate", byref(stream), 1)
    call("cuStreamBeginCapture_v2", stream, c_int(0))


def tell(**found: Any) -> None:
    """One line of JSON for the test."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
