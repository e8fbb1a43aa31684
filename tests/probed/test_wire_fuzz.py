"""Random streams: the kernel's counts against a reference parser, and garbage against the kernel.

The seed of a case is its number; a failure prints it.
"""

from __future__ import annotations

import random

import pytest

from sidecar.signals import End
from tests.probed import reference
from tests.probed.segments import ACK, HEAD, PORT, POST, Tap, chunk, token

pytestmark = pytest.mark.ebpf
CASES = 997


@pytest.mark.parametrize("first", range(0, CASES, 101))
def test_counts_equal_the_reference(tap: Tap, first: int) -> None:
    """Events, token events, the end and the hashes of random exchanges are the reference parser's,
    however the bytes are chunked, cut into segments, copied or sent again.
    """
    for seed in range(first, min(first + 101, CASES)):
        rng = random.Random(seed)
        body = reference.body(rng)
        wanted = reference.count(body)
        data, closes = reference.response(rng, body)
        client, server = tap.connect(ipv6=rng.random() < 0.3)
        asked, key = reference.request(rng)
        for offset, part in reference.packets(rng, asked):
            for _ in range(2):
                tap.run(client.segment(part, ACK, client.seq + offset))
        client.seq += len(asked)
        start = server.seq
        for offset, part in reference.packets(rng, data):
            tap.run(server.segment(part, ACK, start + offset))
        server.seq = start + len(data)
        if closes:
            server.fin()
        record = tap.only()
        seen = reference.Counts(
            record.events,
            record.token_events,
            record.end is End.ERROR_EVENT,
            record.unclassified,
            record.response_key,
        )
        assert seen == wanted, f"seed {seed}"
        assert (record.body_key, record.request_bytes) == (key, len(asked)), f"seed {seed}"
        assert record.end in (End.COMPLETE, End.ERROR_EVENT), f"seed {seed}"
        assert (record.resynced, record.response_bytes) == (False, len(data)), f"seed {seed}"
        assert sum(n for _, n in record.gaps) == max(record.token_events - 1, 0), f"seed {seed}"
    assert tap.counted().resyncs == 0


def noise(tap: Tap, rng: random.Random) -> None:
    """Good, broken and random bytes with losses, closes and odd flags, on many connections."""
    good = POST + HEAD + chunk(token()) + b"GET /a?b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
    for _ in range(61):
        ends = tap.connect(opened=rng.random() < 0.8)
        for _ in range(rng.randrange(9)):
            end = rng.choice(ends)
            data = bytearray(good[rng.randrange(len(good)) :] if rng.random() < 0.5 else POST)
            for _ in range(rng.choice((0, 1, 5, 101))):
                data[rng.randrange(len(data))] = rng.randrange(256)
            end.send(bytes(data), rng.choice((ACK, ACK, ACK, 0x11, 0x14, 0x12, 0x02, 0xFF)))
            end.skip(rng.choice((0, 0, 0, 3, 70_000, 2**31 + 5)))


def lossy(tap: Tap, rng: random.Random) -> None:
    """Requests with random streams of which some packets are missing."""
    client, server = tap.connect()
    for _ in range(29):
        client.send(POST)
        data, _ = reference.response(rng, reference.body(rng))
        start = server.seq
        for offset, part in reference.packets(rng, data):
            if rng.random() < 0.9:
                tap.run(server.segment(part, ACK, start + offset))
        server.seq = start + len(data)


@pytest.mark.parametrize("seed", range(7))
def test_garbage(tap: Tap, seed: int) -> None:
    """Random and broken bytes, losses and closes never break the filter, reach a path, or keep the
    next good request from being seen.
    """
    rng = random.Random(seed)
    noise(tap, rng)
    for record in tap.records():
        assert record.path.isascii()
        assert record.path.isprintable() or not record.path
        assert record.server.endswith(f":{PORT}")
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()) + b"0\r\n\r\n")
    assert tap.only().token_events == 1


@pytest.mark.parametrize("seed", range(13))
def test_loaders_agree(taps: tuple[Tap, Tap], seed: int) -> None:
    """Fed the same segments, both loaders' programs give the same records and counters."""
    seen = []
    for tap in taps:
        tap.restart_ports()
        noise(tap, random.Random(seed))
        lossy(tap, random.Random(seed))
        records = [
            (r.method, r.path, r.status, r.end, r.events, r.token_events, r.request_bytes,
             r.response_bytes, r.streamed, r.encoded, r.resynced, r.trace_id, r.request_id,
             r.body_key, r.response_key, r.unclassified, sum(n for _, n in r.gaps))
            for r in tap.records()
        ]  # fmt: skip
        seen.append((records, tap.counted()))
    assert seen[0] == seen[1]
    assert len(seen[0][0]) > 30
