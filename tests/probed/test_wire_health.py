"""What TCP suffers on a watched port, from made-up packets and from real ones on loopback."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable

import pytest

from sidecar.probed.tcp_counts import TcpCounts
from sidecar.probed.wire import WireProbe
from tests.probed.segments import ACK, FIN, HEAD, PORT, POST, RST, SYN, Flow, Tap, chunk, token
from tests.probed.sockets import connected, listening, reset

pytestmark = pytest.mark.ebpf
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
REORDERING = 0.003  # seconds, wire_health.h


@pytest.fixture
def counts(tap: Tap) -> Callable[[], TcpCounts]:
    """The counts of the watched port since the test began."""
    tap.probe.watch([])
    tap.probe.watch([PORT])
    return lambda: tap.probe.tcp()[PORT]


def ends(tap: Tap) -> tuple[Flow, Flow]:
    """A connection with one answered request, its packets seen once each."""
    client, server = tap.connect(opened=False)
    client.send(b"", SYN)
    server.send(b"", SYN | ACK)
    client.send(POST)
    server.send(OK)
    return client, server


def sizes(counted: TcpCounts) -> tuple[int, int, int]:
    """What was sent again and what was overtaken."""
    return counted.retransmits_sent, counted.retransmits_received, counted.reordered


def wait(seconds: float) -> None:
    """Until the clock of the kernel program has moved on by so much."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        select.select([], [], [], seconds / 3)


