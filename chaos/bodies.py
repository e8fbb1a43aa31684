"""Reading what somebody else's server sends: no longer, no larger and no other way than we said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx

# What is compressed could grow a thousandfold on our side.
PLAIN = {"Accept-Encoding": "identity"}


class TooLong(httpx.DecodingError):
    """More bytes than anybody should send here."""


async def chunks(answer: httpx.Response, most: int) -> AsyncIterator[bytes]:
    """The bytes as they come; raises ``TooLong`` after ``most`` of them."""
    total = 0
    async for chunk in answer.aiter_raw():
        total += len(chunk)
        if total > most:
            raise TooLong(f"more than {most} bytes")
        yield chunk


async def lines(answer: httpx.Response, most: int) -> AsyncIterator[bytes]:
    """Line by line, without their ends, the last also when it has none."""
    rest = b""
    async for chunk in chunks(answer, most):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def fetched(client: httpx.AsyncClient, url: str, most: int, seconds: float) -> bytes:
    """All of a page within so many seconds. Raises httpx.HTTPError, for another status too, and
    TimeoutError.
    """
    async with asyncio.timeout(seconds), client.stream("GET", url, headers=PLAIN) as answer:
        answer.raise_for_status()
        return b"".join([chunk async for chunk in chunks(answer, most)])
