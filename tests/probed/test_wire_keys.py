"""The keyed hashes by which two legs know one request: of its body, and of its answer's id."""

from __future__ import annotations

import itertools
import random

import pytest

from sidecar.probed.wire import WireProbe
from sidecar.signals import RequestTiming
from tests.probed import reference
from tests.probed.segments import HEAD, LAST, POST, Tap, chunk, token

pytestmark = pytest.mark.ebpf
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def asked(tap: Tap, body: bytes, *, size: int = 2503, chunks: int = 0) -> int | None:
    """The key of a request with this body, sent in packets of ``size``, in chunks if wanted."""
    client, server = tap.connect()
    if chunks:
        parts = [chunk(body[at : at + chunks]) for at in range(0, len(body), chunks)]
        client.send(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", size=size)
        client.send(b"".join(parts) + LAST, size=size)
    else:
        head = b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body)
        client.send(head + body, size=size)
    server.send(OK)
    return tap.only().body_key


def answered(tap: Tap, *parts: bytes) -> RequestTiming:
    """One request answered by a stream of these parts."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD)
    for part in parts:
        server.send(chunk(part))
    server.send(LAST)
    return tap.only()


@pytest.mark.parametrize("size", [1, 7, 8, 9, 511, 512, 513, 5003, 16_384, 16_385, 70_001])
def test_body_however_cut(tap: Tap, size: int) -> None:
    """A body has one key, the reference's, whatever the packets and the chunks are."""
    body = random.Random(size).randbytes(size)
    keys = {asked(tap, body), asked(tap, body, chunks=997), asked(tap, body, size=1009, chunks=101)}
    if size < 6000:
        keys |= {asked(tap, body, size=3), asked(tap, body, size=61, chunks=3)}
    assert keys == {reference.body_key(body)}


def test_other_bodies(tap: Tap) -> None:
    """A changed, exchanged, added or missing byte gives another key; so does one in 64 anywhere."""
    body = bytes(random.Random(5).choices(b'{"content": abc}', k=3001))
    others = [body[:-1], body + b"\0", body[:1000] + body[1008:1016] + body[1008:]]
    others += [body[:at] + b"#" + body[at + 1 :] for at in (0, 7, 8, 1500, 3000)]
    long = body * 20
    others += [long, *(long[:at] + b"#" * 71 + long[at + 71 :] for at in (20_011, 59_900))]
    keys = [asked(tap, one) for one in (body, *others)]
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_two_digits_apart(tap: Tap) -> None:
    """Bodies that differ in the last byte of two words, where one sum of products is weak, have
    keys of their own.
    """
    digits = itertools.product(b"0123456789", repeat=2)
    keys = {asked(tap, b"prompt:%cprompt:%c" % pair) for pair in digits}
    assert len(keys) == 100


def test_no_body(tap: Tap) -> None:
    """No body, an empty one and an empty chunked one have no key."""
    for request in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n",
    ):
        client, server = tap.connect()
        client.send(request)
        server.send(OK)
        assert tap.only().body_key is None


def test_missed_bytes(tap: Tap) -> None:
    """A body of which bytes were missed has no key; the next request's has."""
    client, server = tap.connect()
    client.send(b"POST / HTTP/1.1\r\ncontent-length: 1009\r\n\r\n" + b"x" * 500)
    client.skip(9)
    client.send(b"x" * 500)
    server.send(OK)
    client.send(POST)
    server.send(OK)
    keys = [record.body_key for record in tap.records()]
    assert keys == [None, reference.body_key(b"{}")]


def test_answered_early(tap: Tap) -> None:
    """A body that had not ended when its answer did has no key, and leaves nothing to the next."""
    client, server = tap.connect()
    client.send(b"POST / HTTP/1.1\r\ncontent-length: 999\r\n\r\n" + b"x" * 400)
    server.send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
    client.send(b"x" * 599 + POST)
    server.send(OK)
    keys = [record.body_key for record in tap.records()]
    assert keys == [None, reference.body_key(b"{}")]


def test_pipelined(tap: Tap) -> None:
    """Of requests in line the first has its key, and those whose heads are not kept have none."""
    client, server = tap.connect()
    client.send(POST + POST.replace(b"{}", b"[]"))
    server.send(OK + OK)
    assert [r.body_key for r in tap.records()] == [reference.body_key(b"{}"), None]


def test_events_of_a_request(tap: Tap) -> None:
    """A request that calls itself an event stream is hashed like any other, and its lines are no
    events.
    """
    client, server = tap.connect()
    head = b"POST / HTTP/1.1\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
    client.send(head % len(token()) + token())
    server.send(HEAD + chunk(token()) + LAST)
    record = tap.only()
    assert (record.events, record.body_key) == (1, reference.body_key(token()))


def test_another_secret(prebuilt: WireProbe) -> None:
    """Another start of probed gives another key to the same body and the same id."""
    other = WireProbe("prebuilt")
    try:
        ours, theirs = (answered(Tap(one), b'data: {"id":"x"}\n\n') for one in (prebuilt, other))
        assert ours.body_key not in (None, theirs.body_key)
        assert ours.response_key not in (None, theirs.response_key)
    finally:
        other.close()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ('{"id":"chatcmpl-17","choices":[{"delta":{"role":"assistant"}}]}', "chatcmpl-17"),
        ('{"object":"x","choices":[{"id":"no"}],"id" : "cmpl-é"}', "cmpl-é"),
        ('{"type":"response.created","response":{"id":"resp_5","object":"response"}}', "resp_5"),
        ('{"type":"message_start","message":{"id":"msg_7","role":"assistant"}}', "msg_7"),
        ('{"response":{"x":{"id":"no"}},"id":"yes"}', "yes"),
        ('{"choices":[{"id":"no"}],"part":{"id":"no"},"message":[{"id":"no"}]}', ""),
        ('{"id":7,"ids":"no","response":{"x":{"id":"no"}}}', ""),
        ('{"id":"no\\u00e9"}', ""),
    ],
)
def test_response_key(tap: Tap, data: str, name: str) -> None:
    """The answer's id is hashed where APIs put it, and no other; one with an escape is none."""
    record = answered(tap, f"data: {data}\n\n".encode())
    assert record.response_key == reference.id_key(name.encode())


def test_first_id_counts(tap: Tap) -> None:
    """An event without an id, or with an empty one, leaves it to the next; later ones change
    nothing, and a kept connection inherits none.
    """
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(b'data: {"id":"","model":""}\n\ndata: {}\n\n'))
    server.send(chunk(b'data: {"id":"a-') + chunk(b'1"}\n\ndata: {"id":"b"}\n\n') + LAST)
    client.send(POST)
    server.send(HEAD + chunk(token()) + LAST)
    keys = [record.response_key for record in tap.records()]
    assert keys == [reference.id_key(b"a-1"), None]


def test_json_answer(tap: Tap) -> None:
    """The body of an answer that is no stream is not read: its id is not known."""
    client, server = tap.connect()
    client.send(POST)
    server.send(b'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{"id":"cmpl-1"}')
    assert tap.only().response_key is None
