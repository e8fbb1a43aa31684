"""The shared library ``libbpf.so.1``, by ctypes: no Python package is needed on the machine."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from sidecar.signals import Absence, NoData

POINTER, TEXT = ctypes.c_void_p, ctypes.c_char_p
Function = tuple[str, Any, list[Any]]  # name, ctypes of the result and of the arguments


def library(functions: Iterable[Function]) -> ctypes.CDLL:
    """The library with these functions typed; raises NoData where it or one of them is missing."""
    try:
        lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError as error:
        raise NoData(
            Absence.NOT_FOUND, "libbpf.so.1 is not installed: apt install libbpf1"
        ) from error
    for name, result, arguments in functions:
        function = getattr(lib, name, None)
        if function is None:
            raise NoData(
                Absence.UNSUPPORTED,
                f"libbpf.so.1 has no {name}: version 1.0 or later is needed (apt install libbpf1)",
            )
        function.restype, function.argtypes = result, arguments
    return lib
