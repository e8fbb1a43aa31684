"""The attached tap on real loopback connections, with both loaders."""

from __future__ import annotations

import select
import socket
import time

import pytest

from sidecar.probed import frames
from sidecar.probed.wire import WireProbe
from sidecar.probed.wire_table import port_of
from sidecar.signals import End, Leg, RequestTiming
from tests.probed.links import devices_of
from tests.probed.segments import DONE, HEAD, LAST, POST, chunk, token
from tests.probed.sockets import connected, listening, reset

pytestmark = pytest.mark.ebpf
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def drained(probe: WireProbe, port: int, count: int = 1) -> list[RequestTiming]:
    """The next records of a port, waited for up to five seconds: a FIN travels by itself."""
    found: list[RequestTiming] = []
    end = time.monotonic() + 5
    while len(found) < count and time.monotonic() < end:
        for record in probe.drain():
            if port_of(record) == port:
                frame = frames.pack_request(record)
                found.append(frames.unpack_request(frame, {port: Leg.UPSTREAM}, 0.0))
        select.select([], [], [], 0.001)
    assert len(found) == count
    return found


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_stream(probe: WireProbe, host: str) -> None:
    """A stream over a kept connection, one write an event, IPv4 and IPv6."""
    with listening(host) as listener, connected(listener) as pair:
        probe.watch([pair.port])
        for _ in range(3):
            pair.ask(POST)
            pair.answer(HEAD + chunk(token()))
            for _ in range(28):
                pair.answer(chunk(token()))
            pair.answer(chunk(DONE))
            pair.answer(b"0\r\n")
            pair.answer(b"\r\n")
        records = drained(probe, pair.port, 3)
    assert {(r.events, r.token_events, r.end, r.resynced) for r in records} == {
        (29, 29, End.COMPLETE, False)
    }


def test_large_bodies(probe: WireProbe) -> None:
    """Megabytes of prompt and of answer pass by arithmetic, in super packets of up to 64 KB."""
    with listening() as listener, connected(listener) as pair:
        probe.watch([pair.port])
        size = 5_000_011
        pair.ask(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size + b"\n" * size)
        pair.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)
        pair.ask(POST)
        pair.answer(OK)
        first, second = drained(probe, pair.port, 2)
    assert (first.end, first.resynced, second.path) == (End.COMPLETE, False, "/v1/chat/completions")
    assert first.request_bytes > size
    assert first.response_bytes > size


def test_lumps(prebuilt: WireProbe) -> None:
    """A slow reader turns events into super packets of 64 KB: every event is counted."""
    events = 20_011
    with listening() as listener, connected(listener) as pair:
        prebuilt.watch([pair.port])
        pair.ask(POST)
        pair.answer(HEAD + b"".join(chunk(token(str(i))) for i in range(events)) + LAST)
        (record,) = drained(prebuilt, pair.port)
    assert (record.token_events, record.resynced) == (events, False)


def test_lumps_beyond_bcc(probe: WireProbe) -> None:
    """Where the loader cannot read a whole super packet, it says so: never a silent loss."""
    events = 2003
    with listening() as listener, connected(listener) as pair:
        probe.watch([pair.port])
        pair.ask(POST)
        pair.answer(HEAD + b"".join(chunk(token(str(i))) for i in range(events)) + chunk(DONE))
        pair.answer(LAST)
        (record,) = drained(probe, pair.port)
    assert record.end is End.COMPLETE
    assert record.token_events == events or (probe.loader == "bcc" and record.resynced)


def test_closes(probe: WireProbe) -> None:
    """Real closes: by the client, by the server, with and without a reset."""
    with listening() as listener:
        port = listener.getsockname()[1]
        probe.watch([port])
        for side, how in ((0, 0), (0, 1), (1, 0), (1, 1)):
            with connected(listener) as pair:
                pair.ask(POST)
                pair.answer(HEAD + chunk(token()))
                end = (pair.client, pair.server)[side]
                reset(end) if how else end.close()
                (pair.client, pair.server)[not side].close()
                (record,) = drained(probe, port)
                assert record.end is (End.SERVER_CLOSED if side else End.CLIENT_GONE)


def test_watch_changes_live(probe: WireProbe) -> None:
    """A port can be watched and left while its connections go on."""
    with listening() as listener, connected(listener) as pair:
        for watched in (False, True, False, True):
            probe.watch([pair.port] if watched else [])
            pair.ask(POST)
            pair.answer(OK)
            assert len(drained(probe, pair.port, int(watched))) == watched


def test_tap_receives_nothing(probe: WireProbe) -> None:
    """The packet sockets never get a packet: nothing is copied, and the namespace's other traffic
    is not even counted.
    """
    with listening() as listener, connected(listener) as pair:
        probe.watch([pair.port])
        pair.ask(POST)
        pair.answer(OK)
        drained(probe, pair.port)
    for tap in devices_of(probe).sockets:
        tap.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # of a device that is down
        with pytest.raises(BlockingIOError):
            tap.recv(1, socket.MSG_DONTWAIT)
