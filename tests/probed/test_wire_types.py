"""What an event stream says of itself: types of events, errors, and what only looks like them."""

from __future__ import annotations

import pytest

from sidecar.signals import End, RequestTiming
from tests.probed.segments import HEAD, LAST, POST, Tap, chunk, token

pytestmark = pytest.mark.ebpf


def body(tap: Tap, *parts: bytes) -> RequestTiming:
    """One response whose body is made of these chunks, each in a packet of its own."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD)
    for part in parts:
        server.send(chunk(part))
    server.send(LAST)
    return tap.only()


@pytest.mark.parametrize(
    "again",
    [
        b'data: {"type":"response.output_text.done","text":"Hi"}\n\n',
        b'data: {"type":"response.content_part.done","part":{"type":"x","text":"Hi"}}\n\n',
        b'data: {"type":"response.completed","response":{"output":[{"text":"Hi"}]}}\n\n',
        b'data: {"type":"response.incomplete","response":{"output":[{"text":"Hi"}]}}\n\n',
        b'event: response.output_text.done\ndata: {"text":"Hi","type":"x.done"}\n\n',
        b'event:response.completed\r\ndata: {"text":"Hi"}\r\n\r\n',
    ],
)
def test_text_told_again(tap: Tap, again: bytes) -> None:
    """Events of the Responses API that repeat the whole text are events but no token events; the
    next event is looked at again.
    """
    delta = b'data: {"type":"response.output_text.delta","delta":"Hi"}\n\n'
    record = body(tap, delta, again, delta)
    assert (record.events, record.token_events, record.end) == (3, 2, End.COMPLETE)


@pytest.mark.parametrize(
    "data",
    [
        b'data: {"choices":[{"delta":{"type":"tool.done","content":"x"}}]}\n\n',
        b'data: {"choices":[{"delta":{"type":"error","content":"x"}}]}\n\n',
        b'event: done\ndata: {"content":"x"}\n\n',
        b'events: x.done\ndata: {"content":"x"}\n\n',
        b'event: x.done\n\ndata: {"content":"x"}\n\n',
        b'data: {"error":0,"content":"x"}\n\n',
        b'data: {"error":[],"content":"x"}\n\n',
        b'data: {"error":{ },"content":"x"}\n\n',
        b'data: {"error":false,"content":"x"}\n\n',
        b'data: {"error":null,"content":"x"}\n\n',
        b'event: errors\ndata: {"content":"x"}\n\n',
    ],
)
def test_still_a_token(tap: Tap, data: bytes) -> None:
    """Types of parts, names that only look alike and errors that are none hide no text."""
    record = body(tap, data)
    assert (record.token_events, record.end) == (1, End.COMPLETE)


@pytest.mark.parametrize(
    ("data", "tokens"),
    [
        (b'event: error\ndata: {"message":"boom"}\n\n', 0),
        (b'event:error\r\ndata: {"message":"boom"}\r\n\r\n', 0),
        (b'data: {"choices":[{"delta":{"content":"x"}}],"error":{"message":"m"}}\n\n', 1),
        (b'data: {"content":"\\\\\\"","error":"m"}\n\n', 1),
        (b'data: {"error":["m"]}\n\n', 0),
        (b'data: {"error": { "code":5}}\n\n', 0),
        (b'data: {"error":5}\n\n', 0),
    ],
)
def test_error(tap: Tap, data: bytes, tokens: int) -> None:
    """An error is seen by the event's name, as object or list, and behind text."""
    record = body(tap, data)
    assert (record.events, record.token_events, record.end) == (1, tokens, End.ERROR_EVENT)


def test_byte_order_mark(tap: Tap) -> None:
    """A mark before the first line hides no event; one before a later line makes it no field."""
    mark = b"\xef\xbb\xbf"
    assert body(tap, mark + token() + mark + token()).token_events == 1
    assert body(tap, mark[:1], mark[1:] + token()).token_events == 1


def test_half_an_event_before_a_miss(tap: Tap) -> None:
    """After missed bytes the rest of a line is not taken for the event before them."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + b'ff\r\ndata: {"content":')
    server.skip(11)
    server.send(b'"x"}\n\n' + token())
    server.send(b"\r\n" + LAST)
    record = tap.only()
    assert (record.events, record.token_events, record.resynced) == (2, 1, True)


def test_half_an_event_before_the_next_request(tap: Tap) -> None:
    """A stream that ends within a line leaves nothing of it to the next one."""
    client, server = tap.connect()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
    for part in (b'data: {"content":', b"event: x.done\ndata:", token()):
        client.send(POST)
        server.send(head % len(part) + part)
    counts = [(r.events, r.token_events) for r in tap.records()]
    assert counts == [(1, 0), (0, 0), (1, 1)]
