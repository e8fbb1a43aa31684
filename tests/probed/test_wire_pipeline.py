"""Requests sent before the last one was answered, and answers of which bytes were missed."""

from __future__ import annotations

import time

import pytest

from sidecar.signals import End
from tests.probed.segments import FIN, HEAD, LAST, PORT, POST, Tap, chunk, token

pytestmark = pytest.mark.ebpf
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def test_each_its_own_start(tap: Tap) -> None:
    """A pipelined request is timed from its own first byte."""
    client, server = tap.connect()
    client.send(POST)
    client.send(POST)
    time.sleep(0.05)  # two requests that are apart, which is the fact to be seen
    client.send(POST)
    server.send(OK * 3)
    seconds = [r.seconds for r in tap.records()]
    assert min(seconds[:2]) > 0.05 > seconds[2]


def test_head_in_between(tap: Tap) -> None:
    """HEAD among pipelined requests has no body to wait for, whatever its length says."""
    client, server = tap.connect()
    client.send(POST + b"HEAD / HTTP/1.1\r\n\r\n" + POST)
    server.send(OK + b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n" + OK)
    assert [(r.status, r.end) for r in tap.records()] == [(200, End.COMPLETE)] * 3
    client.send(b"GET / HTTP/1.1\r\n\r\nHEA")
    server.send(OK)
    client.send(b"D / HTTP/1.1\r\n\r\n")
    server.send(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n")
    assert [r.end for r in tap.records()] == [End.COMPLETE] * 2


@pytest.mark.parametrize("how", ["server", "client", "garbage", "syn"])
def test_unanswered(tap: Tap, how: str) -> None:
    """Each request that was not answered when the connection ends has a record."""
    client, server = tap.connect()
    client.send(POST * 5)
    server.send(OK)
    end = {"server": End.SERVER_CLOSED, "client": End.CLIENT_GONE}.get(how, End.LOST)
    if how == "server":
        server.fin()
    elif how == "client":
        client.reset()
    elif how == "garbage":
        server.send(b"lol")
    else:
        client.skip(70_000)
        client.send(b"", 2)
    assert [r.end for r in tap.records()] == [End.COMPLETE, *[end] * 4]


def test_more_than_have_a_place(tap: Tap) -> None:
    """Three hundred at once: 256 are followed, all with a start, and none is made up."""
    client, server = tap.connect()
    for _ in range(300):
        client.send(POST)
    (opened,) = tap.probe.sweep(2**62, 2**62, 9).counts.values()
    assert (opened.port, opened.count) == (PORT, 256)
    for _ in range(300):
        server.send(OK)
    records = tap.records()
    assert [r.status for r in records] == [200] * 256
    assert all(0 <= r.seconds < 60 for r in records)
    assert tap.counted().pipelined == 299
    for _ in range(30):
        client.send(POST)
    server.fin()
    assert len(tap.records()) + tap.counted().lost_records == 30


def test_swept(tap: Tap) -> None:
    """Requests in line are ended with the one before them when a connection is given up."""
    client, _server = tap.connect()
    client.send(POST * 3)
    lost = [tap.decode(r) for r in tap.probe.sweep(2**62, 1, 9).lost]
    assert [(r.end, r.resynced) for r in lost] == [
        (End.LOST, False), (End.LOST, True), (End.LOST, True),
    ]  # fmt: skip
    assert {r.server for r in lost} == {f"192.0.2.1:{PORT}"}


def test_answers_are_not_merged(tap: Tap) -> None:
    """When the client's ACK shows that the end of an answer was missed, the next answer is not
    counted into it.
    """
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()))
    server.skip(len(chunk(token()) + LAST))
    client.send(POST)
    server.send(HEAD + chunk(token()) + chunk(token()) + LAST)
    first, second = tap.records()
    assert (first.end, first.token_events, first.resynced) == (End.LOST, 1, True)
    assert (second.end, second.token_events, second.resynced) == (End.COMPLETE, 2, False)
    assert (tap.counted().resyncs, tap.counted().pipelined) == (1, 0)


def test_a_skipped_body_goes_on(tap: Tap) -> None:
    """Bytes of a body of known length that were missed end nothing: more of it follows."""
    client, server = tap.connect()
    client.send(POST)
    server.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + b"x" * 100)
    server.skip(500)
    client.send(POST)
    server.send(b"x" * 400 + OK)
    first, second = tap.records()
    assert (first.end, first.resynced, second.end) == (End.COMPLETE, False, End.COMPLETE)


def test_half_close_with_pipeline(tap: Tap) -> None:
    """A client that only stops sending gets all its answers."""
    client, server = tap.connect()
    client.send(POST + POST, FIN | 16)
    server.send(OK + OK)
    server.fin()
    assert [r.end for r in tap.records()] == [End.COMPLETE] * 2
