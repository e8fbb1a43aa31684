"""Requests and responses: heads, framing, ends."""

from __future__ import annotations

import pytest

from sidecar.signals import End
from tests.probed.segments import DONE, HEAD, LAST, PORT, POST, Tap, chunk, token

pytestmark = pytest.mark.ebpf
TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_plain_request(tap: Tap) -> None:
    """A JSON answer with a length is complete at its last byte and has no token times."""
    client, server = tap.connect()
    client.send(POST)
    server.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{")
    assert tap.records() == []
    server.send(b'"a":1}')
    record = tap.only()
    assert (record.method, record.path, record.status) == ("POST", "/v1/chat/completions", 200)
    assert (record.end, record.streamed, record.ttft_seconds) == (End.COMPLETE, False, None)
    assert (record.request_bytes, record.server) == (len(POST), "192.0.2.1:18080")
    assert record.ttfb_seconds is not None
    assert record.ttfb_seconds <= record.seconds


def test_headers(tap: Tap) -> None:
    """Trace and request ids are found whatever the case of their names; nothing else is kept."""
    client, server = tap.connect()
    client.send(
        b"GET /models?api_key=secret HTTP/1.1\r\nAuthorization: Bearer secret\r\n"
        b"TraceParent:00-"
        + TRACE.encode()
        + b"-b7ad6b7169203331-01\r\nX-REQUEST-ID: \tr-1 \r\n\r\n"
    )
    server.send(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
    record = tap.only()
    assert (record.trace_id, record.request_id, record.path) == (TRACE, "r-1", "/models")
    assert (record.status, record.end) == (404, End.COMPLETE)


def test_id_of_the_response(tap: Tap) -> None:
    """The response's x-request-id is taken only where the request had none."""
    for sent, expected in ((b"x-request-id: mine\r\n", "mine"), (b"", "theirs")):
        client, server = tap.connect()
        client.send(b"GET / HTTP/1.1\r\n" + sent + b"\r\n")
        server.send(b"HTTP/1.1 200 OK\r\nx-request-id: theirs\r\ncontent-length: 0\r\n\r\n")
        assert tap.only().request_id == expected


def test_long_and_dirty_path(tap: Tap) -> None:
    """A path is cut at 63 bytes and holds printable ASCII only."""
    client, server = tap.connect()
    client.send(b"GET /\xff\x01" + b"x" * 90 + b" HTTP/1.1\r\n\r\n")
    server.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert tap.only().path == "/??" + "x" * 60


def test_nothing_left_of_the_last_request(tap: Tap) -> None:
    """On a kept connection a request does not inherit ids, counts or flags of the one before."""
    client, server = tap.connect()
    client.send(b"GET /long/path HTTP/1.1\r\nx-request-id: first\r\n\r\n")
    server.send(HEAD + chunk(token()) + LAST)
    client.send(b"GET / HTTP/1.1\r\n\r\n")
    server.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    first, second = tap.records()
    assert (first.request_id, first.events, first.streamed) == ("first", 1, True)
    assert (second.request_id, second.events, second.streamed) == (None, 0, False)
    assert (second.path, second.gaps, second.ttft_seconds) == ("/", (), None)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 997])
def test_any_split(tap: Tap, size: int) -> None:
    """However the bytes fall into packets, the same request is seen."""
    client, server = tap.connect()
    client.send(POST, size=size)
    body = b"".join(chunk(part) for part in (token(), b": ping\n\n", token("b"), DONE)) + LAST
    server.send(HEAD + body, size=size)
    record = tap.only()
    assert (record.path, record.status, record.end) == ("/v1/chat/completions", 200, End.COMPLETE)
    assert (record.events, record.token_events) == (2, 2)
    assert (record.request_bytes, record.response_bytes) == (len(POST), len(HEAD + body))
    assert tap.counted().resyncs == 0


def test_informational_responses(tap: Tap) -> None:
    """100 and 103 are skipped: status and first byte are the final response's."""
    client, server = tap.connect()
    client.send(POST)
    server.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
    server.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    record = tap.only()
    assert record.status == 200
    assert record.ttfb_seconds is not None
    assert record.ttfb_seconds > 0


@pytest.mark.parametrize(
    ("request_line", "status_line"),
    [
        (b"HEAD / HTTP/1.1", b"200 OK"),
        (b"GET / HTTP/1.1", b"204 No"),
        (b"GET / HTTP/1.1", b"304 N"),
    ],
)
def test_no_body(tap: Tap, request_line: bytes, status_line: bytes) -> None:
    """HEAD, 204 and 304 have no body, whatever their headers say."""
    client, server = tap.connect()
    for _ in range(2):
        client.send(request_line + b"\r\n\r\n")
        server.send(b"HTTP/1.1 " + status_line + b"\r\ncontent-length: 9\r\n\r\n")
    assert [record.end for record in tap.records()] == [End.COMPLETE] * 2


