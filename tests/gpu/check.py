"""Compares the GPU collector with a real driver; for a machine with an NVIDIA GPU and PyTorch.

``python -m tests.gpu.check`` takes under a minute, prints each figure beside nvidia-smi's and what
a process of its own allocated, and exits 1 if one disagrees. ``--markdown`` writes the table of
docs/gpu-results.md. Nothing is changed on the device; it allocates 1 GiB and gives it back.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from sidecar.collectors.nvml import NvmlCollector, Options, metrics
from sidecar.signals import NoData, Sample

ALLOCATED = 2**30
_HOLD = (
    "import torch, sys; x = torch.empty({size}, dtype=torch.uint8, device='cuda:0'); "
    "torch.cuda.synchronize(); print(torch.cuda.memory_reserved(), flush=True); sys.stdin.read()"
)
_MIB = 2.0**20
# nvidia-smi's field, our metric, labels that choose the sample, factor, tolerance in our unit.
FIELDS = (
    ("memory.total", "memory_total", {}, _MIB, 2 * _MIB),
    ("memory.used", "memory_used", {}, _MIB, 64 * _MIB),
    ("memory.reserved", "memory_reserved", {}, _MIB, 2 * _MIB),
    ("temperature.gpu", "temperature", {"sensor": "gpu"}, 1.0, 3.0),
    ("power.draw", "power", {}, 1.0, 60.0),
    ("enforced.power.limit", "power_limit", {}, 1.0, 1.0),
    ("clocks.sm", "clock", {"clock": "sm"}, 1e6, 400e6),
    ("clocks.mem", "clock", {"clock": "memory"}, 1e6, 400e6),
    ("utilization.gpu", "utilization", {"kind": "gpu"}, 0.01, 0.5),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both sides; ``theirs`` is None where nvidia-smi gives none."""

    name: str
    ours: float | None
    theirs: float | None
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Both absent, or both there and close: a figure that only one side has disagrees."""
        if self.ours is None or self.theirs is None:
            return self.ours is self.theirs
        return abs(self.ours - self.theirs) <= self.tolerance


def read(seconds: float = 20.0) -> list[Sample]:
    """The collector's samples once its slow fields have been read; NoData when it is blind."""
    collector = NvmlCollector(options=Options(middle=2.0, slow=3.0))
    collector.open()
    try:
        deadline = time.monotonic() + seconds
        samples: list[Sample] = []
        while time.monotonic() < deadline:
            samples = [s for s in collector.collect(time.time()) if isinstance(s, Sample)]
            time.sleep(0.5)
        return samples
    finally:
        collector.close()


def pick(samples: list[Sample], key: str, gpu: str, **labels: str) -> float | None:
    """The value of a metric of one card."""
    name = metrics.TABLE[key][0].name
    wanted = {("gpu", gpu), *labels.items()}
    return next((s.value for s in samples if s.metric == name and wanted <= set(s.labels)), None)


def smi(field: str, gpu: str) -> float | None:
    """What nvidia-smi says of a field; None for `[N/A]` and for one that it does not know."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "-i", gpu]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    try:
        return float(run.stdout.strip())
    except ValueError:
        return None


def compare(samples: list[Sample], gpu: str = "0") -> Iterator[Row]:
    """Field by field."""
    for field, key, labels, factor, tolerance in FIELDS:
        theirs = smi(field, gpu)
        ours = pick(samples, key, gpu, **labels)
        yield Row(field, ours, None if theirs is None else theirs * factor, tolerance)


def process_memory() -> Row:
    """What the collector says of a process that holds a known allocation."""
    command = [sys.executable, "-c", _HOLD.format(size=ALLOCATED)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        reserved = float(process.stdout.readline() or "nan")
        ours = pick(read(12), "process_memory", "0", pid=str(process.pid))
        process.communicate()
    # A CUDA context takes some hundred MiB beside what the allocator holds.
    return Row("memory of our own process", ours, reserved, 1024 * _MIB)


def gpm(samples: list[Sample]) -> Iterator[Row]:
    """GPM ratios are between 0 and 1 where they are supported; absent elsewhere."""
    for key in ("sm_active", "sm_occupancy", "tensor_active", "dram_active"):
        value = pick(samples, key, "0")
        yield Row(f"{key} (0 to 1)", value, None if value is None else 0.5, 0.5)


def main() -> int:
    """Exit 0 when all agree, 1 when a figure does not, 2 without a GPU to look at."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.check", description=__doc__)
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    if shutil.which("nvidia-smi") is None:
        print("no nvidia-smi here: run this on a machine with an NVIDIA GPU", file=sys.stderr)
        return 2
    try:
        samples = read()
    except NoData as error:
        print(f"the collector is blind: {error.absence}: {error.reason}", file=sys.stderr)
        return 1
    rows = [*compare(samples), process_memory(), *gpm(samples)]
    separator = " | " if args.markdown else "  "
    print(separator.join(("figure", "ours", "theirs", "agrees")))
    for row in rows:
        cells = (row.name, str(row.ours), str(row.theirs), "yes" if row.agrees else "NO")
        print(separator.join(cells))
    return 0 if all(row.agrees for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
