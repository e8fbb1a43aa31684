"""The engine's port: text with device work, health as configured, the rest as llama.cpp says it.

`GET /rig` is the front's own: running, waiting, KV bytes, steps, pids of ranks, llama.cpp's
port.
"""

import asyncio
import json
import re
from itertools import count
from time import monotonic

from rig.gpu.core import Core
from rig.gpu.generation import Generation
from rig.gpu.http import END, Garbage, Head, Upstream, answer, error, head
from rig.gpu.room import Room

TEXT = frozenset({"/v1/chat/completions", "/v1/completions", "/chat/completions", "/completion"})
DEFERRED = re.compile(rb"^(llamacpp:requests_deferred) (\d+)", re.MULTILINE)
GONE = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError)


class Server:
    """Answers connections. `hung` is in seconds; None: `/health` is always 200, which is a lie."""

    def __init__(self, core: Core, room: Room, port: int, hung: float | None) -> None:
        self._core, self._room, self._port, self._hung = core, room, port, hung
        self._numbers = count(1)
        self._open: set[Generation] = set()

    def abort(self) -> None:
        """The engine is dead: requests that wait for llama.cpp fail too."""
        for generation in self._open:
            generation.abort()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, request after request."""
        try:
            while await self._request(reader, writer):
                pass
        except GONE:  # the client left, or sent what is no HTTP
            writer.transport.abort()
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether another may follow."""
        request = head(await reader.readuntil(END))
        if "transfer-encoding" in request.fields:
            writer.write(answer(411, error(411, "send a Content-Length", "BadRequestError")))
            return False
        if request.fields.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue" + END)
        body = await reader.readexactly(int(request.fields.get("content-length", 0)))
        method, path, _ = request.first.split(" ")
        if method == "POST" and path in TEXT:
            await self._generate(request, body, reader, writer)
        else:
            writer.write(await self._other(path, request, body))
        await writer.drain()
        return request.reusable and not writer.is_closing()

    async def _generate(
        self, request: Head, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        generation = Generation(
            self._core, self._room, writer, lambda: reader.at_eof() or writer.is_closing()
        )
        self._open.add(generation)
        try:
            await generation.run(self._port, request, body, next(self._numbers))
        finally:
            self._open.discard(generation)

    async def _other(self, path: str, request: Head, body: bytes) -> bytes:
        if path == "/health":
            return self._health()
        if path == "/rig":
            return answer(200, json.dumps(self.state()).encode())
        try:
            upstream = await Upstream.open(self._port, request, body)
            found = await upstream.whole()
        except (OSError, Garbage) as broken:
            return answer(502, error(502, str(broken), "InternalServerError"))
        if path == "/metrics":  # the queue is here, so that llama.cpp's own never fills
            found = DEFERRED.sub(self._deferred, found)
        return answer(upstream.status, found, upstream.head.passed_on())

    def _deferred(self, line: re.Match[bytes]) -> bytes:
        return b"%b %d" % (line[1], int(line[2]) + self._room.waiting)

    def _health(self) -> bytes:
        busy = self._core.busy_since
        hung = self._hung is not None and busy is not None and monotonic() - busy > self._hung
        if self._hung is not None and (self._core.error is not None or hung):
            return answer(503, b'{"status":"dead"}')
        return answer(200, b'{"status":"ok"}')

    def state(self) -> dict[str, object]:
        """For tests and people."""
        core = self._core
        return {
            "dead": None if core.error is None else str(core.error),
            "running": self._room.running,
            "waiting": self._room.waiting,
            "kv_used_bytes": core.blocks.used,
            "kv_pool_bytes": core.blocks.pool,
            "steps": core.launched,
            "rank_pids": core.ranks.pids,
            "text_port": self._port,
        }
