"""Requests over TLS, read in real processes: exact counts, roles, ends, what is not followed."""

from __future__ import annotations

import os
import signal
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sidecar.probed import wire_tls
from sidecar.probed.namespaces import network_of
from sidecar.probed.targets import By, Selector
from sidecar.signals import Absence, CollectorState, End, NoData, RequestTiming
from tests.probed import tls_rig
from tests.probed.tls_follower import Follower
from tests.probed.tls_rig import CLIENT, Certificate, ask, until

REQUESTS, EVENTS = 31, 37
PATH = f"/v1/{EVENTS}"

pytestmark = pytest.mark.ebpf


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """One for all tests."""
    return Certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def loaded() -> Iterator[Follower]:
    """The probe, loaded once."""
    made = Follower()
    yield made
    made.probe.close()


@pytest.fixture
def follower(loaded: Follower) -> Iterator[Follower]:
    """The probe, following nobody yet."""
    yield loaded
    loaded.forget()


def servers(timings: list[RequestTiming]) -> Counter[tuple[str, int, int]]:
    """How many requests by server, events and token events."""
    return Counter((t.server, t.events, t.token_events) for t in timings)


def test_server_counts(follower: Follower, certificate: Certificate) -> None:
    """Every request and event of a server with sockets, on a connection that is kept."""
    with tls_rig.serving(certificate) as (port, _):
        follower.follow({port})
        assert len(ask(port, PATH, REQUESTS)) == REQUESTS
        timings = follower.ended(REQUESTS)
    assert servers(timings) == {(f"127.0.0.1:{port}", EVENTS, EVENTS): REQUESTS}
    assert {(t.end, t.status, t.method, t.path) for t in timings} == {
        (End.COMPLETE, 200, "POST", PATH)
    }
    assert all(t.tls and t.streamed and not t.resynced for t in timings)


def test_uvicorn_counts(follower: Follower, certificate: Certificate) -> None:
    """A server on asyncio hides its socket behind memory buffers: its port is what it listens on,
    and its address is not known.
    """
    with tls_rig.uvicorn(certificate) as (port, _):
        follower.follow({port})
        ask(port, PATH, REQUESTS)
        timings = follower.ended(REQUESTS)
    assert servers(timings) == {(f"0.0.0.0:{port}", EVENTS, EVENTS): REQUESTS}


def test_gateway_counts(follower: Follower, certificate: Certificate, tmp_path: Path) -> None:
    """A gateway's worker is a server on one port and a client on the other; both are counted."""
    with (
        tls_rig.serving(certificate) as (upstream, _),
        tls_rig.nginx(certificate, tmp_path, upstream) as port,
    ):
        only = [Selector(By.PORT, str(port))]
        follower.follow_only({port, upstream}, selectors=only)
        ask(port, PATH, REQUESTS)
        timings = follower.ended(2 * REQUESTS)
    assert servers(timings) == {
        (f"127.0.0.1:{port}", EVENTS, EVENTS): REQUESTS,
        (f"127.0.0.1:{upstream}", EVENTS, EVENTS): REQUESTS,
    }


def test_client_counts(follower: Follower, certificate: Certificate) -> None:
    """A client is timed by the server's port that it is connected to."""
    with (
        tls_rig.serving(certificate) as (port, _),
        tls_rig.python(CLIENT, port, REQUESTS, PATH) as client,
    ):
        tls_rig.line(client)
        follower.follow_only({port}, client.pid)
        tls_rig.go_on(client)
        timings = follower.ended(REQUESTS)
    assert servers(timings) == {(f"127.0.0.1:{port}", EVENTS, EVENTS): REQUESTS}
    assert {t.request_id for t in timings} == {"abc"}


def test_both_sides_are_one_request(follower: Follower, certificate: Certificate) -> None:
    """Where client and server are both followed on one machine a request is one record."""
    with (
        tls_rig.serving(certificate) as (port, _),
        tls_rig.python(CLIENT, port, REQUESTS, PATH) as client,
    ):
        tls_rig.line(client)
        follower.follow({port}, client.pid)
        tls_rig.go_on(client)
        tls_rig.line(client)
        assert len(follower.ended(REQUESTS)) == REQUESTS


def test_other_ports_are_not_told(follower: Follower, certificate: Certificate) -> None:
    """A followed process's connections to a port that is not watched give no record."""
    with tls_rig.serving(certificate) as (port, _), tls_rig.serving(certificate) as (other, pid):
        follower.follow({port}, pid)
        ask(other, PATH, 3)
        ask(port, PATH, 2)
        assert servers(follower.ended(2)) == {(f"127.0.0.1:{port}", EVENTS, EVENTS): 2}


@pytest.mark.parametrize(("path", "events"), [("/bytes/7", 7), ("/lump/1009", 1009)])
def test_any_cut(follower: Follower, certificate: Certificate, path: str, events: int) -> None:
    """Events a byte a call, and a thousand in one call of several TLS records."""
    with tls_rig.serving(certificate) as (port, _):
        follower.follow({port})
        ask(port, path, 3)
        timings = follower.ended(3)
    assert servers(timings) == {(f"127.0.0.1:{port}", events, events): 3}


def test_request_in_pieces(follower: Follower, certificate: Certificate) -> None:
    """A request head a byte a record, from the connection's first byte on."""
    with tls_rig.serving(certificate) as (port, _):
        follower.follow({port})
        with tls_rig.connected(port) as link:
            for byte in b"GET /v1/5 HTTP/1.1\r\n\r\n":
                link.sendall(bytes([byte]))
            timings = follower.ended(1)
    assert (timings[0].path, timings[0].events, timings[0].end) == ("/v1/5", 5, End.COMPLETE)


