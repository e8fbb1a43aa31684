"""Whether the calling thread's CUDA context can be used, asked of the driver already loaded.

Codes are those of `CUresult` (CUDA driver API, `cuda.h`). Nothing here loads a driver, makes a
context, waits for the device, or touches a stream that is being captured.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from enum import Enum

LIBRARY = "libcuda.so.1"  # by this soname glibc finds it whatever path it was loaded from
NOT_INITIALISED, DEINITIALISED, UNBOUND_CODE, DESTROYED_CODE = 3, 4, 201, 709
# "This leaves the process in an inconsistent state … the process must be terminated and relaunched"
STICKY_CODES = frozenset({226, 700, 702, 710, *range(714, 720), 721, 810, 911})
CAPTURE_CODES = frozenset(range(900, 908))  # CUDA_ERROR_STREAM_CAPTURE_…, CUDA_ERROR_CAPTURED_EVENT


class State(Enum):
    """What a look at the context found."""

    PASSIVE = "passive"  # no driver in this process, or not initialised in it: nothing to guard
    VALID = "valid"
    CAPTURING = "capturing"  # a graph is being captured: not to be looked at now
    UNBOUND = "unbound"  # no context is current in this thread (201)
    DESTROYED = "destroyed"  # the current one was destroyed or reset (709)
    STICKY = "sticky"  # only a new process helps
    OTHER = "other"  # an error that says nothing of the context


def judge(code: int) -> State:
    """The state that a CUresult means."""
    if code == 0:
        return State.VALID
    if code in STICKY_CODES:
        return State.STICKY
    if code in CAPTURE_CODES:
        return State.CAPTURING
    named = {
        NOT_INITIALISED: State.PASSIVE,
        DEINITIALISED: State.PASSIVE,
        UNBOUND_CODE: State.UNBOUND,
        DESTROYED_CODE: State.DESTROYED,
    }
    return named.get(code, State.OTHER)


class Driver:
    """The two calls of a loaded libcuda that a look takes; raises AttributeError without them.

    `cuCtxGetCurrent` reads the thread's own stack. `cuStreamIsCapturing` on the legacy stream is
    the one query that is legal while a graph is captured and does not invalidate it (906 then), and
    as any call it returns what earlier launches left behind. `cuStreamQuery` and `cuEventQuery`
    would look at the device too, but break a capture; `cuCtxGetApiVersion` and `cuCtxGetDevice`
    are not documented to report launch errors.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._current: Callable[..., int] = library.cuCtxGetCurrent
        self._capturing: Callable[..., int] = library.cuStreamIsCapturing
        library.cuCtxGetCurrent.argtypes = (ctypes.c_void_p,)
        library.cuStreamIsCapturing.argtypes = (ctypes.c_void_p, ctypes.c_void_p)

    def look(self) -> int:
        """0, or the CUresult that is wrong with the calling thread's context."""
        place = ctypes.c_void_p()  # of this call alone: threads look at the same time
        at = ctypes.byref(place)
        code = self._current(at)
        if code:
            return code
        if not place.value:
            return UNBOUND_CODE
        return self._capturing(None, at)  # writes an int, for which there is room


def loaded() -> Driver | None:
    """The driver of this process; None while there is none. Never loads one (RTLD_NOLOAD)."""
    only_loaded = getattr(os, "RTLD_NOLOAD", None)  # not on every system
    if only_loaded is None:
        return None
    try:
        return Driver(ctypes.CDLL(LIBRARY, mode=only_loaded | os.RTLD_NOW))
    except (OSError, AttributeError):  # not loaded; or older than CUDA 10, which has no such call
        return None
