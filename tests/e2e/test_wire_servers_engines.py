"""The tap on real engines and on LiteLLM: it has to have counted what the client was told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rig import litellm_proxy, vllm_engine
from rig.ports import free_ports
from rig.scripted import EVENTS, TOKENS
from sidecar.probed.wire import WireProbe
from sidecar.signals import End, Leg
from tests.e2e.exchanges import PATH, Load, exchanged
from tests.e2e.serving import Served, planned, running, scripted, serving
from tests.e2e.tapping import Tapped, exact, whole
from tests.probed.reference import count

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]


def every_request(probe: WireProbe, served: Served, load: Load) -> list[tuple[int, int]]:
    """Both legs hold what the client read; the different (events, token events) of its answers."""
    tap = Tapped(probe, served.legs)
    try:
        asked = exchanged(load)
        for leg in set(served.legs.values()):
            exact(tap, leg, asked)
        assert tap.counted().lost_records == 0
    finally:
        tap.stop()
    counts = [count(one.body) for one in asked]
    return sorted({(one.events, one.token_events) for one in counts})


@pytest.mark.parametrize("kind", ["llama.cpp", "envoy"])
def test_llama_cpp(probe: WireProbe, tmp_path: Path, kind: str) -> None:
    """101 requests, 7 at a time, to the engine itself and through Envoy: 31 tokens each.

    It closes a connection after each request, whatever it says, so the client has one for each.
    """
    with serving(tmp_path, kind, engine="llama.cpp") as served:
        load = Load(served.port, requests=101, concurrency=7, tokens=31, reuse=False)
        ((_, tokens),) = every_request(probe, served, load)
    assert tokens == 31


@pytest.mark.slow
@pytest.mark.vllm
@pytest.mark.timeout(400)
def test_vllm(probe: WireProbe, tmp_path: Path) -> None:
    """A real vLLM on CPUs: 53 requests, 5 at a time, 31 tokens each."""
    (port,) = free_ports([0])
    launch = planned(lambda: vllm_engine.plan(port, overload=False))
    with running(launch, tmp_path, vllm_engine.READY) as part:
        served = Served(port, port, part, part)
        load = Load(port, requests=53, concurrency=5, tokens=31)
        counts = every_request(probe, served, load)
    assert all(0 < tokens <= 31 for _, tokens in counts)


@pytest.mark.slow
@pytest.mark.litellm
@pytest.mark.timeout(400)
def test_litellm(probe: WireProbe, tmp_path: Path) -> None:
    """LiteLLM before the scripted engine: 101 requests on each leg, each exact by what that leg
    carried. It hands no trace context on, and makes events of its own out of the engine's.
    """
    port, admin, engine = free_ports([0, 0, 0])
    launch = planned(lambda: litellm_proxy.plan(tmp_path, port, admin, [engine]))
    with (
        running(scripted(engine), tmp_path) as behind,
        running(launch, tmp_path, litellm_proxy.READY) as part,
    ):
        served = Served(port, engine, part, behind)
        tap = Tapped(probe, served.legs)
        try:
            asked = exchanged(Load(port, requests=101, concurrency=11, key=launch.key or ""))
            exact(tap, Leg.DOWNSTREAM, asked)
            found = tap.wait(Leg.UPSTREAM, 101, PATH)
        finally:
            tap.stop()
    assert {count(one.body).token_events for one in asked} == {TOKENS}
    assert {one.trace_id for one in found} == {None}
    facts = {(one.events, one.token_events, one.end) for one in whole(found, tap.counted())}
    assert facts == {(EVENTS, TOKENS, End.COMPLETE)}
