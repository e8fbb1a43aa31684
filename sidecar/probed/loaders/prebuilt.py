"""Loads the committed object through ``libbpf.so.1`` (1.1 or later) by ctypes.

No compiler, headers or Python package is needed on the machine, only a 300 kB library. One object
serves every little-endian machine: the program touches packets and helpers, no kernel type.
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from sidecar.probed.loaders import Loaded
from sidecar.signals import Absence, NoData

OBJECTS = Path(__file__).parent.parent / "objects"
_PERMISSION = (
    "the kernel refused to load {stem}: give the process CAP_BPF and CAP_NET_RAW "
    "(container: securityContext.capabilities.add; by hand: run as root)"
)


def _library() -> ctypes.CDLL:
    try:
        lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError as error:
        raise NoData(
            Absence.NOT_FOUND, "libbpf.so.1 is not installed: apt install libbpf1"
        ) from error
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("bpf_object__open_file", pointer, [text, pointer]),
        ("bpf_object__load", ctypes.c_int, [pointer]),
        ("bpf_object__close", None, [pointer]),
        ("bpf_object__find_program_by_name", pointer, [pointer, text]),
        ("bpf_program__fd", ctypes.c_int, [pointer]),
        ("bpf_object__find_map_fd_by_name", ctypes.c_int, [pointer, text]),
        ("libbpf_set_print", pointer, [pointer]),
    ):
        function = getattr(lib, name, None)
        if function is None:
            raise NoData(
                Absence.UNSUPPORTED,
                f"libbpf.so.1 has no {name}: version 1.0 or later is needed (apt install libbpf1)",
            )
        function.restype, function.argtypes = result, arguments
    lib.libbpf_set_print(None)  # its words are for developers; ours name the remedy
    return lib


def _refused(stem: str, code: int) -> NoData:
    """EPERM is a capability that lacks (or a seccomp filter); EACCES is the verifier's no."""
    if code == errno.EPERM:
        return NoData(Absence.NO_PERMISSION, _PERMISSION.format(stem=stem))
    return NoData(
        Absence.UNSUPPORTED,
        f"this kernel ({os.uname().release}) does not take {stem}: {os.strerror(code)}; it needs "
        "Linux 5.17 with CONFIG_BPF_SYSCALL (older: --loader bcc)",
    )


def load(stem: str, maps: tuple[str, ...]) -> Loaded:
    """See :class:`sidecar.probed.loaders.Loader`."""
    path = OBJECTS / f"{stem}.bpf.o"
    if not path.exists():
        raise NoData(Absence.NOT_FOUND, f"{path} is missing: build it with sidecar.probed.build")
    lib = _library()
    handle = lib.bpf_object__open_file(os.fsencode(path), None)
    if not handle:
        code = ctypes.get_errno()
        raise NoData(Absence.UNSUPPORTED, f"libbpf cannot read {path}: {os.strerror(code)}")
    try:
        result = lib.bpf_object__load(handle)
        if result < 0:
            raise _refused(stem, -result)
        program = lib.bpf_object__find_program_by_name(handle, stem.encode())
        fds = {name: lib.bpf_object__find_map_fd_by_name(handle, name.encode()) for name in maps}
        if not program or min(fds.values()) < 0:
            raise NoData(Absence.UNSUPPORTED, f"{path} is of another version: build it again")
        # Copies (close-on-exec) outlive the object, whose memory would be as large as ours.
        kept = {name: os.dup(fd) for name, fd in fds.items()}
        return Loaded("prebuilt", os.dup(lib.bpf_program__fd(program)), kept)
    finally:
        lib.bpf_object__close(handle)
