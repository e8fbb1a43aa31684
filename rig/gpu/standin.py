"""Start a process of the rig on a folder's stand-in machine."""

import os
import sys
from pathlib import Path

STATE, VISIBLE = "MODELPROBE_STANDIN_STATE", "CUDA_VISIBLE_DEVICES"


def become(module: str, folder: Path, devices: str | None = None) -> None:
    """Start again as `-m module` with the stand-in's environment, unless we have it: the loader
    reads its path only once. `devices` as in CUDA_VISIBLE_DEVICES, None for all.

    Leaves with one line when the libraries cannot be built.
    """
    from rig import driver  # only here: on a machine with a real driver nothing is built

    folder.mkdir(parents=True, exist_ok=True)
    try:
        found = driver.environment(folder.absolute())
    except driver.Unavailable as reason:
        sys.exit(f"{module}: {reason}")
    if devices is not None:
        found[VISIBLE] = devices
    if all(os.environ.get(name) == found.get(name) for name in (STATE, VISIBLE)):
        return
    environment = {name: value for name, value in os.environ.items() if name != VISIBLE}
    command = (sys.executable, "-m", module, *sys.argv[1:])
    os.execve(sys.executable, command, environment | found)  # noqa: S606  the same pid stays
