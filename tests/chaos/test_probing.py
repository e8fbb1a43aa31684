"""Requests at a steady pace, and what each says of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from chaos.probing import KEY, MOST_OPEN, Place, Prober
from chaos.target import Refused
from tests.chaos.servers import Chat, serving


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def probed(mode: str, deadline: float = 5.0, count: int = 2) -> tuple[Prober, Chat]:
    """A prober that has seen so many answers of that kind."""

    async def go() -> tuple[Prober, Chat]:
        async with serving() as chat:
            prober = Prober(Place("users", chat.url, period=0.02, deadline=deadline))
            await prober.start()
            chat.mode = mode
            await until(lambda: len(prober.probes) >= count)
            await prober.stop()
            return prober, chat

    return asyncio.run(go())


def test_a_whole_answer_has_its_tokens_and_its_first_ones_time() -> None:
    """Empty content, as of a role, is no token."""
    prober, chat = probed("ok")
    probe = prober.probes[0]
    assert (probe.failure, probe.tokens) == (None, 2)
    assert probe.ttft is not None
    assert 0 < probe.ttft <= probe.ended - probe.sent
    assert chat.bodies[0]["model"] == "tiny"
    assert chat.bodies[0]["messages"] != chat.bodies[1]["messages"]


@pytest.mark.parametrize(
    ("mode", "failure"),
    [
        ("503", "status_503"),
        ("error", "error_event"),
        ("cut", "cut"),
        ("empty", "empty"),
        ("refuse", "closed"),
        ("hang", "timeout"),
    ],
)
def test_what_is_no_whole_answer_is_a_failure_of_its_kind(mode: str, failure: str) -> None:
    """None of them is a success, a 200 least of all."""
    prober, _ = probed(mode, deadline=0.2, count=3)
    assert failure in {probe.failure for probe in prober.probes}


def test_a_service_that_hangs_keeps_so_many_open_and_no_more() -> None:
    """The others are counted, not queued."""

    async def go() -> None:
        async with serving() as chat:
            prober = Prober(Place("users", chat.url, period=0.005, deadline=30))
            await prober.start()
            chat.mode = "hang"
            await until(lambda: prober.skipped > 3)
            assert len(prober.open) == MOST_OPEN
            await prober.stop()
            assert not prober.open

    asyncio.run(go())


def test_nobody_there_is_refused_in_words() -> None:
    """Before anything is injected."""

    async def go() -> None:
        prober = Prober(Place("users", "http://127.0.0.1:1"))
        with pytest.raises(Refused, match="is the service up"):
            await prober.start()
        await prober.stop()

    asyncio.run(go())


def test_a_key_goes_out_as_a_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from the environment."""
    monkeypatch.setenv(KEY, "s3cret")
    _, chat = probed("ok")
    assert set(chat.keys) == {"bearer s3cret"}


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is the service."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    prober, _ = probed("ok")
    assert prober.probes[0].failure is None
