"""What real servers say besides streams of one event a packet, and what the tap makes of it."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import pytest

from rig.scripted import EVENTS, FAILS_AFTER, PLAIN, TOKENS
from sidecar.probed.wire import WireProbe
from sidecar.signals import End, Leg, RequestTiming
from tests.e2e.exchanges import PATH, Load, ask, request, spoken, trace_id
from tests.e2e.serving import SLOW, Served, serving
from tests.e2e.tapping import Tapped, whole

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]
MANY = ("uvloop-httptools", "haproxy", "nginx", "nginx-defaults", "caddy")
KINDS = ("asyncio-h11", "envoy", *(pytest.param(one, marks=SLOW) for one in MANY))
CLOSE = b"Host: rig\r\nConnection: close\r\n\r\n"
Facts = tuple[str, str, int | None, End, int, int, bool, bool]


@pytest.fixture(scope="module", params=KINDS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Each server for all of these tests."""
    with serving(tmp_path_factory.mktemp(str(request.param)), request.param) as found:
        yield found


@pytest.fixture
def tap(probe: WireProbe, served: Served) -> Iterator[Tapped]:
    """The tap on its legs; nothing may be seen that no test has asked for."""
    found = Tapped(probe, served.legs)
    yield found
    found.stop()
    assert found.counted().lost_records == 0


def facts(one: RequestTiming) -> Facts:
    """What must be the same on both legs."""
    counts = one.events, one.token_events
    return (one.method, one.path, one.status, one.end, *counts, one.streamed, one.encoded)


def both(tap: Tapped, served: Served, expected: list[Facts]) -> None:
    """The same requests on each leg that there is, in order of their begin."""
    for leg in set(served.legs.values()):
        found = sorted(tap.wait(leg, len(expected)), key=lambda one: one.at)
        assert len(whole(found, tap.counted())) == len(expected)
        assert [facts(one) for one in found] == expected


@pytest.mark.parametrize(
    ("path", "events", "tokens", "streamed", "encoded", "end"),
    [
        ("/plain", 0, 0, False, False, End.COMPLETE),
        ("/chunked", 0, 0, False, False, End.COMPLETE),
        ("/bytes", 7, 7, True, False, End.COMPLETE),
        ("/lump", EVENTS, TOKENS, True, False, End.COMPLETE),
        ("/gzip", 0, 0, True, True, End.COMPLETE),
        ("/error", FAILS_AFTER + 1, FAILS_AFTER, True, False, End.ERROR_EVENT),
    ],
)
def test_shape(
    tap: Tapped,
    served: Served,
    path: str,
    events: int,
    tokens: int,
    streamed: bool,
    encoded: bool,
    end: End,
) -> None:
    """Whole answers, answers byte by byte and in one lump, compressed ones (blind: no events,
    named encoded), and an error event in a stream of status 200.
    """
    status, body = ask(served.port, "POST", path, b"{}")
    assert (status, bool(body)) == (200, True)
    both(tap, served, [("POST", path, 200, end, events, tokens, streamed, encoded)])


def test_a_chat_completion_that_is_not_streamed(tap: Tapped, served: Served) -> None:
    """One JSON document: no events, no token, no TTFT; its size is counted."""
    assert ask(served.port, "POST", PATH, b'{"stream": false}') == (200, PLAIN)
    both(tap, served, [("POST", PATH, 200, End.COMPLETE, 0, 0, False, False)])
    (one,) = tap.seen(Leg.DOWNSTREAM)
    assert (one.ttft_seconds, one.last_token_seconds, one.gaps) == (None, None, ())
    assert one.response_bytes > len(PLAIN)
    assert one.ttfb_seconds is not None


@pytest.mark.parametrize(
    ("method", "path", "status"), [("HEAD", "/plain", 200), ("GET", "/nothing", 204)]
)
def test_an_answer_without_a_body(
    tap: Tapped, served: Served, method: str, path: str, status: int
) -> None:
    """HEAD, whose length is of a body that does not come, and 204; the connection goes on."""
    first = f"{method} {path} HTTP/1.1\r\nHost: rig\r\n\r\n".encode()
    said = spoken(served.port, first, b"GET /plain HTTP/1.1\r\n" + CLOSE, until=b"\r\n\r\n")
    assert said.endswith(PLAIN)
    expected = [(method, path, status), ("GET", "/plain", 200)]
    both(tap, served, [(*one, End.COMPLETE, 0, 0, False, False) for one in expected])


def test_an_interim_answer_is_not_the_answer(tap: Tapped, served: Served) -> None:
    """100 Continue comes before the body is sent; status and first byte are the final answer's."""
    body = b'{"stream": false}'
    head = f"POST {PATH} HTTP/1.1\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n"
    said = spoken(served.port, head.encode() + CLOSE, body, until=b" 100 ")
    assert said.startswith(b"HTTP/1.1 100 ")
    assert said.endswith(PLAIN)
    both(tap, served, [("POST", PATH, 200, End.COMPLETE, 0, 0, False, False)])


