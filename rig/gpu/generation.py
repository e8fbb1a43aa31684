"""One request for text: queued, admitted to the device, streamed token by token, released.

A token is passed on when the device step that computed it is over, so a device that stalls or
fails shows in the stream as it would with a real engine.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from rig.gpu.core import Core
from rig.gpu.errors import EngineDead, OutOfMemory
from rig.gpu.http import JSON, Head, Upstream, answer, chunk, error
from rig.gpu.room import Room
from rig.gpu.work import Request, Work
from rig.http1 import Garbage

TOKENS = 256  # assumed of a request that does not say how many it wants
PACE = 0.005  # seconds a token of an answer that is not streamed, about llama.cpp's own
DONE = b"data: [DONE]\n\n"
MARKS = (b'"content":"', b'"text":"')  # of a chunk that carries text


class Wanted:
    """What a request's JSON asks for; raises ValueError when it is none."""

    def __init__(self, body: bytes) -> None:
        found = json.loads(body)
        if not isinstance(found, dict):
            raise ValueError("not an object")  # noqa: TRY004  the client's mistake, a 400
        texts = [found.get("prompt")]
        talk = found.get("messages") or ()
        texts += [message.get("content") for message in talk if isinstance(message, dict)]
        # One word is one token of the tiny model; a role and its frame are about three.
        self.prompt = sum(len(text.split()) + 3 for text in texts if isinstance(text, str))
        names = ("max_tokens", "max_completion_tokens", "n_predict")
        limits = [found[name] for name in names if isinstance(found.get(name), int)]
        self.tokens = max(0, cast(int, limits[0])) if limits else TOKENS
        self.stream = found.get("stream") is True


class Generation:
    """One such request on one client connection; `gone` says whether the client has left."""

    def __init__(
        self, core: Core, room: Room, writer: asyncio.StreamWriter, gone: Callable[[], bool]
    ) -> None:
        self._core, self._room, self._writer, self._gone = core, room, writer, gone
        self._upstream: Upstream | None = None
        self._begun = False

    def abort(self) -> None:
        """The engine is dead: wake whoever waits for llama.cpp."""
        if self._upstream is not None:
            self._upstream.abort()

    async def run(self, port: int, head: Head, body: bytes, number: int) -> None:
        """From queue to last byte; whatever fails is answered as vLLM answers it."""
        try:
            wanted = Wanted(body)
            count = (wanted.prompt + wanted.tokens) * self._core.settings.bytes_per_token
            await self._room.enter(count)
        except (ValueError, TypeError) as bad:
            self._writer.write(answer(400, error(400, str(bad), "BadRequestError")))
            return
        request = Request(number, wanted.prompt)
        try:
            last = await self._attempt(port, head, body, wanted, request)
        except (OutOfMemory, EngineDead) as failed:
            last = self._failed(str(failed))
        except (OSError, Garbage) as broken:
            last = self._failed(str(EngineDead() if self._core.error else broken))
        finally:
            self.abort()
            with suppress(EngineDead):  # the memory goes with the process
                await self._core.ask(Work.RELEASE, request)
            self._room.leave(count)
        self._writer.write(last)

    async def _attempt(
        self, port: int, head: Head, body: bytes, wanted: Wanted, request: Request
    ) -> bytes:
        """All but the last bytes, which are for when the device has been left."""
        if self._gone():
            return b""
        await self._core.ask(Work.ADMIT, request)
        self._upstream = upstream = await Upstream.open(port, head, body)
        if wanted.stream:
            await upstream.begin()
            if upstream.status == 200:
                return await self._stream(upstream, self._fields(upstream, head), request)
        whole = asyncio.ensure_future(upstream.whole())
        while not whole.done():  # tokens that nobody sees come at a steady pace
            await self._core.ask(Work.TOKEN, request)
            await asyncio.wait({whole}, timeout=PACE)
        return answer(upstream.status, whole.result(), self._fields(upstream, head))

    @staticmethod
    def _fields(upstream: Upstream, head: Head) -> tuple[str, ...]:
        """The answer's fields; the client gets its own name for the request back."""
        named = head.fields.get("x-request-id")
        return upstream.head.passed_on() + ((f"X-Request-Id: {named}",) if named else ())

    async def _stream(self, upstream: Upstream, fields: tuple[str, ...], request: Request) -> bytes:
        """Event by event. The head waits for the first token, as vLLM's does."""
        start = ("HTTP/1.1 200 OK", *fields, "Transfer-Encoding: chunked", "", "")
        head, held, rest = "\r\n".join(start).encode(), b"", b""
        while data := await upstream.read():
            *events, rest = (rest + data).split(b"\n\n")
            for event in events:
                held += event + b"\n\n"
                if any(mark in event for mark in MARKS):
                    await self._core.ask(Work.TOKEN, request)
                    self._begun = True
                if self._begun and event != DONE[:-2]:
                    self._writer.write(head + chunk(held))
                    head = held = b""
            if self._gone():
                raise ConnectionResetError("the client has left")
            await self._writer.drain()
        held += rest
        return head + (chunk(held) if held else b"") + chunk(b"")

    def _failed(self, text: str) -> bytes:
        """A 500, or once a stream has begun its last events."""
        body = error(500, text, "InternalServerError")
        if not self._begun:
            return answer(500, body, (JSON,))
        return chunk(b"data: " + body + b"\n\n" + DONE) + chunk(b"")
