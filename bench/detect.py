"""How fast latencies are counted, what a week of them takes, and what an evaluation of drift costs.

Hours of 3,600 requests, recorded as the sidecar does: TTFTs lognormal with a median of 350 ms, of
sizes and answers that spread as real ones do, with gaps and durations to them. A third of the
series is of each. Targets: at least 1,000,000 a second one by one and 2,000,000 in bulk; 1,000
series of a week in at most 100 MB on disk and 150 MB in memory.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

import numpy as np

from sidecar import gaps
from sidecar.analyst.pages import Codec, Page
from sidecar.drift import codec
from sidecar.drift.distance import ks
from sidecar.loghist import LogHist
from sidecar.record import Record
from sidecar.recorder import Recorder
from sidecar.testing import timing

SERIES, HOURS, REQUESTS = 1_000, 168, 3_600
TARGETS = {"scalar_per_second": 1e6, "bulk_per_second": 2e6}
LIMITS = {"disk_bytes": 100e6, "memory_bytes": 150e6}
_MEDIAN, _SIGMA = 0.35, 0.45
_BYTES, _EVENTS, _SPREAD, _GAP = 4_000.0, 100.0, 1.0, 0.02
_GAP_SIGMA = 0.3
_SIGNALS = ("ttft", "duration", "itl")
_EVALUATION = "bench.detect_evaluation"


def hour(seed: int) -> dict[str, Record]:
    """What is recorded of an hour by signal, one request a second, from its twelve slots."""
    rng, recorder = np.random.default_rng(seed), Recorder()
    records = {signal: Record() for signal in _SIGNALS}
    medians, spreads = (_MEDIAN, _BYTES, _EVENTS), (_SIGMA, _SPREAD, _SPREAD)
    made = rng.lognormal(np.log(medians), spreads, (REQUESTS, 3)).tolist()
    gap = rng.lognormal(math.log(_GAP), _GAP_SIGMA, REQUESTS).tolist()
    recorder.roll(0.0, 0.0)
    for second, ((ttft, size, events), each) in enumerate(zip(made, gap, strict=True), start=1):
        one = timing(
            ttft_seconds=ttft,
            seconds=ttft + each * events,
            request_bytes=int(size),
            token_events=1 + int(events),
            gaps=((gaps.index(round(each * 1e9)), 1 + int(events)),),
        )
        recorder.add(one)
        slot = recorder.roll(float(second), float(second))
        for series, found in slot.records.items() if slot else ():
            records[series.signal].merge(found)
    return records


def seconds(call: Callable[[], object], repeats: int = 9) -> float:
    """The median of so many calls."""
    spent = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        spent.append(time.perf_counter() - started)
    return statistics.median(spent)


def rates(seed: int) -> dict[str, float]:
    """Durations counted a second, one by one and in bulk."""
    rng = np.random.default_rng(seed)
    bulk = rng.lognormal(math.log(_MEDIAN), _SIGMA, 1_000_000)
    values, hist = bulk[:200_000].tolist(), LogHist()

    def scalar() -> None:
        for value in values:
            hist.add(value)

    found = {
        "scalar_per_second": len(values) / seconds(scalar),
        "bulk_per_second": len(bulk) / seconds(lambda: hist.add_many(bulk)),
    }
    print(
        f"counted {found['scalar_per_second'] / 1e6:.1f} M durations a second one by one, "
        f"{found['bulk_per_second'] / 1e6:.1f} M in bulk"
    )
    return found


def rss_bytes() -> int:
    """Resident memory of this process (proc(5): the second field of statm, in pages)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def week(packed: list[bytes]) -> tuple[int, int]:
    """Bytes of all records of a week, and by how much resident memory grows as the analyst holds
    them: a page for each hour. The sample goes round; pages copy it.
    """
    gc.collect()
    before, total, pages = rss_bytes(), 0, []
    for number in range(HOURS):
        rows = [packed[(number + series) % len(packed)] for series in range(SERIES)]
        total += sum(map(len, rows))
        pages.append(Page((i + 1, 0xFFF, 0, data) for i, data in enumerate(rows)))
    gc.collect()
    return total, rss_bytes() - before


def sizes(seed: int, sample: int) -> dict[str, float]:
    """What a week of every series takes, extrapolated from distinct hours."""
    whole = (hour(seed * 100_000 + number) for number in count())
    records = list(islice((one[signal] for one in whole for signal in _SIGNALS), sample))
    encoded, pack = [codec.encode(record) for record in records], Codec().pack
    disk, memory = week([pack(record) for record in records])
    one, other = records[0].hist, records[1].hist
    found = {
        "disk_bytes": disk,
        "memory_bytes": memory,
        "record_bytes": statistics.fmean(map(len, encoded)),
        "record_bytes_max": max(map(len, encoded)),
        "encode_seconds": seconds(lambda: codec.encode(records[0]), 200),
        "decode_seconds": seconds(lambda: codec.decode(encoded[0]), 200),
        "distance_seconds": seconds(lambda: ks(one, other), 200),
    }
    print(
        f"a record of an hour: {found['record_bytes']:.0f} bytes, at most "
        f"{found['record_bytes_max']}, of {sample} distinct ones; encoded in "
        f"{found['encode_seconds'] * 1e6:.0f} us, decoded in {found['decode_seconds'] * 1e6:.0f} us"
        f"\n{SERIES:,} series of {HOURS} hours, extrapolated from these: {disk / 1e6:.1f} MB of "
        f"records as they are kept, {memory / 1e6:.1f} MB of resident memory measured"
        f"\nthe distance of two of them with its bounds and p: "
        f"{found['distance_seconds'] * 1e6:.0f} us"
    )
    return found


def evaluation(seed: int) -> dict[str, object]:
    """``evaluation_seconds``, ``speedup`` and ``same_decision``, of bench/detect_evaluation.py."""
    if importlib.util.find_spec(_EVALUATION) is None:
        print("evaluations are not measured here")
        return {}
    found: dict[str, object] = importlib.import_module(_EVALUATION).measure(seed=seed)
    print("an evaluation: " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()))
    return found


def main() -> None:
    """Prints words, then one JSON object."""
    parser = argparse.ArgumentParser(prog="./run bench detect", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=100, help="distinct hours, two or more")
    options = parser.parse_args()
    print(f"seed {options.seed}; medians of 9 runs, or of 200 where it is microseconds")
    size = sizes(options.seed, options.sample)
    found: dict[str, object] = {**rates(options.seed), **size, **evaluation(options.seed)}
    met = all(float(str(found[name])) >= least for name, least in TARGETS.items())
    met &= all(float(str(found[name])) <= most for name, most in LIMITS.items())
    sample = {"requests": REQUESTS, "sample": options.sample, "seed": options.seed}
    print(json.dumps({**found, **sample, "met": met}))
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
