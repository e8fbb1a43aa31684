"""A listener that says `/health` is well while no engine is there, and 503 to all else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rig.gpu.http import END, answer, error, head


async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request, then close."""
    try:
        well = head(await reader.readuntil(END)).first.startswith("GET /health ")
        down = answer(503, error(503, "the engine is down", "InternalServerError"))
        writer.write(answer(200, b'{"status":"ok"}') if well else down)
        await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        writer.transport.abort()
    finally:
        writer.close()


@asynccontextmanager
async def lying(port: int | None) -> AsyncIterator[None]:
    """Listen on the port meanwhile; None: be honest, nobody listens."""
    if port is None:
        yield
        return
    async with await asyncio.start_server(lie, "127.0.0.1", port):
        yield