def test_a_request_byte_by_byte(tap: Tapped, served: Served) -> None:
    """Head and body in packets of one byte: method, path and trace context are read as ever."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request(Load(served.port, streamed=False), 16):
            link.sendall(bytes([byte]))
        assert link.recv(1)
        found = tap.wait(Leg.DOWNSTREAM, 1, PATH)
    assert [one.trace_id for one in found] == [trace_id(16)]
    both(tap, served, [("POST", PATH, 200, End.COMPLETE, 0, 0, False, False)])


def test_pipelined_requests(tap: Tapped, served: Served) -> None:
    """Seven in one packet are seven answers and seven records; only the first head is kept."""
    request = b"GET /plain HTTP/1.1\r\nHost: rig\r\n\r\n"
    said = spoken(served.port, request * 6 + b"GET /plain HTTP/1.1\r\n" + CLOSE)
    assert said.count(PLAIN) == 7
    found = tap.wait(Leg.DOWNSTREAM, 7)
    assert {(one.status, one.end) for one in found} == {(200, End.COMPLETE)}
    assert sorted(one.path for one in found) == [""] * 6 + ["/plain"]
    if len(served.legs) == 2:
        tap.wait(Leg.UPSTREAM, 7, "/plain")


def test_a_head_of_ten_megabytes(tap: Tapped, served: Served) -> None:
    """Whether a server refuses it or bears it, it is one request, and the next one is exact."""
    filling = b"x-filling: " + b"y" * 10_000_019 + b"\r\n"
    said = spoken(served.port, b"GET /plain HTTP/1.1\r\n" + filling + CLOSE)
    (one,) = tap.wait(Leg.DOWNSTREAM)
    assert one.method == "GET"
    assert one.end in (End.COMPLETE, End.SERVER_CLOSED)
    if said:
        assert one.status == int(said[9:12])
    next_is_exact(tap, served)


def test_random_bytes(tap: Tapped, served: Served) -> None:
    """Noise is no request: it is counted as what it is, and the next request is exact."""
    rng = random.Random(20011)
    for size in (1, 3, 5, 1009, 100_003):
        noise = b"\x00" + rng.randbytes(size)
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as link:
            link.sendall(noise)
            with suppress(OSError):  # it may have closed, or reset, already
                link.shutdown(socket.SHUT_WR)
                while link.recv(1 << 16):
                    continue
    next_is_exact(tap, served)
    assert len(tap.seen(Leg.DOWNSTREAM)) == 1
    assert tap.counted().not_http >= 5


def next_is_exact(tap: Tapped, served: Served) -> None:
    """One more stream in one lump has all of its events."""
    assert ask(served.port, "POST", "/lump", b"{}")[0] == 200
    (one,) = tap.wait(Leg.DOWNSTREAM, path="/lump")
    assert (one.events, one.token_events, one.end) == (EVENTS, TOKENS, End.COMPLETE)


def test_everything_over_one_connection(tap: Tapped, served: Served) -> None:
    """Answers of every framing follow each other on a kept connection, none taken for another."""
    paths = ("/plain", "/lump", "/nothing", "/chunked", "/gzip", "/bytes", "/missing") * 3
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as link:
        for path in paths:
            # Go's proxies unpack gzip for a client that does not say that it can.
            lines = f"GET {path} HTTP/1.1\r\nHost: rig\r\nAccept-Encoding: gzip\r\n\r\n"
            link.sendall(lines.encode())
            said = link.makefile("rb")
            status, length, chunked = _head(said)
            assert status == {"/nothing": 204, "/missing": 404}.get(path, 200)
            while chunked and (size := int(said.readline(), 16)):
                said.read(size + 2)
            said.read(length if not chunked else 2)
    found = sorted(tap.wait(Leg.DOWNSTREAM, len(paths)), key=lambda one: one.at)
    assert [one.path for one in found] == list(paths)
    assert {one.end for one in found} == {End.COMPLETE}
    events = {"/lump": EVENTS, "/bytes": 7}
    assert [one.events for one in whole(found, tap.counted())] == [
        events.get(path, 0) for path in paths
    ]


def _head(said: BinaryIO) -> tuple[int, int, bool]:
    """Status, content length and whether it is chunked."""
    status = int(said.readline().split()[1])
    length, chunked = 0, False
    while line := said.readline().strip().lower():
        length = int(line[15:]) if line.startswith(b"content-length:") else length
        chunked = chunked or line.startswith(b"transfer-encoding: chunked")
    return status, length, chunked
