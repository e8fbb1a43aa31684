"""Measures requests of the Azure trace on the rig, by the sidecar's own tap, into a fixture.

A real llama.cpp with a small model behind a real Envoy is asked what the trace asks, thinned, with
sizes divided and its clock compressed. Four conditions take turns, 100 s of the trace each, so that
what else the machine does meets all of them: the trace's mix, the same with the engine held to a
share of a core, and two other mixes. About 16 minutes; needs root, BPF and control groups.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from bench import azure_fixture, azure_trace
from bench.azure_fixture import Measured
from bench.azure_share import Share
from bench.azure_tap import Tap
from bench.azure_trace import CHUNK_SECONDS, COMPRESSION, CONDITIONS, Ask
from bench.detectors import commit, machine
from rig.client import Client
from rig.schedule import traceparent
from rig.stack import ENGINE, Plan, Stack
from rig.tiny import Dims, cached
from rig.traffic import request
from rig.truth import Truth
from rig.vocabulary import WORDS
from sidecar.signals import NoData

_ROOT = Path(__file__).resolve().parents[1]
FIXTURE = _ROOT / "bench" / "results" / "azure-requests.json.gz"
TRACE = _ROOT.parent / "shared" / "datasets" / "azure-llm-trace-2023"
# On one core 55 us a token of the prompt and 150 us a token of the answer, besides 2 ms a request.
DIMS = Dims(width=128, layers=3, heads=4, feed_forward=320)
_DRAIN = 0.5  # seconds after the last answer of a chunk
_TIMEOUT = 30.0


class Rig:
    """The stack with its tap, and the engine's share of a core."""

    def __init__(self, folder: Path, share: float, seed: int) -> None:
        model = str(cached(_ROOT / ".cache", DIMS))
        self._stack = Stack(Plan(engines=1, load=False, model=model, folder=folder))
        self._slow, self._rng = share, random.Random(seed)
        self._share: Share | None = None
        self.truth = Truth()
        self.tap: Tap | None = None

    def __enter__(self) -> Rig:
        self._stack.start()
        self._share = Share(self._stack.parts()[f"{ENGINE}0"].pid)
        self.tap = Tap(self._stack.gateway_port)
        return self

    def __exit__(self, *_: object) -> None:
        if self.tap is not None:
            self.tap.close()
        self._stack.stop()
        if self._share is not None:
            self._share.close()

    def play(self, asks: list[Ask], slowed: bool) -> list[Measured]:
        """Asks in their time, and what the wire saw of them."""
        assert self._share is not None
        assert self.tap is not None
        self._share.set(self._slow if slowed else None)
        traces = asyncio.run(self._ask(asks))
        time.sleep(_DRAIN)
        seen = {timing.trace_id: timing for timing in self.tap.take()}
        pairs = [(ask, seen.get(trace)) for ask, trace in zip(asks, traces, strict=True)]
        return [Measured(ask.at, ask.kind, one) for ask, one in pairs if one is not None]

    async def _ask(self, asks: list[Ask]) -> list[str]:
        client = Client("127.0.0.1", self._stack.gateway_port, self.truth, _TIMEOUT)
        start, began, tasks, traces = time.perf_counter(), asks[0].at, [], []
        for ask in asks:
            parent = traceparent(self._rng)
            traces.append(parent.split("-")[1])
            words = " ".join(self._rng.choices(WORDS, k=ask.context))
            data = request("rig", [{"role": "user", "content": words}], ask.generated, parent)
            await asyncio.sleep(start + (ask.at - began) / COMPRESSION - time.perf_counter())
            tasks.append(asyncio.create_task(client.ask(data)))
        await asyncio.gather(*tasks)
        return traces


def measure(rig: Rig, trace: dict[str, list[Ask]], chunks: int) -> dict[str, list[Measured]]:
    """All conditions, in turns; each chunk has them in another order."""
    plans = {name: azure_trace.thinned(trace, one) for name, one in CONDITIONS.items()}
    found: dict[str, list[Measured]] = defaultdict(list)
    names = list(CONDITIONS)
    rig.play(plans["usual"][:100], slowed=False)  # the first ones find cold caches
    for chunk in range(chunks):
        for name in names[chunk % len(names) :] + names[: chunk % len(names)]:
            asks = [one for one in plans[name] if int(one.at // CHUNK_SECONDS) == chunk]
            if asks:
                found[name] += (seen := rig.play(asks, CONDITIONS[name].slowed))
                print(f"chunk {chunk + 1}: {name:<10}{_told(seen)} of {len(asks)}", flush=True)
    return found


def _told(found: list[Measured]) -> str:
    ttft = sorted(one.timing.ttft_seconds or 0.0 for one in found)
    whole = statistics.median(one.timing.seconds for one in found)
    p50, p95 = ttft[len(ttft) // 2] * 1e3, ttft[int(0.95 * len(ttft))] * 1e3
    return f"TTFT p50 {p50:.0f} p95 {p95:.0f} ms, duration p50 {whole * 1e3:.0f} ms, {len(found)}"


def about(options: argparse.Namespace) -> dict[str, object]:
    """How it was measured."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit(),
        "machine": machine(),
        "command": "python -m bench.azure_measure",
        "trace": "Azure LLM inference trace 2023 (CC-BY-4.0), sizes and arrivals only",
        "engine": f"llama.cpp, {DIMS.width} wide, {DIMS.layers} layers, 1 thread, 4 slots; Envoy",
        "slowed": f"the engine may use {options.share:g} of a core, in periods of 2 ms",
        "seed": options.seed,
        "scaling": {
            "context_divisor": azure_trace.CONTEXT_DIVISOR,
            "generated_divisor": azure_trace.GENERATED_DIVISOR,
            "compression": COMPRESSION,
            "thinning": 12,
        },
    }


def main() -> int:
    """Exit 2 where the trace or the wire is not to be had."""
    parser = argparse.ArgumentParser(prog="python -m bench.azure_measure", description=__doc__)
    parser.add_argument("--share", type=float, default=0.6, help="of a core, when slowed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chunks", type=int, default=36, help="of 100 s of the trace")
    parser.add_argument("--trace", type=Path, default=TRACE)
    parser.add_argument("--to", type=Path, default=FIXTURE)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the group is removed
    try:
        trace = azure_trace.read(options.trace)
        with (
            tempfile.TemporaryDirectory() as folder,
            Rig(Path(folder), options.share, options.seed) as rig,
        ):
            found = measure(rig, trace, options.chunks)
            failures = dict(rig.truth.failures)
    except (FileNotFoundError, NoData) as absent:
        print(absent, file=sys.stderr)
        return 2
    azure_fixture.save(options.to, about(options), found)
    print({name: len(rows) for name, rows in found.items()}, "failed:", failures)
    print(f"{options.to.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
