"""What TCP and the network do to a connection: copies, loss, order, closes, tags."""

from __future__ import annotations

import time

import pytest

from sidecar.signals import End
from tests.probed.segments import (
    ACK,
    DONE,
    FIN,
    HEAD,
    LAST,
    PORT,
    POST,
    RST,
    SYN,
    Tap,
    chunk,
    token,
)

pytestmark = pytest.mark.ebpf
# Hop by hop, leading to a routing header of 24 bytes, leading to destination options, to TCP.
ROUTING = b"\x2b\0" + b"\1\4" + b"\0" * 4 + b"\x3c\2" + b"\0" * 22 + b"\6\0" + b"\1\4" + b"\0" * 4
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def test_copies(tap: Tap) -> None:
    """On lo every packet is seen twice, and it counts once."""
    client, server = tap.connect()
    client.send(POST, copies=2)
    server.send(HEAD + chunk(token()), copies=2)
    server.send(chunk(token()) + LAST, copies=2)
    client.send(b"", FIN | ACK, copies=2)
    server.send(b"", FIN | ACK, copies=2)
    record = tap.only()
    assert (record.token_events, tap.counted().requests, tap.counted().pipelined) == (2, 1, 0)


def test_copy_after_the_end(tap: Tap) -> None:
    """A late copy of a request is no new request."""
    client, server = tap.connect()
    seq = client.seq
    client.send(POST)
    client.reset()
    tap.run(client.segment(POST, ACK, seq))
    server.send(b"")
    client.reset()
    assert (tap.only().end, tap.counted().requests) == (End.CLIENT_GONE, 1)


def test_sent_again_with_more(tap: Tap) -> None:
    """Of a retransmission that also carries new bytes only these are read."""
    client, server = tap.connect()
    client.send(POST)
    body = HEAD + chunk(token()) + chunk(token()) + LAST
    start = server.seq
    server.send(body[:101])
    server.seq = start + 53
    server.send(body[53:])
    record = tap.only()
    assert (record.token_events, record.response_bytes, record.resynced) == (2, len(body), False)


def test_loss_in_a_stream(tap: Tap) -> None:
    """Missed bytes of a stream are said; the events behind them are still counted."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()))
    server.skip(len(chunk(token())) + 9)
    server.send(chunk(token())[9:])
    server.send(chunk(token()))
    server.send(chunk(token()) + chunk(DONE) + LAST)
    record = tap.only()
    assert (record.end, record.resynced) == (End.COMPLETE, True)
    assert (record.token_events, tap.counted().resyncs) == (3, 1)


def test_end_missed(tap: Tap) -> None:
    """When the end itself was missed the next request closes the account."""
    for last, end in ((DONE, End.COMPLETE), (token(), End.LOST)):
        client, server = tap.connect()
        client.send(POST)
        server.send(HEAD)
        server.skip(7)
        server.send(chunk(last))
        server.skip(len(LAST))
        client.send(POST)
        server.send(OK)
        first, second = tap.records()
        assert (first.end, first.resynced) == (end, True)
        assert (second.end, second.status, second.resynced) == (End.COMPLETE, 200, False)


def test_loss_in_a_skipped_body(tap: Tap) -> None:
    """Bytes that nobody looks at may be missed without harm."""
    client, server = tap.connect()
    client.send(b"POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n")
    client.skip(999_990)
    client.send(b"0123456789")
    server.send(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n")
    server.skip(499)
    server.send(b"}")
    client.send(POST)
    server.send(OK)
    assert [(r.resynced, r.end) for r in tap.records()] == [(False, End.COMPLETE)] * 2
    assert tap.counted().resyncs == 0


def test_loss_of_a_request_head(tap: Tap) -> None:
    """A request whose head was missed is not made up; the next one is seen whole."""
    client, server = tap.connect()
    client.send(POST)
    server.send(OK)
    client.skip(20)
    client.send(b"nonsense\r\n\r\n")
    server.send(OK)
    client.send(b"GET /next HTTP/1.1\r\n\r\n")
    server.send(OK)
    assert [r.path for r in tap.records()] == ["/v1/chat/completions", "/next"]
    assert tap.counted().resyncs == 1


def test_joined_late(tap: Tap) -> None:
    """A connection that was there before us is taken up at its next request."""
    client, server = tap.connect(opened=False)
    client.send(b"rest of a body")
    server.send(chunk(token()) + LAST)
    client.send(POST)
    server.send(OK)
    record = tap.only()
    assert (record.status, record.resynced, tap.counted().not_http) == (200, False, 0)


def test_port_used_again(tap: Tap) -> None:
    """A new SYN on the same addresses ends what was open there as lost."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()))
    client.seq += 5_000_000
    client.send(b"", SYN, copies=2)
    client.send(POST)
    server.send(OK)
    assert [r.end for r in tap.records()] == [End.LOST, End.COMPLETE]


@pytest.mark.parametrize("copies", [1, 2])
def test_fast_open(tap: Tap, copies: int) -> None:
    """A request in the SYN itself (TCP fast open) is read, and its answer behind the SYN-ACK."""
    client, server = tap.connect(opened=False)
    client.peer = None  # a SYN acknowledges nothing
    frame = client.segment(POST, SYN)
    client.peer = server
    client.seq += 1 + len(POST)
    for _ in range(copies):
        tap.run(frame)
    server.send(b"", SYN | ACK, copies=copies)
    server.send(HEAD + chunk(token()) + LAST, copies=copies)
    record = tap.only()
    assert (record.path, record.status, record.token_events) == ("/v1/chat/completions", 200, 1)
    assert not record.resynced


