"""The table of connections: what is open, what is given up, and when that ended."""

from __future__ import annotations

import time

import pytest

from sidecar.probed.frames import OpenCount
from sidecar.probed.wire_table import UNUSED_NS
from sidecar.signals import End
from tests.probed.segments import HEAD, PORT, POST, Tap, chunk, token

pytestmark = pytest.mark.ebpf
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
IDLE = 600 * 10**9


def test_sweep(tap: Tap) -> None:
    """A sweep tells what is open, oldest first; an idle connection ends as lost and is gone."""
    now = 2**62
    paths = []
    for index in range(3):
        client, server = tap.connect()
        client.send(b"GET /%d HTTP/1.1\r\n\r\n" % index)
        server.send(HEAD + chunk(token()))
    swept = tap.probe.sweep(now, now, 2)
    paths = [tap.decode(record) for record in swept.open]
    assert [(r.path, r.end, r.token_events) for r in paths] == [
        ("/0", End.OPEN, 1),
        ("/1", End.OPEN, 1),
    ]
    opened = swept.of(PORT)
    assert (opened.count, swept.lost) == (3, ())
    assert opened.oldest_ns == int.from_bytes(swept.open[0][:8], "little")
    lost = tap.probe.sweep(now, 1, 2).lost
    assert sorted(tap.decode(r).path for r in lost) == ["/0", "/1", "/2"]
    assert tap.decode(lost[0]).end is End.LOST
    assert tap.probe.sweep(now, now, 2).of(PORT) == OpenCount(PORT, 0, 0)


@pytest.mark.parametrize("left", [True, False])
def test_given_up(tap: Tap, left: bool) -> None:
    """What is given up ended when it was last heard of: as left by its client, or as lost."""
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD + chunk(token()))
    if left:
        client.fin()
    heard = time.monotonic_ns()
    assert tap.probe.sweep(heard + IDLE - 10**9, IDLE, 9).lost == ()
    (record,) = tap.probe.sweep(heard + IDLE + 10**9, IDLE, 9).lost
    timing = tap.decode(record)
    assert timing.end is (End.CLIENT_GONE if left else End.LOST)
    assert timing.last_token_seconds is not None
    assert timing.last_token_seconds <= timing.seconds < 5
    assert int.from_bytes(record[40:48], "little") <= heard


def test_open_counts_all(tap: Tap) -> None:
    """Every open request is counted, beyond the limit of reports and however young."""
    now = time.monotonic_ns()
    for _ in range(31):
        client, _server = tap.connect()
        client.send(POST)
    swept = tap.probe.sweep(time.monotonic_ns(), IDLE, 7)
    assert (len(swept.open), swept.of(PORT).count, swept.of(9)) == (7, 31, OpenCount(9, 0, 0))
    assert now < swept.of(PORT).oldest_ns < time.monotonic_ns()


def test_connections_without_a_request(tap: Tap) -> None:
    """Half heads, single bytes and kept connections hold no place for long; what asks again after
    that is followed again.
    """
    for first in (b"G", b"POST /v1/completions HTT", POST):
        client, server = tap.connect()
        client.send(first)
        server.send(OK)
    now = time.monotonic_ns()
    held = len(list(_keys(tap)))
    assert held == 3
    assert tap.probe.sweep(now + UNUSED_NS - 10**9, IDLE, 9).lost == ()
    assert len(list(_keys(tap))) == 3
    assert tap.probe.sweep(now + UNUSED_NS + 10**9, IDLE, 9).lost == ()
    assert list(_keys(tap)) == []
    client.send(POST)
    server.send(OK)
    assert [r.status for r in tap.records()] == [200, 200]


def _keys(tap: Tap) -> list[bytes]:
    size = tap.probe._conns.key_bytes
    return [
        keys[i * size :][:size] for keys, _, n in tap.probe._conns.batches(256) for i in range(n)
    ]
