"""The router of the vLLM project in front of the engines: round robin, metrics on another port."""

from collections.abc import Sequence
from pathlib import Path

from rig.apart import program
from rig.gateway import Launch


def plan(folder: Path, port: int, admin_port: int, engines: Sequence[int]) -> Launch:
    """It has no configuration file; it is ready once an engine is."""
    host = ("--host", "127.0.0.1", "--port", str(port))
    metrics = ("--prometheus-host", "127.0.0.1", "--prometheus-port", str(admin_port))
    workers = tuple(f"http://127.0.0.1:{engine}" for engine in engines)
    router = program("vllm-router", "vllm-router", part="record vllm-router")
    return Launch(
        name="vllm-router",
        command=(
            str(router),
            *host,
            *metrics,
            "--policy",
            "round_robin",
            "--worker-urls",
            *workers,
        ),
        ready_url=f"http://127.0.0.1:{port}/health",
        metrics_url=f"http://127.0.0.1:{admin_port}/metrics",
    )
