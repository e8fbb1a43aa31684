"""Heads as the standard allows them and as they should not be: what is read, what never leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.probed import loaders
from sidecar.probed.kernel import Map, possible_cpus
from sidecar.probed.wire import MAPS, PROGRAMS, WireProbe
from sidecar.signals import End
from tests.probed.segments import ACK, HEAD, LAST, PORT, POST, Tap, chunk, run_filter, token

pytestmark = pytest.mark.ebpf
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("lengths", "ends", "resyncs"),
    [
        (b"content-length: 2, 2\r\n", True, 0),
        (b"content-length: 2\r\ncontent-length:2\r\n", True, 0),
        (b"content-length:\r\n 2\r\n", True, 0),
        (b"content-length: 2, 3\r\n", False, 1),
        (b"content-length: 2\r\ncontent-length: 20\r\n", False, 1),
        (b"content-length: -2\r\n", False, 1),
        (b"content-length: 18446744073709551618\r\n", False, 0),
        (b"content-length: 99999999999999999999999\r\n", False, 0),
    ],
)
def test_lengths(tap: Tap, lengths: bytes, ends: bool, resyncs: int) -> None:
    """Equal lengths are one, unequal ones are not trusted, and none wraps around."""
    client, server = tap.connect()
    client.send(POST)
    server.send(b"HTTP/1.1 200 OK\r\n" + lengths + b"\r\nok")
    assert (len(tap.records()), tap.counted().resyncs) == (ends, resyncs)


def test_chunk_size_beyond_64_bits(tap: Tap) -> None:
    """A chunk size that would wrap around to a small one is not believed."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + b"10000000000000005\r\nhello\r\n" + LAST)
    record = tap.only()
    assert (record.resynced, tap.counted().resyncs) == (True, 1)


def test_first_of_each_id(tap: Tap) -> None:
    """Of ids that come twice the first counts, whole."""
    client, server = tap.connect()
    client.send(
        b"GET / HTTP/1.1\r\nx-request-id: aaaaaaaaaa\r\nx-request-id: bb\r\n"
        b"traceparent: " + TRACE + b"\r\ntraceparent: 00-1111\r\n\r\n"
    )
    server.send(OK)
    record = tap.only()
    assert (record.request_id, record.trace_id) == ("aaaaaaaaaa", TRACE[3:35].decode())


def test_folded_lines(tap: Tap) -> None:
    """A line that begins with a space goes on with the value before it and is no field."""
    client, server = tap.connect()
    client.send(b"POST / HTTP/1.1\r\nx-a: b\r\n content-length: 500\r\nx-request-id:\r\n\tab\r\n")
    client.send(b" cd\r\ncontent-length: 2\r\n\r\n{}")
    server.send(b"HTTP/1.1 200 OK\r\ncontent-type:\r\n text/event-stream\r\n")
    server.send(b"transfer-encoding:\r\n chunked\r\n\r\n" + chunk(token()) + LAST)
    client.send(POST)
    server.send(OK)
    first, second = tap.records()
    assert (first.request_id, first.token_events, first.end) == ("abcd", 1, End.COMPLETE)
    assert second.path == "/v1/chat/completions"


@pytest.mark.parametrize("leave", ["reset", "fin"])
def test_gone_after_an_interim_answer(tap: Tap, leave: str) -> None:
    """A client that leaves after a 1xx had no status and no first byte."""
    client, server = tap.connect()
    client.send(POST)
    server.send(b"HTTP/1.1 102 Processing\r\n\r\n")
    getattr(client, leave)()
    server.reset()
    record = tap.only()
    assert (record.status, record.ttfb_seconds, record.end) == (None, None, End.CLIENT_GONE)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"http://user:pw@host:80/v1/x?k=secret", "/v1/x"),
        (b"http://user:pw@host", "/"),
        (b"http://user:pw@host?a=/secret", ""),
        (b"HTTPS://h/", "/"),
        (b"*", "*"),
        (b"user:pw@host:443", ""),
        (b"secret", ""),
        (b"/a//b", "/a//b"),
    ],
)
def test_targets(tap: Tap, target: bytes, path: str) -> None:
    """Of a whole URL only the path is kept: never a user, a password or a host."""
    client, server = tap.connect()
    client.send(b"POST " + target + b" HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
    server.send(OK)
    assert tap.only().path == path


PROSE = [
    b"POST a secret HTTP/1.1\r\n",
    b"POST SECRET HTTP/1.1\r\n",
    b"GET /secret and more HTTP/1.1\r\n",
    b"GET /secret HTTP/1.1\n",
    b"GET /secret HTTP/1.1 is\r\n",
    b"GET http://secret/x HTTP/1.1\r\n",
    b"POST the letter\r\n\r\n",
    b"PUT /secret",
]


@pytest.mark.parametrize("prose", PROSE)
@pytest.mark.parametrize("late", [True, False])
def test_prose_is_no_request(tap: Tap, prose: bytes, late: bool) -> None:
    """In mid-stream a line of a prompt that begins like a request is none, and the next real one is
    seen: whether the tap came late or missed bytes.
    """
    client, server = tap.connect(opened=not late)
    if not late:
        client.send(POST)
        server.send(OK)
        client.skip(20)
    for _ in range(2):
        client.send(prose)
    assert tap.probe.sweep(2**62, 2**62, 1).of(PORT).count == 0
    client.skip(3)
    client.send(b"GET /next HTTP/1.1\r\n\r\n")
    server.send(OK)
    assert [r.path for r in tap.records()][not late :] == ["/next"]
    assert tap.counted().not_http == 0


def test_prose_in_line(tap: Tap) -> None:
    """The same behind a request that is still open: nothing waits behind it."""
    client, server = tap.connect()
    client.send(POST)
    client.skip(20)
    client.send(b"POST a secret HTTP/1.1\r\n")
    assert tap.probe.sweep(2**62, 2**62, 1).of(PORT).count == 1
    server.send(OK)
    assert (tap.only().end, tap.probe.sweep(2**62, 2**62, 1).of(PORT).count) == (End.COMPLETE, 0)


def test_no_head_stays_behind(prebuilt: WireProbe) -> None:
    """After a packet with a head nothing of it lies in the program's scratch memory."""
    assert prebuilt.program
    loaded = loaders.load("prebuilt", "wire", PROGRAMS, (*MAPS, "works"))
    try:
        Map(loaded.maps["ports"]).update(PORT.to_bytes(2, "little"), b"\1")
        tap = Tap(prebuilt)
        client, _ = tap.connect()
        request = b"GET / HTTP/1.1\r\nauthorization: Bearer secret\r\n\r\n"
        run_filter(loaded.programs["wire"], client.segment(b"", 2, client.seq - 1))
        run_filter(loaded.programs["wire"], client.segment(request, ACK))
        cpus = possible_cpus(Path("/sys/devices/system/cpu/possible").read_text())
        memory = Map(loaded.maps["works"], cpus).lookup(b"\0" * 4)
        assert memory
        assert any(memory)
        assert b"secret" not in memory
        assert b"Bearer" not in memory
    finally:
        loaded.close()