def test_chunked_request_and_extensions(tap: Tap) -> None:
    """Chunked bodies of both directions are followed: extensions, trailers, upper-case sizes."""
    client, server = tap.connect()
    for _ in range(2):
        client.send(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1A;x=y\r\n" + b"z" * 26)
        client.send(b"\r\n0\r\nt: 1\r\n\r\n")
        server.send(HEAD + b"%X ;a\r\n" % len(token()) + token() + b"\r\n0;b\r\nc: d\r\n\r\n")
    assert [record.token_events for record in tap.records()] == [1, 1]
    assert tap.counted().resyncs == 0


def test_split_terminator(tap: Tap) -> None:
    """llama.cpp sends the last chunk in two writes; the request ends with the second."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()) + b"0\r\n")
    assert tap.records() == []
    server.send(b"\r\n")
    assert tap.only().end is End.COMPLETE


def test_until_close(tap: Tap) -> None:
    """Without a length the server's FIN completes the response."""
    client, server = tap.connect()
    client.send(POST)
    server.send(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + token() + token())
    server.fin()
    record = tap.only()
    assert (record.end, record.token_events) == (End.COMPLETE, 2)


def test_body_ends_at_length(tap: Tap) -> None:
    """A stream with a length ends there, and its events are counted."""
    client, server = tap.connect()
    client.send(POST)
    body = token() + DONE
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: text/event-stream\r\n\r\n"
    server.send(head % len(body) + body)
    assert tap.only().token_events == 1


def test_gzip(tap: Tap) -> None:
    """A content encoding hides the events: said so, not counted as none."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD[:-2] + b"content-encoding: gzip\r\n\r\n" + chunk(token()) + LAST)
    record = tap.only()
    assert (record.encoded, record.streamed, record.events) == (True, True, 0)
    client.send(POST)
    server.send(HEAD[:-2] + b"content-encoding: Identity\r\n\r\n" + chunk(token()) + LAST)
    record = tap.only()
    assert (record.encoded, record.events) == (False, 1)


def test_pipelining(tap: Tap) -> None:
    """Requests sent ahead are counted and answered in turn; their heads are not kept."""
    client, server = tap.connect()
    client.send(POST + POST + b"GET /next HTTP/1.1\r\n\r\n")
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    server.send(answer + answer + answer)
    first, second, third = tap.records()
    assert (first.path, first.resynced) == ("/v1/chat/completions", False)
    assert [(r.method, r.status, r.end) for r in (second, third)] == [("", 200, End.COMPLETE)] * 2
    assert (second.resynced, tap.counted().pipelined, tap.counted().requests) == (True, 2, 3)
    assert tap.probe.sweep(2**62, 2**62, 1).of(PORT).count == 0


def test_early_answer(tap: Tap) -> None:
    """An answer before the whole request came ends it; the rest of the body is no new request."""
    client, server = tap.connect()
    client.send(b"POST / HTTP/1.1\r\ncontent-length: 999\r\n\r\nGET ")
    server.send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
    client.send(b"x" * 995 + b"GET /second HTTP/1.1\r\n\r\n")
    server.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert [(r.status, r.path) for r in tap.records()] == [(413, "/"), (200, "/second")]


def test_upgrade(tap: Tap) -> None:
    """101 ends the HTTP of a connection; what follows is not looked at and not garbage."""
    client, server = tap.connect()
    client.send(b"GET /ws HTTP/1.1\r\nupgrade: websocket\r\n\r\n")
    server.send(b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05hello")
    client.send(b"\x81\x85abcd")
    record = tap.only()
    assert (record.status, record.end) == (101, End.COMPLETE)
    assert tap.counted().not_http == 0


@pytest.mark.parametrize(
    ("first", "counter"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00", "blind_tls"),
        (b"\x17\x03\x03\x00\x20", "blind_tls"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "blind_http2"),
        (b"SSH-2.0-OpenSSH\r\n", "not_http"),
        (b"\x00\x01\x02", "not_http"),
        (b"GET /\r\n", "not_http"),
        (b"GET / HTTP/3.0\r\n", "not_http"),
        (b"GET / SPDY/1.1\r\n", "not_http"),
    ],
)
def test_blind(tap: Tap, first: bytes, counter: str) -> None:
    """What is no HTTP/1.x is counted by kind, once a connection, and then left alone."""
    client, _server = tap.connect()
    client.send(first, copies=2)
    client.send(POST, copies=2)
    assert tap.records() == []
    counted = tap.counted()
    assert getattr(counted, counter) == 1
    assert counted.blind_tls + counted.blind_http2 + counted.not_http == 1


def test_garbage_answer(tap: Tap) -> None:
    """A request answered with something else than HTTP is lost, and counted."""
    client, server = tap.connect()
    client.send(POST)
    server.send(b"lol")
    assert (tap.only().end, tap.counted().not_http) == (End.LOST, 1)
