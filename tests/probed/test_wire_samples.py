"""Whole responses of engines: llama.cpp's as recorded from the server that xllamacpp ships, vLLM's
in the shape of its own stream (role, reasoning, content, tool call, finish, usage, [DONE]).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.signals import End
from tests.probed.segments import POST, Tap

pytestmark = pytest.mark.ebpf
FIXTURES = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize(
    ("name", "events", "tokens"), [("llama_cpp.http", 10, 7), ("vllm.http", 12, 8)]
)
def test_every_split(tap: Tap, name: str, events: int, tokens: int) -> None:
    """Cut in two at any byte, or into packets of any small prime, a sample counts the same."""
    sample = (FIXTURES / name).read_bytes()
    client, server = tap.connect()
    for at in range(1, len(sample)):
        client.send(POST)
        server.send(sample[:at])
        server.send(sample[at:])
        record = tap.only()
        assert (record.events, record.token_events) == (events, tokens), f"cut at {at}"
        assert (record.end, record.streamed, record.resynced) == (End.COMPLETE, True, False)
    for size in (1, 2, 3, 5, 7, 11, 13, 101):
        client.send(POST)
        server.send(sample, size=size)
        assert tap.only().token_events == tokens
    assert tap.counted().resyncs == 0


def test_many_samples_in_a_packet(tap: Tap) -> None:
    """Head, events and end may share a packet: nothing but the first token has a gap."""
    sample = (FIXTURES / "vllm.http").read_bytes()
    client, server = tap.connect()
    client.send(POST)
    server.send(sample, size=len(sample))
    record = tap.only()
    assert (record.events, record.gaps, record.largest_gap_seconds) == (12, ((0, 7),), 0.0)
    assert record.ttft_seconds == record.ttfb_seconds == record.last_token_seconds
