"""How far an event is read: what must show within 512 bytes, and what is said of longer ones."""

from __future__ import annotations

import pytest

from sidecar.signals import End
from tests.probed.segments import DONE, HEAD, LAST, POST, Tap, chunk, token
from tests.probed.test_wire_keys import answered

pytestmark = pytest.mark.ebpf
TEXT = b'"content":"a"'


def padded(size: int, *, behind: bytes = b"", before: bytes = b"") -> bytes:
    """An event whose JSON has ``size`` bytes: something before the padding, or behind it."""
    rest = len(b'{%s"logprobs":""%s}' % (before, behind))
    return b'data: {%s"logprobs":"%s"%s}\n\n' % (before, b"y" * (size - rest), behind)


@pytest.mark.parametrize(
    ("size", "tokens", "unclassified"), [(512, 1, 0), (513, 1, 0), (514, 1, 0), (600, 0, 1)]
)
def test_text_at_the_end(tap: Tap, size: int, tokens: int, unclassified: int) -> None:
    """Text that begins within 512 bytes makes a token event; text behind them makes none, and the
    event is counted as not told apart.
    """
    record = answered(tap, padded(size, behind=b"," + TEXT), token())
    assert (record.events, record.token_events) == (2, tokens + 1)
    assert record.unclassified == unclassified == tap.counted().unclassified


@pytest.mark.parametrize("size", [512, 513])
def test_bound(tap: Tap, size: int) -> None:
    """An event without text of exactly 512 bytes is known to have none; one more is not."""
    assert answered(tap, padded(size)).unclassified == size - 512


def test_text_first(tap: Tap) -> None:
    """A long event is a token event when its text comes early, however long what follows is."""
    record = answered(tap, padded(5003, before=TEXT + b","), padded(70_001, before=TEXT + b","))
    assert (record.events, record.token_events, record.unclassified) == (2, 2, 0)


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [701, 5003])
def test_end_of_a_long_event(tap: Tap, line: bytes, size: int) -> None:
    """What is passed over ends at the blank line, wherever that lies: the next event is read."""
    for shift in range(0, 131, 13):
        parts = [padded(size + shift)[:-2], b"", token()[:-2], b"", padded(size), token()]
        record = answered(tap, line.join(parts))
        assert (record.events, record.token_events, record.unclassified) == (4, 2, 2)


def test_lines_of_a_long_event(tap: Tap) -> None:
    """The bound holds for the event, not for each of its lines; it counts once."""
    lines = b"".join(b'data: "k%d":"%s",\n' % (i, b"y" * 300) for i in range(7))
    record = answered(tap, b"data: {\n" + lines + b"data: " + TEXT + b"}\n\n", token())
    assert (record.events, record.token_events, record.unclassified) == (2, 1, 1)


def test_first_token_may_be_among_them(tap: Tap) -> None:
    """TTFT stays that of the first token event; that one before it was not told apart is said."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(padded(700, behind=b"," + TEXT)))
    server.send(chunk(token()) + LAST)
    record = tap.only()
    assert record.ttft_seconds is not None
    assert record.ttfb_seconds is not None
    assert record.ttft_seconds > record.ttfb_seconds
    assert (record.token_events, record.unclassified) == (1, 1)


def test_nothing_but_them(tap: Tap) -> None:
    """A stream of which no event could be told apart has no TTFT, and says why."""
    record = answered(tap, padded(601), padded(701), DONE)
    assert (record.events, record.token_events, record.ttft_seconds) == (2, 0, None)
    assert (record.unclassified, record.end) == (2, End.COMPLETE)


@pytest.mark.parametrize(
    ("head", "end"),
    [
        (b'"type":"response.created",', End.COMPLETE),
        (b'"type":"response.in_progress",', End.COMPLETE),
        (b'"type":"response.queued",', End.COMPLETE),
        (b'"type":"response.completed",', End.COMPLETE),
        (b'"type":"response.output_text.done",', End.COMPLETE),
        (b'"error":{"code":5},', End.ERROR_EVENT),
    ],
)
def test_told_by_their_type(tap: Tap, head: bytes, end: End) -> None:
    """Long events whose type or error comes first are told apart."""
    record = answered(tap, padded(3001, before=head, behind=b"," + TEXT))
    assert (record.events, record.token_events, record.unclassified) == (1, 0, 0)
    assert record.end is end


def test_type_progress(tap: Tap) -> None:
    """A type that is only alike hides no text."""
    assert answered(tap, b'data: {"type":"progress",%s}\n\n' % TEXT).token_events == 1


def test_half_a_long_event_before_the_next_request(tap: Tap) -> None:
    """A stream that ends within what is passed over leaves nothing of it to the next one."""
    client, server = tap.connect()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
    for part in (padded(701)[:600], token()):
        client.send(POST)
        server.send(head % len(part) + part)
    seen = [(r.events, r.token_events, r.unclassified) for r in tap.records()]
    assert seen == [(1, 0, 1), (1, 1, 0)]
