"""Two CPUs at one connection: packets of its two directions, or one packet seen twice, at once."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter

import pytest

from sidecar.probed.frames import RECORD_BYTES
from sidecar.probed.wire import WireProbe
from sidecar.signals import End
from tests.probed.segments import ACK, DONE, HEAD, LAST, POST, RST, Tap, chunk, token

pytestmark = [
    pytest.mark.ebpf,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
]
ROUNDS = 997


def at_once(tap: Tap, first: list[bytes], second: list[bytes], spins: int) -> None:
    """Runs two lists of packets on two CPUs, the second ones a little later."""
    cpus = sorted(os.sched_getaffinity(0))
    gate = threading.Barrier(2)

    def play(packets: list[bytes], cpu: int, wait: int) -> None:
        os.sched_setaffinity(0, {cpu})
        gate.wait()
        for _ in range(wait):
            continue
        for packet in packets:
            tap.run(packet)

    other = threading.Thread(target=play, args=(second, cpus[1], spins))
    other.start()
    try:
        play(first, cpus[0], 0)
    finally:
        other.join()
        os.sched_setaffinity(0, cpus)


def test_reset_during_the_answer(tap: Tap) -> None:
    """A client that resets while its answer is being read leaves one whole record, never a ghost:
    no record without its status, with half a path, or with tokens of another request.
    """
    rng = random.Random(7)
    events = b"".join(chunk(token()) for _ in range(31))
    seen: Counter[str] = Counter()
    for _ in range(ROUNDS):
        client, server = tap.connect()
        client.send(POST)
        answer = server.segment(HEAD + events + chunk(DONE) + LAST, ACK)
        at_once(tap, [answer], [client.segment(b"", RST | ACK)], rng.randrange(40))
        records = tap.records()
        assert [(r.path, r.method) for r in records] == [("/v1/chat/completions", "POST")]
        (record,) = records
        seen[record.end] += 1
        whole = (record.status, record.token_events, record.end) == (200, 31, End.COMPLETE)
        assert whole or (record.token_events, record.end) == (0, End.CLIENT_GONE)
    assert tap.counted().requests == ROUNDS
    assert len(seen) == 2, "the two never met: nothing was tested"


def test_one_packet_on_two_cpus(tap: Tap) -> None:
    """On lo both sights of a packet may be read at once: it counts once, from the first on."""
    for index in range(ROUNDS):
        client, server = tap.connect(opened=index % 2 == 0)
        request = [client.segment(POST, ACK)]
        at_once(tap, request, request, 0)
        client.seq += len(POST)
        body = HEAD + b"".join(chunk(token()) for _ in range(7))
        answer = [server.segment(body, ACK)]
        at_once(tap, answer, answer, 0)
        server.seq += len(body)
        server.send(LAST)
        record = tap.only()
        assert (record.token_events, record.end, record.resynced) == (7, End.COMPLETE, False)
        assert (record.path, record.response_bytes) == ("/v1/chat/completions", len(body) + 5)
    counted = tap.counted()
    assert (counted.requests, counted.pipelined, counted.not_http) == (ROUNDS, 0, 0)


def test_copies_touch_nothing(prebuilt: WireProbe) -> None:
    """Copies of packets, with FIN too, leave the connection as it is to the byte."""
    tap = Tap(prebuilt)
    client, server = tap.connect()
    client.send(POST)
    start = server.seq
    server.send(HEAD + chunk(token()))
    client.fin()
    (before,) = [bytes(v[: prebuilt._conns.value_bytes]) for _, v, _ in prebuilt._conns.batches(9)]
    tap.run(client.segment(b"", 0x11, client.seq - 1))
    tap.run(client.segment(POST, ACK, client.seq - 1 - len(POST)))
    tap.run(server.segment(HEAD, ACK, start))
    tap.run(client.segment(b"\0", ACK, client.seq - 2))
    (after,) = [bytes(v[: prebuilt._conns.value_bytes]) for _, v, _ in prebuilt._conns.batches(9)]
    assert after == before
    tap.forget_all()


def test_contended(prebuilt: WireProbe) -> None:
    """A lock that is not given back costs a packet, counted under its own name, and the next one
    sees bytes missed.
    """
    tap = Tap(prebuilt)
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD)
    conns = prebuilt._conns
    ((keys, values, _),) = [(k, bytes(v[: conns.value_bytes]), n) for k, v, n in conns.batches(9)]
    lock = RECORD_BYTES + 16
    conns.update(keys[: conns.key_bytes], values[:lock] + b"\1\0\0\0" + values[lock + 4 :])
    server.send(chunk(token()))
    assert tap.counted().contended == 1
    tap.run(client.segment(POST, ACK, client.seq - len(POST)))  # a copy asks for no lock
    assert tap.counted().contended == 1
    conns.update(keys[: conns.key_bytes], values)
    server.send(chunk(token()) + chunk(DONE) + LAST)
    record = tap.only()
    assert (record.token_events, record.resynced, record.end) == (1, True, End.COMPLETE)
    assert tap.counted().contended == 1


def test_memory_of_another_connection(prebuilt: WireProbe) -> None:
    """A connection found under a key that is not its own, as when its memory was given up and used
    again, is left alone.
    """
    tap = Tap(prebuilt)
    client, server = tap.connect()
    client.send(POST)
    conns = prebuilt._conns
    ((keys, values, _),) = [(k, bytes(v[: conns.value_bytes]), n) for k, v, n in conns.batches(9)]
    key, at = keys[: conns.key_bytes], RECORD_BYTES + 112
    assert values[at : at + len(key)] == key
    other = values[:at] + b"\1" + values[at + 1 :]
    conns.update(key, other)
    server.send(HEAD + chunk(token()))
    client.reset()
    assert conns.lookup(key) == other
    conns.update(key, values)
    client.reset()
    assert tap.only().end is End.CLIENT_GONE
