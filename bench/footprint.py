"""What an idle sidecar costs: CPU of one core and memory (PSS), all our processes summed.

Two real llama.cpp engines idle beside it and are scraped every 5 s. Target without eBPF: at most
1 % of a core and 130 MB. ``--ebpf`` adds the wire tap and its privileged process (root), ``--gpus
N`` stand-in GPUs that are read every second by calls that take 2 to 5 ms each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from rig import driver
from rig.part import Part
from rig.ports import free_ports
from rig.stack import Plan, Stack

_CALL_SECONDS = 0.0035
_TICKS = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and all its descendants, from /proc."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found.extend(int(child) for child in task.read_text().split())
    return found


def cpu_seconds(pids: list[int]) -> float:
    """CPU of the processes so far (proc(5): utime and stime of stat)."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def pss_bytes(pids: list[int]) -> int:
    """Proportional set size of the processes, shared pages divided among their users."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def gpus(folder: Path, count: int) -> dict[str, str]:
    """Stand-in GPUs whose calls sleep as a real driver's do; the sidecar's variables for them."""
    if not count:
        return {"MODELPROBE_GPU__ENABLED": "never"}
    machine = driver.Configuration(folder)
    machine.update({"devices": count, "delay.nvmlDevice*": _CALL_SECONDS})
    environment = driver.environment(folder)
    environment["MODELPROBE_GPU__LIBRARY_FOLDER"] = environment.pop("LD_LIBRARY_PATH")
    return environment


def start(stack: Stack, folder: Path, ebpf: bool, environment: dict[str, str]) -> Part:
    """The sidecar on the stack's engines, with the tap or without."""
    [port] = free_ports([9838])
    program = str(Path(sys.executable).with_name("model-probe"))
    ready = f"http://127.0.0.1:{port}/readyz"
    engines = list(stack.engine_urls)
    if ebpf:
        command = [program, "attach", "--listen", f"127.0.0.1:{port}"]
        command += ["--port", str(stack.gateway_port)]
        for url in engines:
            command += ["--engine", url]
        return Part("sidecar", command, folder, ready, environment)
    config = folder / "probe.yaml"
    listed = [{"name": f"r{i}", "url": url} for i, url in enumerate(engines)]
    config.write_text(json.dumps({"engines": listed, "export": {"listen": f"127.0.0.1:{port}"}}))
    command = [program, "run", "--config", str(config)]
    return Part("sidecar", command, folder, ready, environment)


def main() -> None:
    """Prints figures in words, then one JSON object."""
    parser = argparse.ArgumentParser(prog="./run bench footprint", description=__doc__)
    parser.add_argument("--ebpf", action="store_true", help="with the wire tap; needs root")
    parser.add_argument("--gpus", type=int, default=0, help="stand-in GPUs, read at 1 Hz")
    parser.add_argument("--seconds", type=float, default=40, help="how long to measure")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Stack(Plan(load=False, folder=folder)) as stack:
            part = start(stack, folder, args.ebpf, gpus(folder, args.gpus))
            part.wait_ready(time.monotonic() + 30)
            time.sleep(8)  # imports, first scrapes and first snapshots are not idling
            pids = family(part.pid)
            before, started = cpu_seconds(pids), time.monotonic()
            time.sleep(args.seconds)
            spent, elapsed = cpu_seconds(pids) - before, time.monotonic() - started
            memory = pss_bytes(pids)
            part.terminate()
            part.reap(time.monotonic() + 6)
    result = {
        "cpu_ratio": spent / elapsed,
        "pss_bytes": memory,
        "processes": len(pids),
        "seconds": elapsed,
        "engines": len(stack.engine_urls),
        "interval_seconds": 5,
        "ebpf": args.ebpf,
        "gpus": args.gpus,
    }
    print(
        f"{result['processes']} processes idle for {elapsed:.0f} s: {spent / elapsed:.2%} of a "
        f"core, {memory / 1e6:.0f} MB"
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