def test_far_off(tap: Tap) -> None:
    """Segments and resets that no receiver would take change nothing."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()))
    for end in (client, server):
        for far in (2**30, -(2**30), 2**24 + 1):
            tap.run(end.segment(b"", RST, end.seq + far))
            tap.run(end.segment(b"", FIN | ACK, end.seq + far))
            tap.run(end.segment(b"zzzz", ACK, end.seq + far))
    server.send(chunk(token()) + LAST)
    record = tap.only()
    assert (record.end, record.token_events, record.resynced) == (End.COMPLETE, 2, False)


def test_away_for_long(tap: Tap) -> None:
    """A connection that went far while we did not look is taken up again by its second packet."""
    client, server = tap.connect()
    client.send(POST)
    server.send(OK)
    for end in (client, server):
        end.skip(2**29)
    client.send(b"x" * 9)
    for _ in range(2):
        client.send(POST)
        server.send(OK)
        server.send(b"")
    assert tap.records()[-1].status == 200


def test_client_gone(tap: Tap) -> None:
    """A client that resets or closes in mid-stream is named, at the time it left."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()))
    client.reset()
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()))
    client.fin()
    server.send(chunk(token()))
    assert [r.end for r in tap.records()] == [End.CLIENT_GONE]
    before = time.monotonic_ns()
    server.fin()
    (raw,) = tap.probe.drain()
    assert int.from_bytes(raw[40:48], "little") < before  # not when the server noticed
    record = tap.decode(raw)
    assert (record.end, record.token_events) == (End.CLIENT_GONE, 2)
    assert record.last_token_seconds is not None
    assert record.last_token_seconds <= record.seconds


@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200", HEAD + chunk(token()), HEAD + b"5"])
def test_server_closed(tap: Tap, how: str, sent: bytes) -> None:
    """A server that ends before its response does is named."""
    client, server = tap.connect()
    client.send(POST)
    server.send(sent)
    getattr(server, how)()
    record = tap.only()
    assert (record.end, record.status) == (End.SERVER_CLOSED, 200 if sent[12:] else None)


def test_request_after_the_servers_fin(tap: Tap) -> None:
    """llama.cpp closes a connection it said to keep: the next request gets no answer."""
    client, server = tap.connect()
    client.send(POST)
    server.send(OK)
    server.fin()
    client.send(POST)
    assert len(tap.records()) == 1
    server.reset()
    record = tap.only()
    assert (record.end, record.status, record.ttfb_seconds) == (End.SERVER_CLOSED, None, None)


def test_half_close(tap: Tap) -> None:
    """A client that only stops sending still gets its whole answer."""
    client, server = tap.connect()
    client.send(POST, FIN | ACK)
    server.send(HEAD + chunk(token()))
    server.send(LAST)
    server.fin()
    assert tap.only().end is End.COMPLETE


def test_fin_with_the_last_bytes(tap: Tap) -> None:
    """Data of a segment with FIN is read before the close counts."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()) + LAST, FIN | ACK)
    assert tap.only().end is End.COMPLETE


@pytest.mark.parametrize("extension", [b"", b"\x06\0" + b"\1\4" + b"\0" * 4, ROUTING])
def test_ipv6(tap: Tap, extension: bytes) -> None:
    """IPv6 is read, extension headers included, and the server's address is told."""
    client, server = tap.connect(ipv6=True, extension=extension)
    client.send(POST)
    server.send(HEAD + chunk(token()) + LAST)
    record = tap.only()
    assert (record.server, record.token_events) == (f"[2001:db8::1]:{PORT}", 1)


@pytest.mark.parametrize("vlan", [(0x8100,), (0x88A8, 0x8100)])
def test_vlan(tap: Tap, vlan: tuple[int, ...]) -> None:
    """VLAN tags that a device leaves in the packet are passed over."""
    client, server = tap.connect(vlan=vlan)
    client.send(POST)
    server.send(OK)
    assert tap.only().status == 200


def test_padding(tap: Tap) -> None:
    """Ethernet padding behind a short packet is no payload."""
    client, server = tap.connect(padding=b"\0" * 18)
    client.send(POST)
    server.send(HEAD + b"5")
    server.send(b"\r\n: a\n\n\r\n" + LAST)
    assert (tap.only().end, tap.counted().resyncs) == (End.COMPLETE, 0)


def test_other_ports_and_protocols(tap: Tap) -> None:
    """Packets of other ports, later fragments, UDP and half packets are not even counted."""
    client, server = tap.connect()
    before = tap.counted().packets
    frame = bytearray(client.segment(POST, ACK))
    for change in ((14 + 6, b"\x00\x10"), (14 + 9, b"\x11"), (14 + 22, b"\x00\x50"), (14, b"\x65")):
        tap.run(bytes(frame[: change[0]]) + change[1] + bytes(frame[change[0] + len(change[1]) :]))
    tap.run(bytes(frame[:46]))
    assert tap.counted().packets == before
    assert server.seq


def test_ring_overflow(tap: Tap) -> None:
    """Records that find no room are counted, and the next ones come again."""
    client, server = tap.connect()
    for _ in range(601):
        client.send(POST)
        server.send(OK)
    kept = len(tap.records())
    assert 0 < kept < 601
    assert kept + tap.counted().lost_records == 601
    client.send(POST)
    server.send(OK)
    assert tap.only().end is End.COMPLETE
