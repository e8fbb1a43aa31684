"""Events and token events of a stream, their times and gaps."""

from __future__ import annotations

import json

import pytest

from sidecar import gaps
from sidecar.signals import End, RequestTiming
from tests.probed.segments import DONE, HEAD, LAST, POST, Tap, chunk, token

pytestmark = pytest.mark.ebpf


def stream(tap: Tap, *parts: bytes) -> RequestTiming:
    """One response whose body is made of these chunks, each in a packet of its own."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD)
    for part in parts:
        server.send(chunk(part))
    server.send(LAST)
    return tap.only()


def event(**fields: object) -> bytes:
    """An event of the OpenAI protocol with a delta of these fields."""
    return b"data: %s\n\n" % json.dumps({"choices": [{"delta": fields}]}).encode()


def test_first_token_is_not_the_first_event(tap: Tap) -> None:
    """A role-only or empty first delta is an event but no token."""
    record = stream(
        tap, event(role="assistant"), event(role="assistant", content=""), token(), DONE
    )
    assert (record.events, record.token_events, record.end) == (3, 1, End.COMPLETE)
    assert record.ttft_seconds is not None
    assert record.ttfb_seconds is not None
    assert record.ttfb_seconds < record.ttft_seconds == record.last_token_seconds


@pytest.mark.parametrize(
    "data",
    [
        '{"choices":[{"text":"a"}]}',
        '{"choices":[{"delta":{"content": "a"}}]}',
        '{"choices":[{"delta":{"reasoning_content":"a"}}]}',
        '{"choices":[{"delta":{"reasoning":"a"}}]}',
        '{"choices":[{"delta":{"refusal":"a"}}]}',
        '{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\\""}}]}}]}',
        '{"type":"response.output_text.delta","delta":"a"}',
        '{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}',
        '{"delta":{"type":"input_json_delta","partial_json":"{"}}',
        '{"delta":{"type":"thinking_delta","thinking":"hm"}}',
        '{"model_name":"x","text_output":" a"}',
        '{"token":{"id":5,"text":"a","special":false}}',
        '{"content" :  "\\""}',
        '{"a":{"b":"\\\\"},"content":"\\u00e9"}',
    ],
)
def test_generated_text(tap: Tap, data: str) -> None:
    """Each engine's own field of generated text is known."""
    assert stream(tap, b"data: %s\n\n" % data.encode()).token_events == 1


@pytest.mark.parametrize(
    "data",
    [
        '{"choices":[{"delta":{"content":""}}]}',
        '{"choices":[{"delta":{"content":null,"role":"assistant"}}]}',
        '{"choices":[{"delta":{},"finish_reason":"stop"}]}',
        '{"choices":[],"usage":{"completion_tokens":5}}',
        '{"id":"\\"content\\":\\"x","object":"content","x":"\\\\"}',
        '{"intent":"a","contents":"a","Content":"a"}',
        '{"logprobs":{"content":[]},"text":{"x":1},"delta":{"role":"a"}}',
        "",
        "[1,2]",
        "[",
    ],
)
def test_no_text(tap: Tap, data: str) -> None:
    """Empty, usage-only and finish-only events, and keys that only look alike, are no tokens."""
    record = stream(tap, b"data: %s\n\n" % data.encode(), token())
    assert (record.events, record.token_events) == (2, 1)


def test_one_token_event_an_event(tap: Tap) -> None:
    """Two fields of text in one event are one token event."""
    assert stream(tap, b'data: {"content":"a","text":"b"}\n\n').token_events == 1


def test_escaped_quotes_in_text(tap: Tap) -> None:
    """Generated JSON inside the text opens no key of its own."""
    text = json.dumps(json.dumps({"content": "x", "error": {"a": 'b"'}}))
    record = stream(tap, b'data: {"id":%s,"n":0}\n\n' % text.encode(), token())
    assert (record.events, record.token_events, record.end) == (2, 1, End.COMPLETE)


def test_comments_names_and_line_ends(tap: Tap) -> None:
    """Comments and other fields are no events; CR, LF and CRLF end lines alike."""
    body = b": ping\n\nevent: x\nid: data: 7\ndata: {}\n\n" + token()[:-2] + b"\r\n\r\n"
    body += token()[:-2] + b"\r\rdata:{}\n\ndatax: {}\n\n" + DONE
    assert (stream(tap, body).events, stream(tap, body).token_events) == (4, 2)


def test_lines_of_one_event(tap: Tap) -> None:
    """Consecutive data lines are one event, as the standard says."""
    record = stream(tap, b'data: {"id":1,\ndata: "text":\ndata: "a"}\n\n' + token())
    assert (record.events, record.token_events) == (2, 2)


@pytest.mark.parametrize("done", [b"data: [DONE]\n\n", b"data:[DONE]\n\n"])
def test_done_without_last_chunk(tap: Tap, done: bytes) -> None:
    """After [DONE] a close is no loss, whoever closes."""
    for end in ("fin", "reset"):
        client, server = tap.connect()
        client.send(POST)
        server.send(HEAD + chunk(token()) + chunk(done))
        getattr(server, end)()
        record = tap.only()
        assert (record.end, record.events) == (End.COMPLETE, 1)


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b'data: {"error":{"message":"out of memory"}}\n\n', End.ERROR_EVENT),
        (b'data: {"error": "bad"}\n\n', End.ERROR_EVENT),
        (b'data: {"object":"error","message":"bad"}\n\n', End.ERROR_EVENT),
        (b'event: error\ndata: {"type":"error","x":1}\n\n', End.ERROR_EVENT),
        (b'data: {"error":null,"text":"a"}\n\n', End.COMPLETE),
        (b'data: {"error":"","is_error":true,"object":"errors"}\n\n', End.COMPLETE),
        (b'data: {"text":"\\"error\\":{"}\n\n', End.COMPLETE),
    ],
)
def test_error_event(tap: Tap, data: bytes, end: End) -> None:
    """An error inside a stream of status 200 is named; a null or quoted one is none."""
    record = stream(tap, token(), data)
    assert (record.end, record.events, record.status) == (end, 2, 200)


def test_events_of_one_packet(tap: Tap) -> None:
    """Events that share a packet are gaps of nothing: bucket 0, and every one is counted."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + b"".join(chunk(token(str(i))) for i in range(17)))
    server.send(chunk(token()) + LAST)
    record = tap.only()
    assert (record.token_events, sum(n for _, n in record.gaps)) == (18, 17)
    assert dict(record.gaps)[0] >= 16
    assert record.last_token_seconds is not None
    assert record.ttft_seconds is not None
    span = record.last_token_seconds - record.ttft_seconds
    assert record.largest_gap_seconds == pytest.approx(span)


def test_gap_buckets(tap: Tap) -> None:
    """The kernel's bucket of a gap is the one of sidecar/gaps.py."""
    for _ in range(29):
        record = stream(tap, token(), token())
        (bucket, count), *rest = record.gaps
        assert (count, rest) == (1, [])
        assert record.largest_gap_seconds is not None
        assert bucket == gaps.index(round(record.largest_gap_seconds * 1e9))


def test_counts_saturate(tap: Tap) -> None:
    """A gap bucket stops at 65,535 and the event count goes on."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD)
    lump = b"".join(chunk(b'data:{"text":"a"}\n\n') for _ in range(113))
    for _ in range(601):
        server.send(lump, size=len(lump))
    server.send(LAST)
    record = tap.only()
    assert (record.token_events, dict(record.gaps)[0]) == (113 * 601, 65535)
