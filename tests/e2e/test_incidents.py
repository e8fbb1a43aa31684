"""Real incidents on the rig, each shown as what it is."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from rig.ports import free_ports
from rig.sidecar import Sidecar
from rig.stack import Plan, Stack
from sidecar.testing import wait_for

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]


@contextmanager
def observed(folder: Path, gateway: str = "envoy") -> Iterator[tuple[Stack, Sidecar]]:
    """A stack under load with a sidecar that sees it."""
    # Ports of its own: another test may run the demo on the usual ones at the same time.
    gateway_port, admin, engine, page = free_ports([0, 0, 0, 0])
    ports = {"gateway_port": gateway_port, "admin_port": admin, "engine_port": engine}
    stack = Stack(Plan(gateway=gateway, folder=folder, load=False, rate=3.0, **ports))
    sidecar = Sidecar(stack, page)
    try:
        sidecar.start()
        stack.start()
        sidecar.wait_seeing()
        stack.start_load()
        wait_for(lambda: window(sidecar, "downstream").get("requests", 0) >= 3, 30, "requests")
        yield stack, sidecar
    finally:
        stack.stop()
        sidecar.stop()


def window(sidecar: Sidecar, leg: str) -> dict[str, Any]:
    found: dict[str, Any] = (sidecar.state() or {}).get("windows", {}).get(leg, {})
    return found


def page(sidecar: Sidecar) -> str:
    with urlopen(sidecar.url, timeout=5) as answer:  # noqa: S310  # http on loopback
        text: str = answer.read().decode()
    return text


def collector(sidecar: Sidecar, name: str) -> tuple[str | None, str | None]:
    for one in (sidecar.state() or {}).get("collectors", []):
        if one["name"] == name:
            return one["state"], one["absence"]
    return None, None


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed")
def test_lumps_that_the_engine_cannot_see(tmp_path: Path) -> None:
    """Behind HAProxy the engine's leg is even while clients get tokens in lumps, and it says so."""
    with observed(tmp_path, "haproxy") as (_, sidecar):
        wait_for(lambda: window(sidecar, "downstream").get("requests", 0) >= 11, 30, "requests")
        client, engine = window(sidecar, "downstream"), window(sidecar, "upstream")
        assert client["itl_seconds"]["p50"] < 0.001 < engine["itl_seconds"]["p50"]
        assert client["itl_seconds"]["largest"] >= 0.15
        assert client["ttft_seconds"]["p50"] > engine["ttft_seconds"]["p50"]
        wait_for(lambda: said(sidecar, "lumps"), 20, "the sentence about lumps")
        assert "receive tokens in lumps" in page(sidecar)


def test_a_stopped_engine_a_stopped_gateway_and_a_stopped_probed(tmp_path: Path) -> None:
    """Each is named: the engine refuses, nobody listens for the gateway, probed is stopped."""
    with observed(tmp_path) as (stack, sidecar):
        engine = f"engine:{stack.engine_ports[0]}"
        stack.stop("engine-0")
        wait_for(lambda: collector(sidecar, engine) == ("blind", "refused"), 20, "engine blind")
        stack.restart("engine-0")
        wait_for(lambda: collector(sidecar, engine)[0] == "firing", 30, "engine back")

        stack.stop(stack.gateway_name)
        down = f"nobody listens on port {stack.gateway_port}"
        wait_for(lambda: said(sidecar, down), 20, "gateway down")

        probed = probed_pid(sidecar)
        os.kill(probed, signal.SIGSTOP)
        wait_for(lambda: collector(sidecar, "probes") == ("blind", "stopped"), 20, "stopped")
        assert collector(sidecar, "listeners")[0] == "firing"
        os.kill(probed, signal.SIGCONT)
        wait_for(lambda: collector(sidecar, "probes")[0] in ("attached", "firing"), 30, "back")

        os.kill(probed, signal.SIGKILL)
        wait_for(lambda: collector(sidecar, "probes")[0] == "blind", 20, "probed gone")
        assert collector(sidecar, "listeners")[0] == "firing"


def test_a_frozen_engine_times_out_and_its_requests_stay_open(tmp_path: Path) -> None:
    """SIGSTOP of an engine: its metrics time out, its requests are open and age."""
    with observed(tmp_path) as (stack, sidecar):
        engine = f"engine:{stack.engine_ports[0]}"
        stack.freeze("engine-0")
        wait_for(lambda: collector(sidecar, engine) == ("blind", "timeout"), 30, "timeout")
        wait_for(
            lambda: (window(sidecar, "upstream").get("oldest_open_seconds") or 0) > 5, 30, "age"
        )
        stack.thaw("engine-0")
        wait_for(lambda: collector(sidecar, engine)[0] == "firing", 30, "engine back")


def test_nothing_survives_the_sidecar(tmp_path: Path) -> None:
    """SIGKILL of the sidecar ends probed too, by the pipe that only the sidecar held."""
    with observed(tmp_path) as (_, sidecar):
        probed = probed_pid(sidecar)
        assert sidecar.pid is not None
        os.kill(sidecar.pid, signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{probed}").exists(), 10, "probed gone")


def said(sidecar: Sidecar, words: str) -> bool:
    return any(words in o["text"] for o in (sidecar.state() or {}).get("observations", []))


def probed_pid(sidecar: Sidecar) -> int:
    """The privileged child of a sidecar."""
    children = Path(f"/proc/{sidecar.pid}/task").glob("*/children")
    found = {int(child) for task in children for child in task.read_text().split()}
    [pid] = [p for p in found if b"sidecar.probed" in Path(f"/proc/{p}/cmdline").read_bytes()]
    return pid
