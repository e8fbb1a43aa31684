"""What is seen of the sidecar's alarms."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from chaos.sight import Sight

Alarms = list[dict[str, object]]


def alarm(rule: str, state: str = "firing") -> dict[str, object]:
    return {"rule": rule, "labels": {"replica": "r0"}, "state": state, "text": "so it is"}


@asynccontextmanager
async def sidecar(alarms: Alarms) -> AsyncIterator[str]:
    """One that says these alarms, as they are when it is asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"alarms": alarms}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def test_an_alarm_is_detected_when_it_begins_to_fire() -> None:
    """One that fired before is nobody's finding, nor is one that is pending."""

    async def go() -> None:
        alarms = [alarm("Old"), alarm("Soon", "pending")]
        async with sidecar(alarms) as url:
            sight = Sight(url)
            await sight.start()
            assert sight.since(0.0) == ()
            alarms[1]["state"] = "firing"
            await until(lambda: bool(sight.since(0.0)))
            await sight.stop()
            assert [found.rule for found in sight.since(0.0)] == ["Soon"]
            assert sight.firing == ("Old", "Soon")

    asyncio.run(go())


def test_an_alarm_that_fires_again_is_detected_again() -> None:
    """Once it resolved in between."""

    async def go() -> None:
        alarms = [alarm("Again")]
        async with sidecar(alarms) as url:
            sight = Sight(url)
            await sight.start()
            alarms[0]["state"] = "resolved"
            await until(lambda: not sight.firing)
            alarms[0]["state"] = "firing"
            await until(lambda: bool(sight.since(0.0)))
            await sight.stop()

    asyncio.run(go())


def test_a_sidecar_that_does_not_answer_blinds_and_stops_nothing() -> None:
    """What it did not see is not known, and said so."""

    async def go() -> None:
        sight = Sight("http://127.0.0.1:1")
        await sight.start()
        assert "cannot be asked" in sight.blind
        await sight.stop()

    asyncio.run(go())


def test_without_a_sidecar_it_is_said() -> None:
    """Rather than that nothing was detected."""
    assert Sight(None).blind == "no sidecar was named"


def test_what_could_not_be_seen_for_a_while_is_told_of_that_time_alone() -> None:
    """An alarm may have come and gone meanwhile: such a run is no miss of the sidecar's."""

    async def go() -> None:
        now = [0.0]
        alarms: Alarms = [alarm("Old")]
        async with sidecar(alarms) as url:
            sight = Sight(url, lambda: now[0])
            await sight.start()
            assert sight.unseen(0.0) == ""
            now[0] = 5.0
            alarms[0]["labels"] = "none"
            await until(lambda: bool(sight.blind))
            alarms[0]["labels"] = {}
            await until(lambda: not sight.blind)
            assert "for a while" in sight.unseen(4.0)
            assert sight.unseen(6.0) == ""
            await sight.stop()

    asyncio.run(go())


def test_what_began_before_a_run_is_forgotten_at_its_start() -> None:
    """Ten thousand runs take no more memory than one."""

    async def go() -> None:
        alarms: Alarms = []
        async with sidecar(alarms) as url:
            sight = Sight(url)
            await sight.start()
            alarms.append(alarm("New"))
            await until(lambda: bool(sight.since(0.0)))
            sight.forget(sight._clock() + 1.0)
            assert sight.since(0.0) == ()
            await sight.stop()

    asyncio.run(go())
