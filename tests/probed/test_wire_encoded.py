"""Bodies that cannot be read, and messages that have none: their times and ends are right."""

from __future__ import annotations

import gzip

import pytest

from sidecar.signals import End
from tests.probed import reference
from tests.probed.segments import DONE, HEAD, LAST, POST, Tap, chunk, token

pytestmark = pytest.mark.ebpf
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
STREAM = gzip.compress(token() * 97 + DONE, mtime=0) + b"\n\ndata: {}\n\n0\r\n\r\n" + token()


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"zstd", b"deflate"])
@pytest.mark.parametrize("size", [1, 61, 2999])
def test_encoded_stream(tap: Tap, encoding: bytes, size: int) -> None:
    """Of an encoded stream the first byte, the bytes and the end are known and nothing is counted,
    whatever its bytes look like; the next answer is read.
    """
    client, server = tap.connect()
    client.send(POST)
    head = HEAD[:-2] + b"content-encoding: " + encoding + b"\r\n\r\n"
    server.send(head)
    server.send(chunk(STREAM), size=size)
    assert tap.records() == []
    server.send(LAST)
    client.send(POST)
    server.send(HEAD + chunk(token()) + LAST)
    blind, plain = tap.records()
    assert (blind.streamed, blind.encoded, blind.end) == (True, True, End.COMPLETE)
    assert (blind.events, blind.token_events, blind.unclassified) == (0, 0, 0)
    assert (blind.ttft_seconds, blind.last_token_seconds, blind.gaps) == (None, None, ())
    assert blind.response_bytes == len(head + chunk(STREAM) + LAST)
    assert blind.ttfb_seconds is not None
    assert blind.ttfb_seconds < blind.seconds
    assert blind.response_key is None
    assert (plain.encoded, plain.token_events) == (False, 1)
    assert tap.counted().events == 1


@pytest.mark.parametrize("how", ["length", "close", "client"])
def test_ends_of_encoded_streams(tap: Tap, how: str) -> None:
    """An encoded stream ends at its length, with the server's close, or when its client leaves."""
    client, server = tap.connect()
    client.send(POST)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
    length = b"content-length: %d\r\n" % len(STREAM) if how == "length" else b""
    server.send(head + length + b"\r\n" + STREAM)
    if how == "close":
        server.fin()
    elif how == "client":
        client.reset()
    record = tap.only()
    assert record.end is (End.CLIENT_GONE if how == "client" else End.COMPLETE)
    assert (record.events, record.encoded) == (0, True)


def test_expect_continue(tap: Tap) -> None:
    """A body that waits for 100 Continue belongs to its request: one record, with its key."""
    client, server = tap.connect()
    body = b"x" * 1009
    client.send(b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1009\r\n\r\n")
    server.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    client.send(body)
    server.send(OK)
    record = tap.only()
    assert (record.status, record.body_key) == (200, reference.body_key(body))
    assert record.resynced is False


@pytest.mark.parametrize("framing", [b"content-length: 9\r\n", b"transfer-encoding: chunked\r\n"])
def test_head_then_get(tap: Tap, framing: bytes) -> None:
    """The answer to HEAD has no body, whatever framing it tells; the next one has."""
    client, server = tap.connect()
    client.send(b"HEAD / HTTP/1.1\r\n\r\n")
    server.send(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n")
    client.send(POST)
    server.send(HEAD + chunk(token()) + LAST)
    assert [(r.method, r.token_events, r.end) for r in tap.records()] == [
        ("HEAD", 0, End.COMPLETE),
        ("POST", 1, End.COMPLETE),
    ]


def test_trailers(tap: Tap) -> None:
    """Trailers end a message with their blank line only, and are no head of the next one."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()) + b"0\r\ncontent-length: 5\r\nx-request-id: late\r\n")
    assert tap.records() == []
    server.send(b"\r\n")
    client.send(POST)
    server.send(OK)
    first, second = tap.records()
    assert (first.end, first.request_id, first.token_events) == (End.COMPLETE, None, 1)
    assert (second.end, tap.counted().resyncs) == (End.COMPLETE, 0)
