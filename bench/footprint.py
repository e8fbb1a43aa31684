"""What an idle sidecar costs: CPU of one core and memory (PSS), all our processes summed.

Two real llama.cpp engines idle beside it and are scraped every 5 s. Target without eBPF: at most
1 % of a core and 130 MB. ``--ebpf`` adds the wire tap and its privileged process (root).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from rig.part import Part
from rig.ports import free_ports
from rig.stack import Plan, Stack

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


def start(stack: Stack, folder: Path, ebpf: bool) -> Part:
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
        return Part("sidecar", command, folder, ready)
    config = folder / "probe.yaml"
    listed = [{"name": f"r{i}", "url": url} for i, url in enumerate(engines)]
    config.write_text(json.dumps({"engines": listed, "export": {"listen": f"127.0.0.1:{port}"}}))
    return Part("sidecar", [program, "run", "--config", str(config)], folder, ready)


def main() -> None:
    """Prints figures in words, then one JSON object."""
    parser = argparse.ArgumentParser(prog="./run bench footprint", description=__doc__)
    parser.add_argument("--ebpf", action="store_true", help="with the wire tap; needs root")
    parser.add_argument("--seconds", type=float, default=40, help="how long to measure")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Stack(Plan(load=False, folder=folder)) as stack:
            part = start(stack, folder, args.ebpf)
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
    }
    print(
        f"{result['processes']} processes idle for {elapsed:.0f} s: {spent / elapsed:.2%} of a "
        f"core, {memory / 1e6:.0f} MB"
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
