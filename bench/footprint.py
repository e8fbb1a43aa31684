"""What an idle sidecar costs: CPU of one core and memory (PSS), all our processes summed.

Two real llama.cpp engines idle beside it and are scraped every 5 s. Target without eBPF: at most
1 % of a core and 130 MB. ``--ebpf`` adds the wire tap by the prebuilt loader, its privileged
process (root) and two requests a second, in a network namespace of its own: at most 150 MB. The
analyst starts with the first slot of recorded requests: ``--full`` waits for it, up to six minutes.
``--gpus N`` adds stand-in GPUs that are read every second by calls that take 2 to 5 ms each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.wire_machine import Unable, leave_network
from rig import driver
from rig.meter import scrape, values
from rig.part import Part
from rig.ports import free_ports
from rig.stack import Plan, Stack

PSS_TARGET, PSS_TARGET_EBPF = 130e6, 150e6
ANALYST = "sidecar.analyst"
_CALL_SECONDS = 0.0035
_FIRST_SLOT = 360.0  # seconds: a slot of five minutes, and a start
_LISTEN = 9838
_WIRE = ("probe", "wire")
_TICKS = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and all its descendants, from /proc."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found.extend(int(child) for child in task.read_text().split())
    return found


def name_of(pid: int) -> str:
    """Which of ours a process is: the module it runs, `sidecar` for the one that attaches."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return next((word for word in words if word.startswith("sidecar.")), "sidecar")


def cpu_seconds(pids: list[int]) -> float:
    """CPU of the processes so far (proc(5): utime and stime of stat)."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def pss_bytes(pids: list[int]) -> dict[str, int]:
    """Proportional set size by process, shared pages divided among their users."""
    found: dict[str, int] = {}
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                name = name_of(pid)
                found[name] = found.get(name, 0) + int(line.split()[1]) * 1024
    return found


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
    [port] = free_ports([_LISTEN])
    program = str(Path(sys.executable).with_name("model-probe"))
    ready = f"http://127.0.0.1:{port}/readyz"
    engines = list(stack.engine_urls)
    if ebpf:
        command = [program, "attach", "--listen", f"127.0.0.1:{port}"]
        command += ["--port", str(stack.gateway_port), "--loader", "prebuilt"]
        for url in engines:
            command += ["--engine", url]
        return Part("sidecar", command, folder, ready, environment)
    config = folder / "probe.yaml"
    listed = [{"name": f"r{i}", "url": url} for i, url in enumerate(engines)]
    config.write_text(json.dumps({"engines": listed, "export": {"listen": f"127.0.0.1:{port}"}}))
    command = [program, "run", "--config", str(config)]
    return Part("sidecar", command, folder, ready, environment)


def counted(ready_url: str) -> float:
    """Events that the tap has counted; raises Unable unless the prebuilt loader brought it in."""
    found = values(scrape(ready_url.replace("/readyz", "/metrics")))
    wire = {(name, *labels): v for (name, labels), v in found.items() if _WIRE in labels}
    if not wire.get(("modelprobe_probe_info", ("loader", "prebuilt"), _WIRE)):
        raise Unable("the tap is not attached by the prebuilt loader; see `model-probe doctor`")
    return sum(v for (name, *_), v in wire.items() if name == "modelprobe_probe_events_total")


def wait_for_analyst(part: Part) -> None:
    """Returns when it runs; raises Unable where it has not started by the end of a slot."""
    deadline = time.monotonic() + _FIRST_SLOT
    while ANALYST not in map(name_of, family(part.pid)):
        if time.monotonic() > deadline:
            raise Unable(f"no analyst within {_FIRST_SLOT:.0f} s; log:\n{part.tail()}")
        time.sleep(1)


@dataclass(frozen=True, slots=True)
class Footprint:
    """CPU of one core and memory by process; ``events`` are those that the tap counted."""

    cpu_ratio: float
    pss_bytes: dict[str, int]
    processes: int
    seconds: float
    events: int

    def report(self) -> dict[str, object]:
        """As JSON has it."""
        by_process = self.pss_bytes
        total = {"pss_bytes": sum(by_process.values()), "pss_bytes_by_process": by_process}
        return asdict(self) | total

    def tell(self, ebpf: bool) -> None:
        """In words, beside the target."""
        total, target = sum(self.pss_bytes.values()), PSS_TARGET_EBPF if ebpf else PSS_TARGET
        print(
            f"{self.processes} processes {'under a light load' if ebpf else 'idle'} for "
            f"{self.seconds:.0f} s: {self.cpu_ratio:.2%} of a core, {total / 1e6:.0f} MB: target "
            f"of {target / 1e6:.0f} MB {'met' if total <= target else 'MISSED'}"
        )
        for name, size in self.pss_bytes.items():
            print(f"  {name}: {size / 1e6:.0f} MB")
        if ebpf and ANALYST not in self.pss_bytes:
            print("  the analyst has not started: --full waits for it")


def measure(part: Part, args: argparse.Namespace) -> Footprint:
    """Of a sidecar that has just become ready."""
    time.sleep(8)  # imports, first scrapes and first snapshots are not idling
    if args.full:
        wait_for_analyst(part)
        time.sleep(8)
    events = counted(str(part.ready_url)) if args.ebpf else 0.0
    pids = family(part.pid)
    before, started = cpu_seconds(pids), time.monotonic()
    time.sleep(args.seconds)
    spent, elapsed = cpu_seconds(pids) - before, time.monotonic() - started
    memory = pss_bytes(family(part.pid))
    if args.ebpf and not (events := counted(str(part.ready_url)) - events):
        raise Unable("the tap counted no event of the load: it is not at work")
    return Footprint(spent / elapsed, memory, len(pids), elapsed, round(events))


def main() -> None:
    """Prints figures in words, then one JSON object."""
    parser = argparse.ArgumentParser(prog="./run bench footprint", description=__doc__)
    parser.add_argument("--ebpf", action="store_true", help="with the wire tap; needs root")
    parser.add_argument("--gpus", type=int, default=0, help="stand-in GPUs, read at 1 Hz")
    parser.add_argument("--seconds", type=float, default=40, help="how long to measure")
    parser.add_argument("--full", action="store_true", help="with --ebpf: the analyst too")
    args = parser.parse_args()
    if args.full and not args.ebpf:
        parser.error("--full needs --ebpf: without requests there is no analyst")
    try:
        found, engines = run(args)
    except Unable as error:
        raise SystemExit(f"bench footprint: {error}") from error
    found.tell(args.ebpf)
    told = {"engines": engines, "interval_seconds": 5, "ebpf": args.ebpf, "gpus": args.gpus}
    print(json.dumps(found.report() | told))


def run(args: argparse.Namespace) -> tuple[Footprint, int]:
    """A stack and a sidecar, measured; and how many engines there were."""
    if args.ebpf:
        leave_network()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Stack(Plan(load=args.ebpf, folder=folder)) as stack:
            part = start(stack, folder, args.ebpf, gpus(folder, args.gpus))
            try:
                part.wait_ready(time.monotonic() + 30)
                return measure(part, args), len(stack.engine_urls)
            finally:
                part.terminate()
                part.reap(time.monotonic() + 6)


if __name__ == "__main__":
    main()
