"""How long one scrape of /metrics takes, each of a new snapshot, over HTTP on loopback.

A child process serves the real application; every scrape finds a snapshot it has not rendered
before, so nothing is answered from the cache. Target: p99 at most 0.025 s at 2,000 series.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import socket
import time
from dataclasses import replace
from http.client import HTTPConnection
from multiprocessing import get_context

from sidecar import buckets
from sidecar.app import bind, declared_metrics, spare_garbage_collection
from sidecar.engines import canonical
from sidecar.signals import Leg, Sample
from sidecar.snapshot import Snapshot
from sidecar.state import State
from sidecar.testing import timing

TARGET = 0.025


def made_snapshot(series: int, seed: int) -> Snapshot:
    """A snapshot of about ``series`` exported series: wire histograms first, engines' gauges for
    the rest, as a node with many replicas would have.
    """
    rng = random.Random(seed)
    state = State(time.time(), max_label_sets=100_000)
    timings = []
    for server in range(11):
        for leg in Leg:
            for _ in range(17):
                ttft = rng.lognormvariate(-1.0, 0.5)
                trace = f"{rng.getrandbits(128):032x}"
                timings.append(
                    timing(
                        leg=leg,
                        server=f"10.0.0.{server}:8000",
                        ttft_seconds=ttft,
                        seconds=ttft + 1,
                        trace_id=trace,
                    )
                )
    state.apply("probes", timings, time.time())
    wire = 22 * (len(buckets.TTFT_BOUNDS) + len(buckets.ITL_BOUNDS) + len(buckets.REQUEST_BOUNDS))
    metrics = (canonical.RUNNING, canonical.WAITING, canonical.GENERATED_TOKENS)
    samples = [
        Sample(metric.name, rng.random() * 1e4, (("engine", "vllm"), ("replica", f"r{i}")))
        for i in range(max(0, (series - wire) // len(metrics)))
        for metric in metrics
    ]
    state.apply("engine:all", samples, time.time())
    return state.snapshot((), time.time())


class Renewing:
    """Gives every reader a snapshot of a new sequence number, so that none is cached."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._numbers = itertools.count(1)

    def snapshot(self) -> Snapshot:
        """The same values as a snapshot never seen before."""
        return replace(self._snapshot, sequence=next(self._numbers), at=time.time())

    def ready(self) -> tuple[bool, str]:
        """Always."""
        return True, ""


def serve(listener: socket.socket, series: int, seed: int) -> None:
    """The child: the real application on a socket."""
    import uvicorn

    from sidecar.export.http import build_app

    app = build_app(Renewing(made_snapshot(series, seed)), declared_metrics())
    spare_garbage_collection()
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


def scrape(port: int, accept: str) -> tuple[float, bytes]:
    """Seconds and body of one scrape."""
    started = time.perf_counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics", headers={"Accept": accept})
    body = connection.getresponse().read()
    connection.close()
    return time.perf_counter() - started, body


def main() -> None:
    """Prints figures in words, then one JSON object."""
    parser = argparse.ArgumentParser(prog="./run bench scrape", description=__doc__)
    parser.add_argument("--series", type=int, default=2_000)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    listener = bind("127.0.0.1:0")
    port = listener.getsockname()[1]
    child = get_context("fork").Process(target=serve, args=(listener, args.series, args.seed))
    child.start()
    try:
        times, body = measure(port, args.n)
    finally:
        child.terminate()
        child.join()
    lines = [line for line in body.splitlines() if line and not line.startswith(b"#")]
    result = {
        "p99_seconds": times[int(0.99 * (len(times) - 1))],
        "p50_seconds": times[len(times) // 2],
        "series": len(lines),
        "bytes": len(body),
        "n": len(times),
        "seed": args.seed,
    }
    print(
        f"{result['n']} scrapes of {result['series']} series ({result['bytes']} bytes), each "
        f"rendered anew: median {result['p50_seconds'] * 1e3:.1f} ms, "
        f"p99 {result['p99_seconds'] * 1e3:.1f} ms: target of 25 ms "
        f"{'met' if result['p99_seconds'] <= TARGET else 'MISSED'} "
        f"(load average {os.getloadavg()[0]:.1f}; repeat it on an idle machine)"
    )
    print(json.dumps(result))


def measure(port: int, n: int) -> tuple[list[float], bytes]:
    """Sorted times of ``n`` scrapes in Prometheus' own preferred format, after a warm-up."""
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    deadline = time.monotonic() + 20
    while True:
        try:
            scrape(port, accept)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
    results = [scrape(port, accept) for _ in range(n)]
    return sorted(seconds for seconds, _ in results), results[-1][1]


if __name__ == "__main__":
    main()
