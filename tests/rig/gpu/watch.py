"""Real pynvml in a process of its own: a line in, one JSON line out for every device."""

import json
import sys

import pynvml


def device(index: int) -> dict[str, object]:
    """What NVML says of one device: bytes in use, and by whom."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return {
        "used": pynvml.nvmlDeviceGetMemoryInfo(handle).used,
        "pids": {process.pid: process.usedGpuMemory for process in running},
    }


def main() -> None:
    """Until standard input closes."""
    pynvml.nvmlInit()
    for _ in sys.stdin:
        found = [device(index) for index in range(pynvml.nvmlDeviceGetCount())]
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
