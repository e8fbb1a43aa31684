"""A table of connections under pressure: what is given up for whom, and all of it counted."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sidecar.probed.frames import OpenCount
from sidecar.probed.wire import WireProbe
from sidecar.signals import End
from tests.probed.segments import HEAD, PORT, POST, SYN, Flow, Tap, chunk, token

pytestmark = pytest.mark.ebpf
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
ROOM = 16_384
IDLE = 600 * 10**9


@pytest.fixture
def prebuilt_tap(prebuilt: WireProbe) -> Iterator[Tap]:
    """One loader's tap, for what user space does."""
    fed = Tap(prebuilt)
    yield fed
    fed.forget_all()


def held(tap: Tap) -> int:
    """How many connections the table holds."""
    return sum(count for _, _, count in tap.probe._conns.batches(256))


def ask(tap: Tap, count: int, answer: bytes = b"") -> list[tuple[Flow, Flow]]:
    """So many connections with a request each."""
    pairs = [tap.connect(opened=False) for _ in range(count)]
    for client, server in pairs:
        client.send(POST)
        if answer:
            server.send(answer)
    return pairs


def sees_new(tap: Tap) -> bool:
    """Whether the next request is followed to its end."""
    list(tap.probe.drain())
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()) + b"0\r\n\r\n")
    return [(r.end, r.token_events) for r in tap.records()] == [(End.COMPLETE, 1)]


def test_full(tap: Tap) -> None:
    """Of 20,011 open requests those beyond the table are counted once, copies or not; a sweep makes
    room for the next, and what that costs ends as lost and is counted.
    """
    now = time.monotonic_ns()
    for _ in range(20_011):
        client, _server = tap.connect(opened=False)
        client.send(POST, copies=2)
    counted = tap.counted()
    assert (counted.table_full, counted.requests, counted.folded) == (20_011 - ROOM, ROOM, 0)
    swept = tap.probe.sweep(now + IDLE, IDLE, 7)
    assert len(swept.lost) == tap.counted().folded == ROOM // 16
    assert {tap.decode(record).end for record in swept.lost} == {End.LOST}
    assert (swept.of(PORT).count, len(swept.open), held(tap)) == (ROOM, 7, ROOM - ROOM // 16)
    assert sees_new(tap)
    assert tap.counted().table_full == counted.table_full


def test_half_open_flood(tap: Tap) -> None:
    """20,011 SYNs that nobody answers take no place in the table; a request is seen behind them,
    one whose SYN came before them too.
    """
    first = tap.connect()
    for _ in range(20_011):
        client, _server = tap.connect(opened=False)
        client.send(b"", SYN)
    assert (held(tap), tap.counted().table_full) == (0, 0)
    first[0].send(POST)
    first[1].send(OK)
    assert tap.only().end is End.COMPLETE
    assert sees_new(tap)


def test_unused_go_first(prebuilt_tap: Tap) -> None:
    """Beyond 7/8 of the table connections without a request go, the least recently used first;
    requests that are open stay, and kept connections that went are followed at their next one.
    """
    tap = prebuilt_tap
    opened = ask(tap, 31, HEAD + chunk(token()))
    unused = []
    for _ in range(ROOM - 1024 - 31):
        unused += ask(tap, 1, OK)
        list(tap.probe.drain())
    swept = tap.probe.sweep(time.monotonic_ns(), IDLE, 9)
    assert (swept.lost, swept.of(PORT).count) == ((), 31)
    assert (held(tap), tap.counted().folded) == (ROOM * 7 // 8, ROOM // 8 - 1024)
    for client, server in (unused[0], unused[-1]):
        client.send(POST)
        server.send(OK)
    for _, server in opened:
        server.send(b"0\r\n\r\n")
    assert [record.end for record in tap.records()] == [End.COMPLETE] * 33
    assert held(tap) == ROOM * 7 // 8 + 1  # the first was gone, the last was not


def test_open_requests_stay(prebuilt_tap: Tap) -> None:
    """Open requests are given up beyond 15/16 of the table only, those heard of least recently
    first.
    """
    tap = prebuilt_tap
    pairs = ask(tap, ROOM * 15 // 16 + 17, HEAD)
    for _, server in pairs[:9]:
        server.send(chunk(token()))
    swept = tap.probe.sweep(time.monotonic_ns(), IDLE, 0)
    assert (len(swept.lost), tap.counted().folded) == (17, 17)
    assert {tap.decode(record).token_events for record in swept.lost} == {0}
    again = tap.probe.sweep(time.monotonic_ns(), IDLE, 0)
    assert (again.lost, again.open, again.of(PORT).count) == ((), (), ROOM * 15 // 16)


def test_oldest_are_reported(prebuilt_tap: Tap) -> None:
    """Of many open requests the reports are the oldest, in their order, wherever they lie."""
    tap = prebuilt_tap
    for index in range(997):
        client, _server = tap.connect(opened=False)
        client.send(b"GET /%d HTTP/1.1\r\n\r\n" % index)
    swept = tap.probe.sweep(time.monotonic_ns(), IDLE, 13)
    assert [tap.decode(r).path for r in swept.open] == [f"/{i}" for i in range(13)]
    assert isinstance(swept.of(PORT), OpenCount)
