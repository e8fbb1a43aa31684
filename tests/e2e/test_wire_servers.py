"""The tap on real servers and gateways whose content is known: every request, every event."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rig.scripted import DELAY, EVENTS, PAUSE, TOKENS
from sidecar.probed.wire import WireProbe
from sidecar.signals import RequestTiming
from tests.e2e.exchanges import PATH, Load, exchanged
from tests.e2e.serving import GATEWAYS, SCRIPTED, SLOW, Served, serving
from tests.e2e.tapping import Tapped, exact
from tests.probed.reference import count

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]
FEW = ("asyncio-h11", "uvloop-httptools", "envoy", "haproxy")
MANY = [one for one in (*SCRIPTED, *GATEWAYS) if one not in FEW]
KINDS = (*FEW, *(pytest.param(one, marks=SLOW) for one in MANY))


def paced(found: list[RequestTiming]) -> None:
    """The scripted delays are within TTFT, and between the arrival and the last token."""
    for one in found:
        assert one.ttft_seconds is not None
        assert one.last_token_seconds is not None
        assert one.ttft_seconds >= DELAY
        assert one.last_token_seconds >= DELAY + PAUSE * (TOKENS - 1)


def _seen(body: bytes) -> tuple[int, int, bool]:
    """What the client got: events, those with text, whether an error was among them."""
    found = count(body)
    return found.events, found.token_events, found.error


def every_request(probe: WireProbe, served: Served, load: Load) -> None:
    """Both legs of a load on the scripted content are exact."""
    tap = Tapped(probe, served.legs)
    try:
        asked = exchanged(load)
        assert {_seen(one.body) for one in asked} == {(EVENTS, TOKENS, False)}
        for leg in sorted(set(served.legs.values())):
            exact(tap, leg, asked)
            paced(tap.seen(leg, PATH))
        assert tap.counted().lost_records == 0
    finally:
        tap.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_and_event(probe: WireProbe, tmp_path: Path, kind: str) -> None:
    """101 requests, 11 at a time on kept connections: 53 events each, 47 with text, both legs."""
    with serving(tmp_path, kind) as served:
        every_request(probe, served, Load(served.port, requests=101, concurrency=11))


@SLOW
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [*SCRIPTED, *GATEWAYS])
def test_every_request_and_event_of_more(probe: WireProbe, tmp_path: Path, kind: str) -> None:
    """503 requests, 53 at a time, each on a connection of its own."""
    with serving(tmp_path, kind) as served:
        load = Load(served.port, requests=503, concurrency=53, reuse=False)
        every_request(probe, served, load)


@pytest.mark.parametrize("kind", ["asyncio-h11", pytest.param("envoy", marks=SLOW)])
def test_retransmissions_are_counted_once(probe: WireProbe, tmp_path: Path, kind: str) -> None:
    """A client that loses a packet of twenty: what is sent again is neither an event nor a gap."""
    with serving(tmp_path, kind) as served:
        before = retransmitted()
        load = Load(served.port, requests=31, concurrency=11, reuse=False, loss=0.05)
        every_request(probe, served, load)
        assert retransmitted() > before


def retransmitted() -> int:
    """The segments that this network has sent again (proc_pid_net(5), snmp)."""
    rows = Path("/proc/net/snmp").read_text().splitlines()
    names, numbers = (row.split() for row in rows if row.startswith("Tcp:"))
    return int(numbers[names.index("RetransSegs")])
