"""NVML for chaos, in a process of its own: a call of it can block for 45 s, or for good.

``python -m chaos.nvml`` answers on its standard output in JSON; what is public here
is for the injector, and gives up after ``DEADLINE`` seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from chaos.reaping import reaped

DEADLINE = 10.0  # seconds


class Unavailable(RuntimeError):
    """NVML could not be asked, or would not do it; one sentence."""


def devices(pids: Sequence[int]) -> list[str]:
    """UUIDs of the devices on which these processes have memory, in the order of devices."""
    found = _ask("devices", *map(str, pids))
    return [str(uuid) for uuid in found["devices"]]


def holders(uuids: Sequence[str]) -> dict[int, int]:
    """Who has memory on these devices: bytes by pid, of all of them together."""
    found: dict[int, int] = {}
    for pid, used in _ask("holders", *uuids)["holders"]:
        found[int(pid)] = found.get(int(pid), 0) + int(used)
    return found


def memory_limits(device: str, cgroup: str) -> tuple[int, int]:
    """A cgroup's soft and hard limit on a device, bytes. From driver CUDA 13.4 on."""
    found = _ask("limits", device, cgroup)
    return int(found["soft"]), int(found["hard"])


def memory_used(device: str, cgroup: str) -> int:
    """What a cgroup uses of a device as its limits count it, bytes."""
    return int(_ask("limits", device, cgroup)["used"])


def set_memory_limits(device: str, cgroup: str, soft: int, hard: int) -> None:
    """Sets both, bytes."""
    _ask("limits", device, cgroup, str(soft), str(hard))


def _ask(*words: str) -> dict[str, Any]:
    command = (sys.executable, "-P", "-m", "chaos.nvml", *words)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        reaped(process)  # which may never be: a driver that hangs is not left by SIGKILL
        raise Unavailable(f"NVML did not answer in {DEADLINE:.0f} s") from None
    lines = out.decode(errors="replace").splitlines()
    try:
        found: dict[str, Any] = json.loads(lines[-1])
    except (ValueError, IndexError):
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(f"NVML: {last[0] if last else 'no answer'}") from None
    if "error" in found:
        raise Unavailable(f"NVML: {found['error']}")
    return found


def _devices(pids: list[str]) -> dict[str, list[str]]:
    import pynvml

    wanted, found = set(map(int, pids)), []
    for at in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(at)
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        if wanted & {process.pid for process in running}:
            found.append(pynvml.nvmlDeviceGetUUID(handle))
    return {"devices": found}


def _holders(uuids: list[str]) -> dict[str, list[tuple[int, int]]]:
    import pynvml

    found: list[tuple[int, int]] = []
    for uuid in uuids:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        found += [(process.pid, process.usedGpuMemory or 0) for process in running]
    return {"holders": found}


def _limits(words: list[str]) -> dict[str, int]:
    import pynvml

    uuid, cgroup, *new = words
    handle, name = pynvml.nvmlDeviceGetHandleByUUID(uuid), cgroup.encode()
    if new:
        soft, hard = map(int, new)
        wanted = pynvml.c_nvmlSetMemoryLimits_v1_t(nameSpace=name, softLimit=soft, hardLimit=hard)
        pynvml.nvmlDeviceSetMemoryLimits_v1(handle, wanted)
    now = pynvml.c_nvmlGetMemoryLimits_v1_t(nameSpace=name)
    pynvml.nvmlDeviceGetMemoryLimits_v1(handle, now)
    return {"soft": now.softLimit, "hard": now.hardLimit, "used": now.currentUsed}


_VERBS: dict[str, Callable[[list[str]], object]] = {
    "devices": _devices,
    "holders": _holders,
    "limits": _limits,
}


def main() -> int:
    """Prints one JSON object; ``error`` in it when it did not work."""
    import pynvml

    verb, *words = sys.argv[1:]
    try:
        pynvml.nvmlInit()
        print(json.dumps(_VERBS[verb](words)))
    except pynvml.NVMLError as error:
        print(json.dumps({"error": str(error)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
