"""No byte of prompt, output text, query or of another header than those that are picked is left in
the program's memory, at no moment between two packets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.probed import loaders
from sidecar.probed.kernel import Map, Ring, possible_cpus
from sidecar.probed.wire import MAPS, PROGRAMS
from tests.probed.reference import SECRET
from tests.probed.segments import ACK, HEAD, LAST, PORT, SYN, Flow, chunk, run_filter

pytestmark = pytest.mark.ebpf
HASHES, PER_CPU = ("conns", "notes"), ("works", "blanks", "tallies")
MARK = b"zqJwXkYv"
WHOLE = MARK * 9
REQUEST = (
    b"POST /v1/chat?key=%s HTTP/1.1\r\nAuthorization: Bearer %s\r\nCookie: a=%s\r\n"
    b"x-request-id: kept-id\r\n%s: %s\r\nContent-Length: 1700\r\n\r\n"
) % (WHOLE, WHOLE, WHOLE, WHOLE, WHOLE)
BODY = (b'{"messages":[{"role":"user","content":"' + WHOLE * 30)[:1698] + b'"}'
EVENT = b'data: {"id":"cmpl-1","choices":[{"delta":{"role":"%s","content":"%s"}}]}\n\n'
ANSWER = [
    HEAD[:-2] + b"set-cookie: %s\r\nx-other: %s\r\n\r\n" % (WHOLE, WHOLE),
    chunk(EVENT % (MARK, WHOLE)),
    chunk(b'event: %s\ndata: {"%s":"%s","error":"%s"}\n\n' % (MARK, WHOLE, WHOLE, WHOLE)),
    chunk(b": %s\ndata: {" % WHOLE + b'"logprobs":"%s"}\n\n' % (WHOLE * 20)),
    chunk(b"data: " + WHOLE + b"\n\n"),
]


class Memory:
    """The program and all of its maps."""

    def __init__(self, loader: str) -> None:
        self.loaded = loaders.load(loader, "wire", PROGRAMS, (*MAPS, "notes", "works", "blanks"))
        self.maps = self.loaded.maps
        Map(self.maps["secrets"]).update(b"\0" * 4, SECRET)
        Map(self.maps["ports"]).update(PORT.to_bytes(2, "little"), b"\1")
        self.ring = Ring(self.maps["records"], Map(self.maps["records"]).max_entries)
        cpus = possible_cpus(Path("/sys/devices/system/cpu/possible").read_text())
        self.per_cpu = [Map(self.maps[name], cpus) for name in PER_CPU]

    def dump(self) -> bytes:
        """Every byte that a map holds now, read or not."""
        parts = [bytes(self.ring._data)]
        for name in HASHES:
            for keys, values, count in Map(self.maps[name]).batches(64):
                parts += [keys, bytes(values[: count * Map(self.maps[name]).value_bytes])]
        return b"\0".join([*parts, *(one.lookup(b"\0" * 4) or b"" for one in self.per_cpu)])

    def close(self) -> None:
        """Frees them."""
        self.ring.close()
        self.loaded.close()


@pytest.fixture(params=["prebuilt", pytest.param("bcc", marks=pytest.mark.slow)])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    """A program of its own, whose memory nothing else has touched."""
    taken = Memory(request.param)
    yield taken
    taken.close()


def left_behind(dump: bytes) -> set[bytes]:
    """Which pieces of four bytes of the marker are there, in either case."""
    turned = MARK + MARK[:3]
    pieces = {turned[at : at + 4] for at in range(len(MARK))}
    return {piece for piece in pieces | {p.lower() for p in pieces} if piece in dump}


class End(Flow):
    """One end whose packets go to the program, each followed by a look at its memory."""

    memory: Memory

    def say(self, data: bytes, size: int) -> None:
        """Sends in packets of ``size``."""
        for at in range(0, len(data), size):
            part = data[at : at + size]
            run_filter(self.memory.loaded.programs["wire"], self.segment(part, ACK))
            self.seq += len(part)
            assert left_behind(self.memory.dump()) == set(), f"behind {data[: at + size][-40:]!r}"


def pair(memory: Memory, port: int) -> tuple[End, End]:
    """A new connection."""
    client = End(None, ("198.51.100.7", port), ("192.0.2.1", PORT), 5000)  # type: ignore[arg-type]  # no tap
    server = End(None, ("192.0.2.1", PORT), ("198.51.100.7", port), 9000, client)  # type: ignore[arg-type]
    client.peer = server
    client.memory = server.memory = memory
    run_filter(memory.loaded.programs["wire"], client.segment(b"", SYN, client.seq - 1))
    return client, server


@pytest.mark.parametrize("size", [61, 2999])
def test_nothing_is_left(memory: Memory, size: int) -> None:
    """In the middle of a head, of a body and of a stream, and after the end."""
    client, server = pair(memory, 7)
    client.say(REQUEST + BODY, size)
    assert b"kept-id" in memory.dump()  # what is looked at is the memory
    for part in ANSWER:
        server.say(part, size)
    server.say(LAST, 5)
    assert b"/v1/chat\0" in memory.dump()
    (record,) = memory.ring.drain()
    assert b"kept-id" in record


def test_broken_off(memory: Memory) -> None:
    """Not after bytes that were missed, prose, a refused request or a connection cut short."""
    client, server = pair(memory, 11)
    client.say(REQUEST, 997)
    client.skip(100)
    client.say(BODY[100:] + WHOLE, 701)
    server.say(ANSWER[0] + b"ff\r\n" + WHOLE, 499)
    server.skip(11)
    server.say(WHOLE + ANSWER[1] + ANSWER[3], 499)
    for port, first in ((13, WHOLE), (17, b"POST " + WHOLE), (19, b"GET /a HTTP/1.1 " + WHOLE)):
        client, server = pair(memory, port)
        client.say(first, 2999)
        server.say(WHOLE, 2999)
