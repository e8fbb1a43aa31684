"""How long reading an engine's exposition takes, and what hostile ones cost in memory.

A 70 kB exposition of vLLM's form (26 histograms of two engines beside counters and gauges) is read
and translated to canonical signals; then 8 MB each of five hostile forms. Targets: at most 0.015 s,
at most 64 MiB of peak memory beyond the body itself, which arrives in pieces.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
import tracemalloc
from collections.abc import Iterator

from sidecar.engines import tables
from sidecar.engines.parser import Reader
from sidecar.engines.table import NameTable
from sidecar.engines.telemetry import Telemetry
from sidecar.engines.wanted import Wanted, wanted
from sidecar.signals import Kind, NoData

TARGET_SECONDS, TARGET_BYTES = 0.015, 64 * 2**20
_EXPOSITION_BYTES, _HOSTILE_BYTES, _CHUNK = 70_000, 8_000_000, 65_536
_BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20)


def exposition(rng: random.Random) -> bytes:
    """VLLM's names with made-up values, filled up to 70 kB with others of its form."""
    (vllm,) = (table for table in tables() if table.engine == "vllm")
    lines: list[str] = []
    for engine in range(2):
        for name in vllm.names:
            label = f'engine="{engine}",model_name="m"'
            raw = name.raw if name.plain else vllm.prefixes[0] + name.raw
            lines.extend(_series(raw, name.metric.kind, label, rng))
    size = sum(map(len, lines))
    while size < _EXPOSITION_BYTES:
        lines.extend(_series(f"vllm:other_{len(lines)}_seconds", Kind.HISTOGRAM, 'engine="0"', rng))
        size = sum(map(len, lines)) + len(lines)
    return "\n".join(lines).encode()


def _series(raw: str, kind: Kind, label: str, rng: random.Random) -> Iterator[str]:
    yield f"# HELP {raw} What it is."
    yield f"# TYPE {raw.removesuffix('_total')} {kind}"
    if kind is not Kind.HISTOGRAM:
        yield f"{raw}{{{label}}} {rng.randrange(10**6)}.0"
        return
    count = 0
    for bound in (*_BOUNDS, "+Inf"):
        count += rng.randrange(50)
        yield f'{raw}_bucket{{{label},le="{bound}"}} {count}.0'
    yield f"{raw}_count{{{label}}} {count}.0"
    yield f"{raw}_sum{{{label}}} {count * 0.1!r}"


def hostile() -> dict[str, Iterator[bytes]]:
    """Bodies that nobody means well with, a line at a time."""
    pairs = ",".join(f'a{i}="{i}"' for i in range(60))
    return {
        "many names": (b"vllm:n%d 1\n" % i for i in range(10**7)),
        "many series of a wanted name": (
            b'vllm:request_success_total{finished_reason="r%d"} 1\n' % i for i in range(10**7)
        ),
        "many labels": (
            f'vllm:num_requests_running{{engine="{i}",{pairs}}} 1\n'.encode() for i in range(10**7)
        ),
        "long values": (
            b'vllm:kv_cache_usage_perc{engine="%d",model_name="%s"} 1\n' % (i, b"\xf0" * 15_000)
            for i in range(10**7)
        ),
        "one line": (b"x" * 1_000 for _ in range(10**7)),
    }


def peak_bytes(lines: Iterator[bytes], names: Wanted, known: tuple[NameTable, ...]) -> int:
    """Peak of traced memory while 8 MB arrive in pieces and are translated."""
    reader = Reader(names, seconds=60)
    tracemalloc.start()
    try:
        sent, chunk = 0, bytearray()
        while sent < _HOSTILE_BYTES:
            chunk += next(lines)
            if len(chunk) >= _CHUNK:
                reader.feed(bytes(chunk))
                sent += len(chunk)
                chunk.clear()
        Telemetry("r0", known).take(reader.finish(), 0.0)
    except NoData as refused:
        print(f"  refused: {refused.reason}")
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


def main() -> None:
    """Prints words, then one JSON object."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=200)
    arguments = options.parse_args()
    known = tables()
    names = wanted(known)
    body = exposition(random.Random(arguments.seed))
    print(f"{len(body):,} bytes of vLLM's form, {arguments.rounds} rounds, seed {arguments.seed}")
    telemetry, spent = Telemetry("r0", known), []
    for number in range(arguments.rounds):
        started = time.perf_counter()
        reader = Reader(names)
        for start in range(0, len(body), _CHUNK):
            reader.feed(body[start : start + _CHUNK])
        telemetry.take(reader.finish(), float(number))
        spent.append(time.perf_counter() - started)
    seconds, slow = statistics.median(spent), sorted(spent)[int(0.99 * len(spent))]
    print(f"read and translated: median {seconds * 1e3:.2f} ms, p99 {slow * 1e3:.2f} ms")
    peaks = {}
    for form, lines in hostile().items():
        peaks[form] = peak_bytes(lines, names, known)
        print(f"hostile, {form}: {peaks[form] / 2**20:.1f} MiB at most")
    worst = max(peaks.values())
    met = seconds <= TARGET_SECONDS and worst <= TARGET_BYTES
    result = {
        "seconds": seconds,
        "p99_seconds": slow,
        "bytes": len(body),
        "hostile_peak_bytes": worst,
        "n": arguments.rounds,
        "seed": arguments.seed,
        "met": met,
    }
    print(json.dumps(result))
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
