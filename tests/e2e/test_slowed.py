"""A stopped and a slowed engine, from the wire to a real Alertmanager and back."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.alertmanager import Running, binary
from rig.gateway import Absent
from rig.gpu.node import CONTEXT, KERNEL, MEMORY
from rig.meter import scrape, values
from rig.ports import free_ports
from rig.sidecar import Sidecar
from rig.stack import ENGINE, Plan, Stack
from sidecar.detect.rate import OUT_OF_BAND
from sidecar.detect.streams import STUCK
from sidecar.testing import wait_for

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Running]:
    """One for each test; skips, with the reason, where it is absent."""
    try:
        binary()
    except Absent as absent:
        pytest.skip(str(absent))
    one = Running(tmp_path / "alertmanager", *free_ports([0]))
    one.start()
    yield one
    one.stop()


@pytest.fixture(params=[(1.0, 60)], ids=[""])
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    """One engine on stand-in GPUs behind Envoy, under an even load: requests a second, tokens."""
    rate, tokens = request.param
    gateway, admin, engine = free_ports([0, 0, 0])
    plan = Plan(
        engines=1,
        gpu=True,
        rate=rate,
        tokens=tokens,
        folder=tmp_path / "rig",
        gateway_port=gateway,
        admin_port=admin,
        engine_port=engine,
    )
    try:
        with Stack(plan) as found:
            yield found
    except Absent as absent:
        pytest.skip(str(absent))


def sending(alertmanager: Running, **settings: object) -> dict[str, str]:
    """Settings of a sidecar that tells this Alertmanager."""
    notify = {"alertmanagers": [{"url": f"http://127.0.0.1:{alertmanager.port}"}]}
    found = {"notify": notify, **settings}
    return {f"MODELPROBE_{key.upper()}": json.dumps(value) for key, value in found.items()}


def active(alertmanager: Running, rule: str) -> int:
    """How many alerts of a rule are active there now."""
    return sum(alert["status"]["state"] == "active" for alert in alertmanager.alerts(rule))


# Several streams at once: one that has not begun when the engine stops is quiet for a minute first.
@pytest.mark.parametrize("stack", [(3.0, 200)], indirect=True, ids=[""])
@pytest.mark.timeout(240)
def test_a_stopped_engine_is_paged_and_resolves(stack: Stack, alertmanager: Running) -> None:
    """Streams that stand still are an alert within seconds; going on resolves it."""
    sidecar = Sidecar(stack, *free_ports([0]), settings=sending(alertmanager))
    sidecar.start()
    try:
        sidecar.wait_seeing()
        wait_for(lambda: flowing(sidecar), 60, "tokens")
        front = stack.gpu_fronts[f"{ENGINE}0"]
        os.kill(front, signal.SIGSTOP)
        try:
            wait_for(lambda: active(alertmanager, STUCK.name), 90, "the alert")
        finally:
            os.kill(front, signal.SIGCONT)
        wait_for(lambda: not active(alertmanager, STUCK.name), 60, "its resolution")
    finally:
        sidecar.stop()


def flowing(sidecar: Sidecar) -> bool:
    """Whether several streams are open, and tokens have come, as the wire sees it."""
    windows = (sidecar.state() or {}).get("windows", {}).get("upstream", {})
    return (windows.get("open_requests") or 0) >= 3 and rate(sidecar, least=100) > 0


def rate(sidecar: Sidecar, least: int = 1_000) -> float:
    """Tokens per second of one sequence since the sidecar's start, by the wire; 0 of few gaps."""
    found = values(scrape(f"{sidecar.url}/metrics"))
    name, upstream = "modelprobe_wire_itl_seconds", ("leg", "upstream")
    gaps, seconds = (
        sum(v for (n, labels), v in found.items() if n == f"{name}_{end}" and upstream in labels)
        for end in ("count", "sum")
    )
    return gaps / seconds if gaps >= least else 0.0


def slow(stack: Stack, times: float) -> None:
    """Makes each kernel take so many times as long, in the running engine."""
    stack.node.configuration().update(
        {
            "devices": 2,
            "memory.total": MEMORY,
            "context_memory": CONTEXT,
            "kernel.seconds": KERNEL * times,
        }
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_slowed_engine_is_out_of_its_band_and_comes_back(
    stack: Stack, alertmanager: Running
) -> None:
    """Three minutes below the calibrated band are an alert; the old speed resolves it."""
    scout = Sidecar(stack, *free_ports([0]))
    scout.start()
    try:
        mean = wait_for(lambda: rate(scout), 120, "a thousand gaps")
    finally:
        scout.stop()
    level = {"mean": mean, "sigma": 0.12 * mean}
    sidecar = Sidecar(
        stack, *free_ports([0]), settings=sending(alertmanager, rate={"levels": [level]})
    )
    sidecar.start()
    try:
        sidecar.wait_seeing()
        slow(stack, 60)
        wait_for(lambda: active(alertmanager, OUT_OF_BAND.name), 330, "the alert")
        (alert,) = alertmanager.alerts(OUT_OF_BAND.name)
        assert "below its band" in alert["annotations"]["summary"]
        slow(stack, 1)
        wait_for(lambda: not active(alertmanager, OUT_OF_BAND.name), 240, "its resolution")
    finally:
        sidecar.stop()
