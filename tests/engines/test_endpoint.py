"""Tests of sidecar.engines.endpoint; what comes instead of metrics is in the collector's tests."""

from __future__ import annotations

import socket

import pytest

from sidecar.engines.endpoint import Endpoint
from sidecar.engines.exposition import Exposition
from sidecar.signals import Absence, NoData
from tests.engines.reading import keeping
from tests.engines.serve import Serve, answering, server

KEEP = keeping("a", "b")


def get(serve: Serve, seconds: float = 5.0) -> Exposition:
    with server(serve) as url:
        endpoint = Endpoint(f"{url}/metrics", seconds)
        try:
            return endpoint.get(KEEP)
        finally:
            endpoint.close()


def counts(found: Exposition) -> dict[str, float]:
    return {name: sum(family.values.values()) for name, family in found.families.items()}


def sending(head: str, *pieces: bytes) -> Serve:
    """A ``serve`` with a head of its own, a piece at a time."""

    def serve(connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        for piece in pieces:
            connection.sendall(piece)

    return serve


def test_it_asks_for_plain_text_unpacked() -> None:
    """OpenMetrics of some clients rewrites names, and what is packed may be gigabytes."""
    heads: list[str] = []
    with server(answering(b"a 7\n"), heads) as url:
        Endpoint(f"{url}/m?x=1", 5.0).get(KEEP)
    asked = heads[0].lower()
    assert asked.startswith("get /m?x=1 http/1.1")
    assert "accept: text/plain;version=0.0.4" in asked
    assert "accept-encoding: identity" in asked


def test_pieces_are_put_together() -> None:
    """A line may be cut anywhere."""
    length = "Content-Length: 9"
    assert counts(get(sending(length, b"a", b" 12", b"3\nb ", b"7"))) == {"a": 123, "b": 7}


def test_chunks_are_a_whole_answer() -> None:
    """Its end is told, so a last line without one counts."""
    body = (b"5\r\na 7\nb\r\n", b"3\r\n 12\r\n0\r\n\r\n")
    assert counts(get(sending("Transfer-Encoding: chunked", *body))) == {"a": 7, "b": 12}


def test_an_answer_that_only_ends_may_have_broken_off() -> None:
    """Without a length nothing tells whether 12 was 1234: that line is not believed."""
    assert counts(get(sending("Connection: close", b"a 7\nb 12"))) == {"a": 7}


def test_exemplars_belong_to_openmetrics() -> None:
    """By what the answer says it is."""
    body = b'a 7 # {trace_id="6c10"} 0.5\n# EOF\n'
    length = f"Content-Length: {len(body)}"
    openmetrics = f"{length}\r\nContent-Type: application/openmetrics-text; version=1.0.0"
    assert get(sending(openmetrics, body)).exemplars == 0
    assert get(sending(f"{length}\r\nContent-Type: text/plain", body)).exemplars == 1


def test_a_closed_one_says_so() -> None:
    """Closing takes effect on the next request too; the collector opens another."""
    with server(answering(b"a 7\n")) as url:
        endpoint = Endpoint(url, 5.0)
        endpoint.close()
        with pytest.raises(NoData) as caught:
            endpoint.get(KEEP)
    assert caught.value.absence is Absence.CLOSED