def test_attached_late(follower: Follower, certificate: Certificate) -> None:
    """A connection that was there before the probe is taken up by the port that the process listens
    on, at the first request for which SSL_read was not called yet.
    """
    with tls_rig.serving(certificate) as (port, _), tls_rig.connected(port) as link:
        tls_rig.exchange(link, "/v1/2")
        follower.follow({port})
        tls_rig.exchange(link, "/v1/3")  # its read has begun before the probe
        tls_rig.exchange(link, "/v1/5")
        assert [t.events for t in follower.ended(1)] == [5]


def test_client_gone(follower: Follower, certificate: Certificate) -> None:
    """A client that goes in mid-stream, without a word of TLS, is told from a server that stops."""
    with tls_rig.serving(certificate) as (port, _):
        follower.follow({port})
        with tls_rig.connected(port) as link:
            link.sendall(b"GET /stall HTTP/1.1\r\n\r\n")
            assert link.recv(100)
        timings = follower.ended(1)
        ask(port, "/leave", 1)
        timings = follower.ended(2)
    assert [t.end for t in timings] == [End.CLIENT_GONE, End.SERVER_CLOSED]


def test_server_killed(follower: Follower, certificate: Certificate) -> None:
    """What a killed server left open ends within a second or two as closed by it."""
    with tls_rig.serving(certificate) as (port, pid):
        follower.follow({port})
        with tls_rig.connected(port) as link:
            link.sendall(b"GET /stall HTTP/1.1\r\n\r\n")
            assert link.recv(100)
            os.kill(pid, signal.SIGKILL)
            until(lambda: follower.second() and follower.timings)
    assert [t.end for t in follower.timings] == [End.SERVER_CLOSED]
    assert follower.coverage(pid).absence is Absence.CLOSED


def test_http2_is_named(follower: Follower, certificate: Certificate) -> None:
    """HTTP/2 within TLS is counted as what it is."""
    before = follower.counted("blind_http2")
    with tls_rig.serving(certificate) as (port, _):
        follower.follow({port})
        with tls_rig.connected(port) as link:
            link.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            until(lambda: follower.round() and follower.counted("blind_http2") == before + 1)


def test_other_protocols_are_named(follower: Follower, certificate: Certificate) -> None:
    """What is not HTTP is counted once a connection."""
    before = follower.counted("not_http")
    with tls_rig.serving(certificate) as (port, _):
        follower.follow({port})
        with tls_rig.connected(port) as link:
            link.sendall(b"\0\1\2\3" * 7)
            link.sendall(b"\0\1\2\3\n" * 11)
            until(lambda: follower.counted("not_http") == before + 1)


def test_firing(follower: Follower, certificate: Certificate) -> None:
    """A process is attached until its first byte over TLS, then firing."""
    with tls_rig.serving(certificate) as (port, pid):
        follower.follow({port})
        assert follower.coverage(pid).state is CollectorState.ATTACHED
        assert follower.coverage(pid).parts
        ask(port, PATH, 1)
        assert follower.coverage(pid).state is CollectorState.FIRING


def test_no_text_stays(follower: Follower, certificate: Certificate) -> None:
    """Of bodies, secrets and events nothing is left in the program's memory, even while the
    connection is open and after a half of a head.
    """
    canary = b"c4n4ry-of-a-secret"
    with tls_rig.serving(certificate) as (port, _):
        follower.follow({port})
        with tls_rig.connected(port) as link:
            head = (
                b"POST /v1/3?key=%s/3 HTTP/1.1\r\nauthorization: %s\r\ncontent-length: %d\r\n\r\n"
            )
            link.sendall(head % (canary, canary, len(canary)) + canary)
            assert follower.ended(1)[0].events == 3
            link.sendall(b"POST /v1/3 HTTP/1.1\r\ncookie: %s" % canary)
            maps = (follower.probe._sessions.sessions, follower.probe._tap._conns)
            until(lambda: follower.probe.opened([port]) is not None)
            texts = [bytes(v) for m in maps for _, v, n in m.batches(64) if n]
            assert texts
            assert not any(canary in text or b'"delta"' in text for text in texts)


def test_bcc_is_refused_by_name() -> None:
    """The loader that cannot take this probe says so, and what to use."""
    with pytest.raises(NoData, match="prebuilt") as caught:
        wire_tls.load("bcc", network_of())
    assert caught.value.absence is Absence.UNSUPPORTED


@pytest.mark.slow
def test_by_perf_events(certificate: Certificate) -> None:
    """On kernels without multi links perf events give the same counts."""
    follower = Follower(release="5.17.0")
    try:
        with tls_rig.serving(certificate) as (port, _):
            follower.follow({port})
            ask(port, PATH, 3)
            timings = follower.ended(3)
    finally:
        follower.probe.close()
    assert servers(timings) == {(f"127.0.0.1:{port}", EVENTS, EVENTS): 3}


def test_no_request_after_close(follower: Follower, certificate: Certificate) -> None:
    """A connection without a request gives no record, however it ends."""
    with tls_rig.serving(certificate) as (port, _):
        follower.follow({port})
        for how in (ssl.SSLSocket.unwrap, socket.socket.close):
            with tls_rig.connected(port) as link, suppress(ssl.SSLError):
                how(link)
        ask(port, PATH, 1)
        assert len(follower.ended(1)) == 1
