"""Calls of the libraries by ctypes, for `inside`: by symbol, or by what cuGetProcAddress gives.

Among the arguments ``&`` stands for a place for 64 bits that the call fills, ``&f`` for a float. A
list of three numbers goes by value as a dim3, ``{"id": hex}`` as an ncclUniqueId. The answer is the
code and what was put into the places.
"""

from __future__ import annotations

import ctypes
from typing import Any

FILES = {"cuda": "libcuda.so.1", "cudart": "libcudart.so.13", "nccl": "libnccl.so.2"}
libraries: dict[str, ctypes.CDLL] = {}


class Unique(ctypes.Structure):
    """ncclUniqueId, by value."""

    _fields_ = (("internal", ctypes.c_char * 128),)


class Dim3(ctypes.Structure):
    """dim3: 12 bytes, by value."""

    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


def library(name: str) -> ctypes.CDLL:
    """The library, loaded once."""
    if name not in libraries:
        libraries[name] = ctypes.CDLL(FILES[name])
    return libraries[name]


def invoke(call: Any, args: tuple[Any, ...]) -> list[Any]:
    """The code, then what the call put into each place."""
    outs: list[Any] = []
    given: list[Any] = []
    for arg in args:
        if arg in ("&", "&f") and isinstance(arg, str):
            outs.append(ctypes.c_float() if arg == "&f" else ctypes.c_uint64())
            given.append(ctypes.byref(outs[-1]))
        elif isinstance(arg, str):
            given.append(ctypes.c_char_p(arg.encode()))
        elif isinstance(arg, list):
            given.append(Dim3(*arg))
        elif isinstance(arg, dict):
            given.append(Unique.from_buffer_copy(bytes.fromhex(arg["id"])))
        else:
            given.append(arg if arg is None else ctypes.c_uint64(arg % 2**64))
    return [call(*given), *(out.value for out in outs)]


def raw(name: str, function: str, *args: Any) -> list[Any]:
    """A call of a library's symbol."""
    return invoke(getattr(library(name), function), args)


def pointed(base: str, version: int, *args: Any) -> list[Any]:
    """A call of the pointer that cuGetProcAddress_v2 gives for a base name and a version."""
    code, pointer, status = raw("cuda", "cuGetProcAddress_v2", base, "&", version, 0, "&")
    assert (code, status & 0xFFFFFFFF) == (0, 0), (base, code, status)
    return invoke(ctypes.CFUNCTYPE(ctypes.c_int)(pointer), args)
