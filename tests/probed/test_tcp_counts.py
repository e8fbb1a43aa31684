"""What TCP suffered, as it travels: round trips, and bodies of a hostile peer."""

from __future__ import annotations

import random
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from sidecar.probed import tcp_counts, wire
from sidecar.probed.tcp_counts import (
    BODY_BYTES,
    HANDSHAKE_BUCKETS,
    MAX_PORTS_A_BODY,
    TcpCounts,
    pack_tcp,
    unpack_tcp,
)

ONE = TcpCounts(*range(11, 22), tuple(range(101, 101 + HANDSHAKE_BUCKETS)))


def test_round_trip() -> None:
    """Every count comes back under its name, for as many ports as a body holds, and it fits."""
    counts = {port: replace(ONE, connects=2**64 - port) for port in range(1, MAX_PORTS_A_BODY + 1)}
    body = pack_tcp(counts)
    assert len(body) <= BODY_BYTES
    assert unpack_tcp(body.ljust(952, b"\0")) == counts
    assert unpack_tcp(pack_tcp({})) == {}
    assert MAX_PORTS_A_BODY >= 3


def test_too_many_ports() -> None:
    """More ports than a body holds are refused, with what to do about it."""
    with pytest.raises(ValueError, match="send several"):
        pack_tcp(dict.fromkeys(range(1, MAX_PORTS_A_BODY + 2), ONE))


@pytest.mark.parametrize("bad", [replace(ONE, connects=-1), replace(ONE, handshakes=(1,))])
def test_out_of_range(bad: TcpCounts) -> None:
    """A count beyond range, or of another shape, is named with its port and not cut."""
    with pytest.raises(ValueError, match="port 17"):
        pack_tcp({17: bad})


@pytest.mark.parametrize(
    "body", [b"", b"\x01", b"\xff" * 940, b"\x04" + b"\1" * 939, b"\1" + b"\0" * 939]
)
def test_bad_body(body: bytes) -> None:
    """A body cut short, of too many ports or of port 0 is refused."""
    with pytest.raises(ValueError, match="TCP counts"):
        unpack_tcp(body)


def test_random_bodies() -> None:
    """Random bytes raise ValueError or decode; nothing else happens."""
    rng = random.Random(7)
    for _ in range(997):
        body = bytes([rng.randrange(5)]) + rng.randbytes(rng.randrange(940))
        try:
            assert len(unpack_tcp(body)) <= MAX_PORTS_A_BODY
        except ValueError:
            continue


def test_names_of_the_kernel() -> None:
    """The kernel's counts have the names and the order of TcpCounts, and as many buckets."""
    text = (Path(wire.__file__).parent / "wire_state.h").read_text()
    found = re.search(r"enum health \{(.*?)\}", text, re.DOTALL)
    buckets = re.search(r"#define HANDSHAKE_BUCKETS (\d+)", text)
    assert found
    assert buckets
    names = [name.strip().lower() for name in found[1].split(",")]
    assert names == [*[f.name for f in fields(TcpCounts)][:-1], "healths"]
    assert int(buckets[1]) == tcp_counts.HANDSHAKE_BUCKETS
