"""Floods, ports that are used again at once, and a target that goes while the tap comes."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from rig.scripted import EVENTS, TOKENS
from sidecar.probed.wire import WireProbe
from sidecar.signals import End, Leg, RequestTiming
from sidecar.testing import wait_for
from tests.e2e.exchanges import Load, exchanged
from tests.e2e.isolation import in_own_network, route_to_nobody
from tests.e2e.serving import running, scripted
from tests.e2e.tapping import Tapped, exact, whole
from tests.probed.segments import ACK, DONE, HEAD, LAST, POST, SYN, chunk, token
from tests.probed.sockets import connected, listening, reset

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]
FLOOD = 20_011
TABLE = 16_384  # MAX_CONNECTIONS of wire_state.h
LUMP = b"POST /lump HTTP/1.1\r\nHost: rig\r\nContent-Length: 2\r\n\r\n{}"
# Streams for ever to whoever comes, and says where it listens.
VICTIM = f"""
import socket
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    link, _ = listener.accept()
    link.recv(65536)
    link.sendall({HEAD!r})
    while True:
        link.sendall({chunk(token())!r})
"""


@contextmanager
def tapped(port: int) -> Iterator[Tapped]:
    """A tap of the calling thread's network on one port."""
    with closing(WireProbe("prebuilt")) as probe:
        tap = Tapped(probe, {port: Leg.UPSTREAM})
        try:
            yield tap
        finally:
            tap.stop()


def spoofed(at: int, host: str, port: int, flags: int, payload: bytes = b"") -> bytes:
    """A TCP segment of the ``at``-th connection from an address where nobody is, with a correct
    checksum: a listener takes no other.
    """
    source = bytes([198, 51, 100, 1 + at % 250])
    target = socket.inet_aton(host)
    seq = 1000 + (not flags & SYN)
    ports = struct.pack(">HH", 1024 + at // 250, port)
    tcp = ports + struct.pack(">IIBBHHH", seq, 1, 0x50, flags, 65535, 0, 0) + payload
    pseudo = source + target + struct.pack(">HH", 6, len(tcp)) + tcp + b"\0" * (len(tcp) % 2)
    total = sum(struct.unpack(f">{len(pseudo) // 2}H", pseudo))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    tcp = tcp[:16] + struct.pack(">H", ~total & 0xFFFF) + tcp[18:]
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0x4000, 64, 6, 0)
    return head + source + target + tcp


