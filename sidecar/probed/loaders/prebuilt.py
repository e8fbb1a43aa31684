"""Loads the committed object through ``libbpf.so.1`` (1.1 or later) by ctypes.

No compiler, headers or Python package is needed on the machine, only a 300 kB library. One object
serves every little-endian machine: the program touches packets and helpers, no kernel type.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from pathlib import Path

from sidecar.probed.libbpf import POINTER, TEXT, Function, library
from sidecar.probed.loaders import Kind, Loaded, Program
from sidecar.signals import Absence, NoData

OBJECTS = Path(__file__).parent.parent / "objects"
_PERMISSION = (
    "the kernel refused to load {stem}: give the process {needs} (container: securityContext."
    "capabilities.add; by hand: run as root)"
)
_TRACING = "CAP_BPF and CAP_PERFMON"  # socket filters need no CAP_PERFMON


_FUNCTIONS: tuple[Function, ...] = (
    ("bpf_object__open_file", POINTER, [TEXT, POINTER]),
    ("bpf_object__load", ctypes.c_int, [POINTER]),
    ("bpf_object__close", None, [POINTER]),
    ("bpf_object__find_program_by_name", POINTER, [POINTER, TEXT]),
    ("bpf_program__fd", ctypes.c_int, [POINTER]),
    ("bpf_program__set_expected_attach_type", ctypes.c_int, [POINTER, ctypes.c_int]),
    ("bpf_object__find_map_fd_by_name", ctypes.c_int, [POINTER, TEXT]),
    ("libbpf_set_print", POINTER, [POINTER]),
)


def _refused(stem: str, code: int, programs: tuple[Program, ...]) -> NoData:
    """EPERM is a capability that lacks (or a seccomp filter); EACCES is the verifier's no."""
    if code == errno.EPERM:
        sockets = all(program.kind is Kind.SOCKET_FILTER for program in programs)
        needs = "CAP_BPF and CAP_NET_RAW" if sockets else _TRACING
        return NoData(Absence.NO_PERMISSION, _PERMISSION.format(stem=stem, needs=needs))
    return NoData(
        Absence.UNSUPPORTED,
        f"this kernel ({os.uname().release}) does not take {stem}: {os.strerror(code)}; it needs "
        "Linux 5.17 with CONFIG_BPF_SYSCALL (older: --loader bcc)",
    )


def object_path(stem: str) -> Path:
    """The object for this machine: of its own where a probe reads registers, else one for all."""
    own = OBJECTS / f"{stem}.{platform.machine()}.bpf.o"
    return own if own.exists() else OBJECTS / f"{stem}.bpf.o"


def load(stem: str, programs: tuple[Program, ...], maps: tuple[str, ...]) -> Loaded:
    """See :class:`sidecar.probed.loaders.Loader`."""
    path = object_path(stem)
    if not path.exists():
        raise NoData(
            Absence.NOT_FOUND,
            f"{path} is missing: build it with sidecar.probed.build, or --loader bcc",
        )
    lib = library(_FUNCTIONS)
    lib.libbpf_set_print(None)  # its words are for developers; ours name the remedy
    handle = lib.bpf_object__open_file(os.fsencode(path), None)
    if not handle:
        code = ctypes.get_errno()
        raise NoData(Absence.UNSUPPORTED, f"libbpf cannot read {path}: {os.strerror(code)}")
    try:
        found = {
            one.name: lib.bpf_object__find_program_by_name(handle, one.name.encode())
            for one in programs
        }
        for one in programs:
            if one.attach and found[one.name]:
                lib.bpf_program__set_expected_attach_type(found[one.name], one.attach)
        result = lib.bpf_object__load(handle)
        if result < 0:
            raise _refused(stem, -result, programs)
        fds = {name: lib.bpf_object__find_map_fd_by_name(handle, name.encode()) for name in maps}
        if not all(found.values()) or min(fds.values()) < 0:
            raise NoData(Absence.UNSUPPORTED, f"{path} is of another version: build it again")
        # Copies (close-on-exec) outlive the object, whose memory would be as large as ours.
        return Loaded(
            "prebuilt",
            {name: os.dup(lib.bpf_program__fd(handle)) for name, handle in found.items()},
            {name: os.dup(fd) for name, fd in fds.items()},
        )
    finally:
        lib.bpf_object__close(handle)