def test_connects(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """Each connect counts once, answered ones with the time that their answer took."""
    for _ in range(7):
        ends(tap)
    client, server = tap.connect(opened=False)
    client.send(b"", SYN)
    wait(0.02)
    server.send(b"", SYN | ACK)
    server.send(b"", SYN | ACK)
    counted = counts()
    assert (counted.connects, counted.connect_failures, counted.syn_retransmits) == (8, 0, 0)
    assert sum(counted.handshakes) == 8
    assert sum(counted.handshakes[15:]) >= 1  # not under 16 ms
    assert counted.handshake_ns > 20_000_000


def test_refused(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """A SYN answered by RST is a failed connect and no reset of a connection, seen again or not."""
    for _ in range(5):
        client, server = tap.connect(opened=False)
        client.send(b"", SYN)
        for _ in range(2):
            tap.run(server.segment(b"", RST | ACK, 0))
    counted = counts()
    assert (counted.connects, counted.connect_failures) == (5, 5)
    assert (counted.resets_by_server, counted.resets_by_client, sum(counted.handshakes)) == (
        0,
        0,
        0,
    )


def test_syn_sent_again(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """A SYN sent again is no new connect; the wait for its answer counts from the first."""
    client, server = tap.connect(opened=False)
    syn = client.segment(b"", SYN)
    tap.run(syn)
    wait(0.02)
    tap.run(syn)
    tap.run(syn)
    client.seq += 1
    server.send(b"", SYN | ACK)
    counted = counts()
    assert (counted.connects, counted.syn_retransmits) == (1, 2)
    assert sum(counted.handshakes[15:]) == 1


@pytest.mark.parametrize("late", [False, True])
def test_resets(tap: Tap, counts: Callable[[], TcpCounts], late: bool) -> None:
    """A reset counts once for who sent it: with a request open, before any, and on a connection
    that the tap came late to.
    """
    for index in range(3):
        client, server = tap.connect(opened=not late)
        if index:
            client.send(POST)
        end = server if index == 2 else client
        for _ in range(2):
            tap.run(end.segment(b"", RST | ACK))
    counted = counts()
    assert (counted.resets_by_client, counted.resets_by_server) == (2, 1)
    assert counted.connect_failures == 0


def test_reset_out_of_window(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """A reset that no receiver would take is none."""
    client, _server = ends(tap)
    tap.run(client.segment(b"", RST, client.seq + 2**30))
    assert counts().resets_by_client == 0


def test_sent_again(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """Data sent again counts for both directions, whole or with new data behind it."""
    client, server = ends(tap)
    tap.run(client.segment(POST, ACK, client.seq - len(POST)))
    tap.run(server.segment(OK, ACK, server.seq - len(OK)))
    tap.run(server.segment(OK[9:], ACK, server.seq - len(OK) + 9))
    client.send(POST)
    server.send(HEAD[:50])
    server.seq -= 20
    server.send(HEAD[30:])
    assert sizes(counts()) == (0, 4, 0)
    assert tap.counted().resyncs == 0


def test_signs_of_life(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """Keep-alive and window probes, which repeat the last byte or none, bare ACKs and a FIN said
    again are no retransmissions.
    """
    client, server = ends(tap)
    for end in (client, server):
        tap.run(end.segment(b"", ACK, end.seq - 1))
        tap.run(end.segment(b"\0", ACK, end.seq - 1))
        tap.run(end.segment(b"", ACK, end.seq - 50))
    client.send(POST)
    server.send(HEAD)
    tap.run(server.segment(b"5", ACK))
    server.seq += 1
    for _ in range(3):
        tap.run(server.segment(b"5", ACK, server.seq - 1))
    client.fin()
    tap.run(client.segment(b"", FIN | ACK, client.seq - 1))
    assert sizes(counts()) == (0, 0, 0)


def test_overtaken(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """Segments that come behind later ones were overtaken, in any order; once that is long ago the
    same bytes were sent again.
    """
    while True:  # until a round was played faster than the bound
        _, server = ends(tap)
        tap.probe.watch([])
        tap.probe.watch([PORT])
        server.peer.send(POST)  # type: ignore[union-attr]  # it has one
        server.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1009\r\n\r\n")
        parts = [server.segment(b"%010d" % i, ACK, server.seq + i * 10) for i in range(7)]
        began = time.monotonic()
        for index in (0, 2, 4, 3, 1, 6, 5):
            tap.run(parts[index])
        if time.monotonic() - began < REORDERING:
            break
    assert sizes(counts()) == (0, 0, 3)
    wait(REORDERING)
    tap.run(parts[5])
    assert sizes(counts()) == (0, 1, 3)


def test_lost_before_us(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """What fills a hole later than reordering explains was lost on the way and sent again."""
    client, server = ends(tap)
    client.send(POST)
    start = server.seq
    server.skip(40)
    server.send(b"x" * 40)
    wait(REORDERING)
    tap.run(server.segment(b"y" * 40, ACK, start))
    assert sizes(counts()) == (0, 1, 0)


def test_joined_late(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """On a connection taken up in mid-stream what is new is no retransmission, and what was
    acknowledged before is one.
    """
    client, server = tap.connect(opened=False)
    client.seq, server.seq = 70_001, 90_001
    client.send(POST)
    server.send(OK)
    client.send(POST)
    assert sizes(counts()) == (0, 0, 0)
    tap.run(client.segment(POST, ACK, client.seq - len(POST)))
    assert sizes(counts()) == (0, 1, 0)


def shut(flow: Flow) -> bytes:
    """A bare ACK that takes no more: a window of 0."""
    frame = bytearray(flow.segment(b"", ACK))
    at = 14 + 20 + 14
    frame[at : at + 2] = b"\0\0"
    return bytes(frame)


def test_zero_windows(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """A window that closes counts once, however often that is said, and again once data came."""
    client, server = ends(tap)
    client.send(POST)
    server.send(HEAD + chunk(token()))
    for _ in range(3):
        tap.run(shut(client))
    tap.run(server.segment(b"", ACK, server.seq - 1))  # the probe of a window
    tap.run(shut(client))
    assert counts().zero_windows_by_client == 1
    server.send(chunk(token()))
    tap.run(shut(client))
    tap.run(shut(server))
    counted = counts()
    assert (counted.zero_windows_by_client, counted.zero_windows_by_server) == (2, 1)
    assert sizes(counted) == (0, 0, 0)


def test_only_watched(tap: Tap, counts: Callable[[], TcpCounts]) -> None:
    """A port that is left is no longer told, and starts anew when it is watched again."""
    ends(tap)
    assert counts().connects == 1
    tap.probe.watch([9])
    ends(tap)
    assert tap.probe.tcp() == {9: TcpCounts()}
    tap.probe.watch([PORT])
    assert counts() == TcpCounts()


def settled(probe: WireProbe, port: int, wanted: dict[str, int]) -> TcpCounts:
    """The counts once these have come, waited for up to five seconds: packets travel alone."""
    end = time.monotonic() + 5
    while True:
        counted = probe.tcp()[port]
        if all(getattr(counted, name) >= n for name, n in wanted.items()):
            return counted
        assert time.monotonic() < end, counted
        select.select([], [], [], 0.005)


def test_on_loopback(probe: WireProbe) -> None:
    """On lo, where each packet is seen twice, connects, resets and refusals of real sockets count
    once, and nothing counts as sent again.
    """
    with listening() as listener:
        port = listener.getsockname()[1]
        probe.watch([port])
        for side in (0, 1, 0):
            with connected(listener) as pair:
                pair.ask(POST)
                pair.answer(HEAD + chunk(token()) * 997)
                reset((pair.client, pair.server)[side])
        wanted = {"resets_by_client": 2, "resets_by_server": 1}
        settled(probe, port, wanted)
    for _ in range(5):
        with socket.socket() as refused:
            assert refused.connect_ex(("127.0.0.1", port))
    counted = settled(probe, port, {"connect_failures": 5})
    assert (counted.connects, counted.connect_failures, sum(counted.handshakes)) == (8, 5, 3)
    assert (counted.resets_by_client, counted.resets_by_server) == (2, 1)
    assert sizes(counted) == (0, 0, 0)


def test_slow_reader_on_loopback(probe: WireProbe) -> None:
    """A client that does not read closes its window: seen as the client's."""
    with listening() as listener, connected(listener) as pair:
        probe.watch([pair.port])
        pair.ask(POST)
        pair.server.setblocking(False)
        sent = pair.server.send(HEAD)
        try:
            while True:
                sent += pair.server.send(b"x" * 65_536)
        except BlockingIOError:
            assert sent > 65_536
        counted = settled(probe, pair.port, {"zero_windows_by_client": 1})
        assert counted.zero_windows_by_server == 0
        assert sizes(counted)[1:] == (0, 0)
