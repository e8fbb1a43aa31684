"""The built library, and what it was built of."""

from __future__ import annotations

import hashlib
import platform
import re
from pathlib import Path

from chaos.interposer.rules import Refused

HERE = Path(__file__).parent
NAME = "libmodelprobe_chaos.so"
MACHINES = ("x86_64", "aarch64")
_SOURCES = re.compile(rb"sources=([0-9a-f]{64})")


def library(machine: str | None = None) -> Path:
    """The object to preload on this kind of machine (as ``uname -m`` names it), or on that one.

    Raises `Refused` for kinds it is not built for, and where the distribution came without it.
    """
    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise Refused(
            f"is not built for {machine}", NAME, f"run the target on {' or '.join(MACHINES)}"
        )
    path = HERE / "built" / machine / NAME
    if not path.is_file():
        raise Refused("is not there", str(path), f"run `make -C {HERE} built`")
    return path


def unfit(root: Path) -> str:
    """Why the library cannot be preloaded into programs of that root folder; empty when it can.

    musl has neither dlvsym nor libdl.so.2, and its loader ends a program with such a preload.
    """
    loaders = sorted(path.name for path in (root / "lib").glob("ld-musl-*.so.1"))
    glibc = any(root.glob("lib*/ld-linux-*.so.*")) or any(root.glob("lib/*-linux-gnu/libc.so.6"))
    if loaders and not glibc:
        return f"{root} has musl ({loaders[0]}): take an image with glibc"
    return ""


def sources() -> str:
    """The hash of the sources that lie here, as the Makefile makes it."""
    kinds = ("*.c", "*.h", "*.S", "*.map", "Makefile")
    paths = sorted({path for kind in kinds for path in HERE.glob(kind)}, key=lambda path: path.name)
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def built_of(path: Path) -> str:
    """The hash of the sources that a built object was made of; empty for anything else."""
    found = _SOURCES.search(path.read_bytes())
    return found[1].decode() if found else ""
