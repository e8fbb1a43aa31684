"""What the GPU reader needs before it can start: the driver's library, and where it is found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_LIBRARY = "libnvidia-ml.so.1"
_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
)


def library_is_there(environment: Mapping[str, str]) -> bool:
    """True when the loader would find the driver's library, without loading it."""
    folders = [*environment.get("LD_LIBRARY_PATH", "").split(":"), *_FOLDERS]
    if any(part and (Path(part) / _LIBRARY).exists() for part in folders):
        return True
    try:
        return _LIBRARY.encode() in Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return False


def child_environment(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The parent's environment, with the folder (``.`` for none) first among the loader's."""
    found = dict(environment)
    if folder != Path():
        rest = found.get("LD_LIBRARY_PATH")
        found["LD_LIBRARY_PATH"] = f"{folder}:{rest}" if rest else str(folder)
    return found
