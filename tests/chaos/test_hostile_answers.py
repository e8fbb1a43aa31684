"""Servers that send what nobody should: each is a failure in words, and nothing of it is kept."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from chaos.probing import Place, Prober
from chaos.sight import ALARMS, Sight
from chaos.target import Refused

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n%b\r\n"
MODELS = HEAD % b"" + b'{"data": [{"id": "tiny"}]}'
NESTED = b"[" * 100_000
GROWN = 64 << 20  # bytes that we may grow by at most


@asynccontextmanager
async def saying(models: bytes, answer: bytes, endless: bytes = b"") -> AsyncIterator[str]:
    """A server of those answers, the second for all but the models; then ``endless`` for ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            wanted = models if b"GET /v1/models" in head else answer
            writer.write(wanted)
            await writer.drain()
            while endless and wanted is answer:
                writer.write(endless)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def grown() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def failure(answer: bytes, endless: bytes = b"") -> str | None:
    """What the first two requests come to."""

    async def go() -> str | None:
        async with saying(MODELS, answer, endless) as url:
            prober = Prober(Place("users", url, period=0.05, deadline=3.0))
            await prober.start()
            await until(lambda: len(prober.probes) >= 2)
            await prober.stop()
            return prober.probes[0].failure

    return asyncio.run(go())


EVENTS = HEAD % b"Content-Type: text/event-stream\r\n"


def test_an_event_nested_without_end_is_a_failure() -> None:
    """Not a request that was never made: that would hide an outage."""
    assert failure(EVENTS + b"data: " + NESTED + b"\n\n") == "error_event"


def test_a_line_without_end_is_cut_short() -> None:
    """It would fill our memory until the deadline."""
    before = grown()
    assert failure(EVENTS + b"data: ", b"x" * 65_536) == "too_long"
    assert grown() - before < GROWN


def test_events_without_end_are_cut_short() -> None:
    """Nobody was asked for more than eight tokens."""
    event = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
    assert failure(EVENTS, event * 1_000) == "too_long"


def test_what_is_compressed_is_not_unpacked() -> None:
    """We said that we take none; it could grow a thousandfold."""
    bomb = gzip.compress(b"data: " + b" " * (256 << 20))
    before = grown()
    head = HEAD % b"Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
    assert failure(head + bomb) in ("empty", "too_long")
    assert grown() - before < GROWN


MODEL_LISTS = [
    b"{}",
    b'{"data": []}',
    b'{"data": [{"id": 7}]}',
    b'{"data": [{"id": ""}]}',
    b'{"data": [{"id": "%b"}]}' % (b"x" * 100_000),
    b'{"data": ' + NESTED,
    b"\xff\xfe",
]


@pytest.mark.parametrize("models", MODEL_LISTS, ids=range(len(MODEL_LISTS)))
def test_a_list_that_names_no_model_is_refused(models: bytes) -> None:
    """Before anything is injected."""

    async def go() -> None:
        async with saying(HEAD % b"" + models, b"") as url:
            prober = Prober(Place("users", url))
            with pytest.raises(Refused, match="names no model"):
                await prober.start()
            await prober.stop()

    asyncio.run(go())


def test_a_list_that_never_ends_is_refused_in_time() -> None:
    """Nor does it fill our memory."""

    async def go() -> None:
        async with saying(b"", HEAD % b"", b" " * 65_536) as url:
            prober = Prober(Place("users", f"{url}/x", deadline=2.0))
            with pytest.raises(Refused, match="names no model"):
                await prober.start()
            await prober.stop()

    before = grown()
    asyncio.run(go())
    assert grown() - before < GROWN


@pytest.mark.parametrize("url", ["http://[::1", "http://a:b:c", "http://127.0.0.1:x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """In words."""
    with pytest.raises(Refused, match="http://HOST:PORT"):
        Prober(Place("users", url))


def looked(answer: bytes, endless: bytes = b"") -> Sight:
    async def go() -> Sight:
        async with saying(b"", answer, endless) as url:
            sight = Sight(url)
            await sight.start()
            await sight.stop()
            return sight

    return asyncio.run(go())


STATES = [
    b'{"alarms": [{"rule": "r", "state": "firing", "labels": ["a"]}]}',
    b'{"alarms": ' + NESTED,
    b'{"alarms": {"a": 1}}',
    b'{"alarms": null}',
    b"[]",
    b"\xff",
    b"",
]


@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
def test_a_state_that_is_none_blinds(state: bytes) -> None:
    """It does not end the looking in silence: then nothing would ever have been detected."""
    assert "cannot be asked" in looked(HEAD % b"" + state).blind


def test_a_state_without_end_blinds() -> None:
    """And is not kept."""
    before = grown()
    assert "cannot be asked" in looked(HEAD % b"", b" " * 65_536).blind
    assert grown() - before < GROWN


def test_only_so_many_alarms_are_looked_at() -> None:
    """Each with so much text."""
    alarm = {"rule": "r" * 9_999, "state": "firing", "text": "t" * 9_999}
    alarms = [alarm | {"labels": {"a": str(at) + "x" * 600}} for at in range(200)]
    sight = looked(HEAD % b"" + json.dumps({"alarms": alarms}).encode())
    assert sight.blind == ""
    assert sum(map(len, sight.firing)) <= 500
    short = [{"rule": str(at), "state": "firing", "labels": {}} for at in range(2 * ALARMS)]
    assert len(looked(HEAD % b"" + json.dumps({"alarms": short}).encode()).firing) == ALARMS