def flood(host: str, port: int, payload: bytes = b"") -> None:
    """FLOOD connections that are never completed; with a payload, ones that begin all the same."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for at in range(FLOOD):
            raw.sendto(spoofed(at, host, port, SYN), (host, 0))
            if payload:
                raw.sendto(spoofed(at, host, port, ACK, payload), (host, 0))


def one_stream(listener: socket.socket) -> None:
    """Nineteen events on a real connection."""
    with connected(listener) as pair:
        pair.ask(POST)
        pair.answer(HEAD + b"".join(chunk(token(str(at))) for at in range(19)) + chunk(DONE) + LAST)


def test_half_open_connections_take_no_place() -> None:
    """20,011 SYNs and nothing more are no connection, no request and no noise; a real request in
    their midst is exact.
    """

    def work() -> None:
        route_to_nobody()
        with listening() as listener, tapped(listener.getsockname()[1]) as tap:
            flood("127.0.0.1", listener.getsockname()[1])
            one_stream(listener)
            (one,) = tap.wait(Leg.UPSTREAM)
            assert (one.events, one.token_events, one.end) == (19, 19, End.COMPLETE)
            counted = tap.counted()
            assert counted.packets >= FLOOD
            assert (counted.requests, counted.not_http, counted.table_full) == (1, 0, 0)
            assert tap.open() == 0

    in_own_network(work)


def test_connections_that_send_half_a_head_fill_the_table_and_no_more() -> None:
    """20,011 begun requests: 16,384 have a place, the others are counted. The next sweep makes room
    for new ones, at the price of the oldest.
    """

    def work() -> None:
        route_to_nobody()
        with listening() as listener, tapped(listener.getsockname()[1]) as tap:
            # To nobody: a listener would answer each with a reset, and that would be its end.
            flood("198.51.100.254", listener.getsockname()[1], b"POST /half HTTP/1.1\r\nx: ")
            counted = tap.counted()
            assert (counted.table_full, counted.folded) == (FLOOD - TABLE, 0)
            room = len(tap.probe.sweep(time.monotonic_ns(), 2**62, 0).lost)
            assert tap.counted().folded == room >= TABLE // 16
            one_stream(listener)
            (one,) = tap.wait(Leg.UPSTREAM, path="/v1/chat/completions")
            assert (one.events, one.token_events, one.end) == (19, 19, End.COMPLETE)
            assert tap.counted().table_full == FLOOD - TABLE

    in_own_network(work)


def test_a_server_restarted_on_its_port_at_once(probe: WireProbe, tmp_path: Path) -> None:
    """Killed under load and started again on the same port: the requests in flight were closed by
    the server, those of the new one are exact.
    """
    with listening() as chosen:
        port = chosen.getsockname()[1]
    tap = Tapped(probe, {port: Leg.DOWNSTREAM})
    try:
        for _ in range(3):
            with running(scripted(port), tmp_path) as part, closing(_endless(port)) as client:
                assert client.recv(1)
                part.send(signal.SIGKILL)
                while client.recv(1 << 16):
                    continue
        with running(scripted(port), tmp_path):
            exact(tap, Leg.DOWNSTREAM, exchanged(Load(port, requests=31)))
        cut = tap.wait(Leg.DOWNSTREAM, 3, "/endless")
        assert {one.end for one in cut} == {End.SERVER_CLOSED}
    finally:
        tap.stop()


def _endless(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
    client.sendall(LUMP.replace(b"/lump", b"/endless"))
    return client


def test_a_client_s_port_used_again_at_once(probe: WireProbe, tmp_path: Path) -> None:
    """Thirteen connections with the same four numbers, some reset in mid-stream: each its own."""
    with listening() as chosen, listening() as own:
        port, mine = chosen.getsockname()[1], own.getsockname()[1]
    with running(scripted(port), tmp_path):
        tap = Tapped(probe, {port: Leg.DOWNSTREAM})
        try:
            for at in range(13):
                with socket.socket() as client:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    client.settimeout(20)
                    client.bind(("127.0.0.1", mine))
                    client.connect(("127.0.0.1", port))
                    whole_answer = at % 3 != 1
                    client.sendall(LUMP if whole_answer else LUMP.replace(b"lump", b"endless"))
                    said = b""
                    while (b"[DONE]" if whole_answer else b"word7") not in said:
                        said += client.recv(1 << 16)
                    reset(client)
            ended = tap.wait(Leg.DOWNSTREAM, 9, "/lump")
            cut = tap.wait(Leg.DOWNSTREAM, 4, "/endless")
        finally:
            tap.stop()
    facts = {(one.events, one.token_events, one.status) for one in whole(ended, tap.counted())}
    assert facts == {(EVENTS, TOKENS, 200)}
    assert {one.end for one in cut} == {End.CLIENT_GONE}


def test_a_target_that_ends_while_the_tap_is_attached() -> None:
    """Killed at a random moment of loading, attaching or watching: the tap comes up, and measures
    the next server on the same port.
    """
    rng = random.Random(8111)
    for _ in range(7):
        victim = Popen((sys.executable, "-c", VICTIM), stdout=PIPE)
        assert victim.stdout is not None
        port = int(victim.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(POST)
            killer = threading.Timer(rng.uniform(0, 0.1), victim.kill)
            killer.start()
            with tapped(port) as tap:
                killer.join()
                victim.communicate()
                reset(client)
                with socket.create_server(("127.0.0.1", port)) as listener:
                    one_stream(listener)
                # The victim's own stream may have a record, too: taken up in its middle.
                wait_for(lambda tap=tap: len(complete(tap)) == 1, 10, "the new server's request")
                (one,) = complete(tap)
                assert (one.events, one.token_events) == (19, 19)


def complete(tap: Tapped) -> list[RequestTiming]:
    """The requests that came to their end."""
    return [one for one in tap.seen(Leg.UPSTREAM) if one.end is End.COMPLETE]
