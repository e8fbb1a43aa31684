"""A chat service on loopback that behaves as it is told, request by request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\n\r\n"


def token(text: str = "a") -> bytes:
    chunk = {"choices": [{"delta": {"content": text}}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


class Chat:
    """``mode`` is how the next requests are answered: ok, refuse, error, cut, empty, hang, 503."""

    def __init__(self) -> None:
        self.mode, self.url = "ok", ""
        self.bodies: list[dict[str, object]] = []
        self.keys: list[str] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        self.keys.append(fields.get("authorization", ""))
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        if head.startswith("GET /v1/models"):
            writer.write(HEAD % b"application/json" + b'{"data": [{"id": "tiny"}]}')
        else:
            self.bodies.append(json.loads(body))
            await self._chat(writer)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async def _chat(self, writer: asyncio.StreamWriter) -> None:
        if self.mode == "503":
            writer.write(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
            return
        if self.mode == "refuse":
            writer.transport.abort()
            return
        writer.write(HEAD % b"text/event-stream")
        if self.mode == "hang":
            await asyncio.sleep(60)
        if self.mode != "empty":
            writer.write(token("") + token() + token())
        if self.mode == "error":
            writer.write(b'data: {"error": {"message": "x"}}\n\n')
        if self.mode != "cut":
            writer.write(b"data: [DONE]\n\n")


@asynccontextmanager
async def serving() -> AsyncIterator[Chat]:
    """One that listens meanwhile."""
    chat = Chat()
    server = await asyncio.start_server(chat.answer, "127.0.0.1", 0)
    chat.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield chat
    finally:
        server.close()
