"""Who ended a request, and what a stalled server's time counts as, on real servers and gateways."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, monotonic_ns

import pytest

from sidecar.probed.wire import WireProbe
from sidecar.signals import End, Leg, RequestTiming
from sidecar.testing import wait_for
from tests.e2e.serving import SLOW, Served, serving
from tests.e2e.tapping import Tapped, whole
from tests.probed.segments import token
from tests.probed.sockets import connected, listening

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]
MANY = ("uvloop-httptools", "nginx", "nginx-defaults", "caddy")
KINDS = ("asyncio-h11", "envoy", "haproxy", *(pytest.param(one, marks=SLOW) for one in MANY))
ENDLESS = b"POST /endless HTTP/1.1\r\nHost: rig\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
STALL_SECONDS = 0.3
# Reads a stream until it is killed; says when tokens have come.
CLIENT = f"""
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall({ENDLESS!r})
data = b""
while b"word7" not in data:
    data += link.recv(65536)
print("streaming", flush=True)
while link.recv(65536):
    pass
"""


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """One server of a test's own, which may be killed."""
    with serving(tmp_path, request.param) as found:
        yield found


@pytest.fixture
def tap(probe: WireProbe, served: Served) -> Iterator[Tapped]:
    """The tap on its legs."""
    found = Tapped(probe, served.legs)
    yield found
    found.stop()


def streaming(served: Served) -> subprocess.Popen[bytes]:
    """A client that has read some tokens of a stream without end, and goes on."""
    client = subprocess.Popen((sys.executable, "-c", CLIENT, str(served.port)), stdout=-1)
    assert client.stdout is not None
    assert client.stdout.readline() == b"streaming\n"
    return client


def ended(tap: Tapped, served: Served) -> dict[Leg, RequestTiming]:
    """The one request of each leg."""
    found = {leg: tap.wait(leg, 1, "/endless")[0] for leg in set(served.legs.values())}
    for one in whole(found.values(), tap.counted()):
        assert (one.status, one.streamed) == (200, True)
        assert one.token_events >= 7
        assert one.events - one.token_events in (0, 1)  # the last may have come by half
    return found


@pytest.mark.parametrize("served", KINDS, indirect=True)
def test_a_client_killed_in_mid_stream_is_gone(
    request: pytest.FixtureRequest, tap: Tapped, served: Served
) -> None:
    """On its own leg and, since every gateway here then leaves too, on the engine's."""
    client = streaming(served)
    client.kill()
    client.communicate()
    found = ended(tap, served)
    assert found.pop(Leg.DOWNSTREAM).end is End.CLIENT_GONE
    # Its engine's leg ends by a close: see test_a_client_that_leaves_a_stream_without_length.
    by_default = request.node.callspec.params["served"] == "nginx-defaults"
    possible = {End.CLIENT_GONE, End.COMPLETE} if by_default else {End.CLIENT_GONE}
    assert {one.end for one in found.values()} <= possible


def test_a_client_that_leaves_a_stream_without_length(probe: WireProbe) -> None:
    """A client closes, and a server that hears of it closes too, without another byte: gone."""
    with listening() as listener, connected(listener) as pair:
        tap = Tapped(probe, {pair.port: Leg.UPSTREAM})
        try:
            pair.ask(b"GET /endless HTTP/1.0\r\n\r\n")
            pair.answer(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + token())
            pair.client.close()
            assert pair.server.recv(1) == b""
            pair.server.close()
            (one,) = tap.wait(Leg.UPSTREAM)
        finally:
            tap.stop()
    assert one.end is End.CLIENT_GONE


@pytest.mark.parametrize("served", KINDS, indirect=True)
def test_an_engine_killed_in_mid_stream_has_closed(
    request: pytest.FixtureRequest, tap: Tapped, served: Served
) -> None:
    """On the engine's leg, and the gateway closes the client's in its turn.

    Surprise: towards an engine nginx by default speaks HTTP/1.0, where a stream ends by a close, so
    that a crash looks like its end to nginx, its client and the tap.
    """
    client = streaming(served)
    served.engine.send(signal.SIGKILL)
    client.communicate(timeout=20)
    assert client.returncode in (0, 1)  # an end of file or a reset, which it does not catch
    by_default = request.node.callspec.params["served"] == "nginx-defaults"
    expected = End.COMPLETE if by_default else End.SERVER_CLOSED
    assert {one.end for one in ended(tap, served).values()} == {expected}


@pytest.mark.parametrize("served", ["asyncio-h11", "envoy"], indirect=True)
def test_a_stalled_server_s_time_is_in_ttft(tap: Tapped, served: Served) -> None:
    """An engine that does not read: the request waits in its socket, and that is in its TTFT."""
    served.engine.send(signal.SIGSTOP)
    request = ENDLESS.replace(b"/endless", b"/lump")
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as link:
        link.sendall(request)
        sent = monotonic()
        wait_for(lambda: waiting(tap, served) > STALL_SECONDS, 10, "an old open request")
        until = monotonic()
        served.engine.send(signal.SIGCONT)
        while b"[DONE]" not in link.recv(1 << 16):
            continue
    for leg in set(served.legs.values()):
        (one,) = tap.wait(leg, 1, "/lump")
        stalled = (until - sent) if leg is Leg.DOWNSTREAM else STALL_SECONDS
        assert one.ttft_seconds is not None
        assert one.ttft_seconds >= stalled
        assert one.end is End.COMPLETE


def waiting(tap: Tapped, served: Served) -> float:
    """For how many seconds the engine's leg has an open request; 0 when there is none."""
    opened = tap.probe.sweep(0, 2**63, 0).of(served.engine_port)
    return (monotonic_ns() - opened.oldest_ns) / 1e9 if opened.count else 0.0


@pytest.mark.parametrize("served", ["asyncio-h11"], indirect=True)
def test_a_frozen_server_whose_client_gives_up(tap: Tapped, served: Served) -> None:
    """A client that leaves before any answer is gone, with no status and no TTFT."""
    served.engine.send(signal.SIGSTOP)
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as link:
        link.sendall(ENDLESS)
        wait_for(lambda: tap.open() == 1, 10, "an open request")
    # Its FIN alone says only that it sends no more: the server's answer to it is what ends it.
    served.engine.send(signal.SIGCONT)
    (one,) = tap.wait(Leg.DOWNSTREAM, 1, "/endless")
    assert one.end is End.CLIENT_GONE
