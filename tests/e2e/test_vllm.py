"""vLLM under overload, as the sidecar names it, and clients that its counters miss."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.apart import program
from rig.gateway import Absent
from rig.meter import scrape, values
from rig.ports import free_ports
from rig.record import loaded
from rig.sidecar import Sidecar
from rig.stack import Plan, Stack
from rig.vllm_engine import CLIENTS, RATE, TOKENS
from sidecar.engines import canonical
from sidecar.testing import wait_for

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.ebpf,
    pytest.mark.timeout(400),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Sidecar]]:
    """A tight vLLM behind Envoy, and a sidecar that sees engine, gateway and wire."""
    try:
        program("vllm", "python")
    except Absent as absent:
        pytest.skip(str(absent))
    gateway, admin, engine, page = free_ports([0, 0, 0, 0])
    folder = tmp_path_factory.mktemp("vllm")
    plan = Plan(
        serving="vllm",
        overload=True,
        engines=1,
        load=False,
        folder=folder,
        gateway_port=gateway,
        admin_port=admin,
        engine_port=engine,
    )
    with Stack(plan) as stack:
        sidecar = Sidecar(stack, page)
        sidecar.start()
        try:
            sidecar.wait_seeing()
            yield stack, sidecar
        finally:
            sidecar.stop()


def read(sidecar: Sidecar, metric: str) -> float:
    """The sum of the sidecar's own series of a canonical metric, now."""
    found = values(scrape(f"{sidecar.url}/metrics"))
    return sum(value for (name, _), value in found.items() if name == metric)


def scrapes(sidecar: Sidecar) -> int:
    """How often the engine has been read."""
    collectors = (sidecar.state() or {}).get("collectors", [])
    return next((c["collections"] for c in collectors if c["name"].startswith("engine:")), 0)


def observed(sidecar: Sidecar, kind: str, signal: str) -> str:
    """The sentence of an observation, empty if it does not hold."""
    for found in (sidecar.state() or {}).get("observations", []):
        if (found["kind"], found["signal"]) == (kind, signal):
            return str(found["text"])
    return ""


def test_killed_clients_show_in_the_reconciliation(seen: tuple[Stack, Sidecar]) -> None:
    """Three clients die in mid-stream: the wire counts them, vLLM does not, and it is said."""
    stack, sidecar = seen
    wait_for(lambda: scrapes(sidecar) >= 11, 60, "scrapes before the first client dies")
    load = (sys.executable, "-m", "rig.load", "--url", stack.url)
    client = subprocess.Popen(
        (*load, "--clients", "3", "--rate", "50", "--tokens", "400"),
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: read(sidecar, canonical.RUNNING.name) == 3, 60, "three running")
    finally:
        client.kill()
        client.wait()
    wait_for(lambda: observed(sidecar, "disagreement", "aborts"), 60, "the disagreement")
    assert observed(sidecar, "disagreement", "aborts").startswith(
        "the engine counts none of at least 3 clients that went away"
    )


def test_overload_is_named(seen: tuple[Stack, Sidecar]) -> None:
    """Requests wait, the KV cache is full, running ones are preempted: by canonical names."""
    stack, sidecar = seen
    with loaded(stack, clients=CLIENTS, rate=RATE, tokens=TOKENS):
        wait_for(
            lambda: (
                read(sidecar, canonical.WAITING.name) >= CLIENTS / 2
                and read(sidecar, canonical.KV_USAGE.name) >= 0.99
                and read(sidecar, canonical.PREEMPTIONS.name) > 0
            ),
            120,
            "overload in the sidecar's metrics",
        )
