"""The served side of the wire's bench: uvicorn with a small engine, and what it really sent.

One step feeds every open stream a token, as continuous batching does. Each event with text is
stamped (ns of CLOCK_MONOTONIC) just before it is sent; ``GET /truth`` on the second port hands the
stamps out by request id and forgets them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from pydantic import BaseModel
from starlette.responses import StreamingResponse

Message = MutableMapping[str, Any]  # ASGI's own type of a message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_EVENT = (
    'data: {"id":"%s","object":"text_completion","created":1700000000,"model":"bench",'
    '"choices":[{"index":0,"text":"%s","logprobs":null,"finish_reason":%s}]}\n\n'
)
_WORDS = (" a", " longer", " story", " of", " words", " that", " never")
_TYPE = (b"content-type", b"text/event-stream")


Event = Callable[[str, str, str | None], bytes]


def bare(name: str, text: str, reason: str | None) -> bytes:
    """One event, at the least cost there is."""
    return (_EVENT % (name, text, f'"{reason}"' if reason else "null")).encode()


class Choice(BaseModel):
    """Of a chunk of OpenAI's completions."""

    index: int
    text: str
    logprobs: dict[str, float] | None = None
    finish_reason: str | None = None


class Chunk(BaseModel):
    """One event's data, as the servers of engines in Python make it."""

    id: str
    object: str = "text_completion"
    created: int
    model: str
    choices: list[Choice]


def modelled(name: str, text: str, reason: str | None) -> bytes:
    """One event by way of models that are checked and serialised, as vLLM and SGLang make it."""
    choices = [Choice(index=0, text=text, finish_reason=reason)]
    chunk = Chunk(id=name, created=int(time.time()), model="bench", choices=choices)
    return f"data: {chunk.model_dump_json()}\n\n".encode()


class Engine:
    """All streams, and the clock that they share."""

    def __init__(self, step_seconds: float, event: Event) -> None:
        self._step, self._event = step_seconds, event
        self._stepped = asyncio.Event()
        self._streams = 0
        self._steps: asyncio.Task[None] | None = None
        self.sent: dict[str, list[int]] = {}

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time()
        while self._streams:
            at = max(at + self._step, loop.time())  # a step that is late is not caught up with
            await asyncio.sleep(at - loop.time())
            self._stepped.set()
            self._stepped.clear()

    async def stream(self, name: str, tokens: int) -> AsyncIterator[bytes]:
        """The events of one answer; its stamps are kept when all of it was sent."""
        self._streams += 1
        if self._steps is None or self._steps.done():
            self._steps = asyncio.create_task(self._run())
        stamps = []
        try:
            await self._stepped.wait()
            yield self._event(name, "", None)
            for number in range(tokens):
                if number:
                    await self._stepped.wait()
                event = self._event(name, _WORDS[number % len(_WORDS)], None)
                stamps.append(time.monotonic_ns())
                yield event
            yield self._event(name, "", "length")
            yield b"data: [DONE]\n\n"
            self.sent[name] = stamps
        finally:
            self._streams -= 1


async def _whole(receive: Receive) -> bytes:
    found = bytearray()
    while True:
        message = await receive()
        found += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(found)


class Application:
    """``POST`` streams, ``GET /truth`` tells, any other ``GET`` says that the loop is free."""

    def __init__(self, step_seconds: float, framework: bool) -> None:
        self._step, self._framework = step_seconds, framework
        self._engine: Engine | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """ASGI."""
        if self._engine is None:  # within the loop that it belongs to
            self._engine = Engine(self._step, modelled if self._framework else bare)
        body = await _whole(receive)
        if scope["method"] == "POST":
            name = dict(scope["headers"])[b"x-request-id"].decode()
            events = self._engine.stream(name, json.loads(body)["max_tokens"])
            if self._framework:
                answer = StreamingResponse(events, media_type="text/event-stream")
                await answer(scope, receive, send)
            else:
                await _send(events, send)
            return
        told = b"{}"
        if scope["path"] == "/truth":
            told, self._engine.sent = json.dumps(self._engine.sent).encode(), {}
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": told})


async def _send(events: AsyncIterator[bytes], send: Send) -> None:
    """A head with the first event, as engines that wait for it do, then the others."""
    head = {"type": "http.response.start", "status": 200, "headers": [_TYPE]}
    async for event in events:
        if head:
            await send(head)
            head = {}
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _listening(port: int) -> socket.socket:
    """With its protocol by number: else asyncio leaves TCP_NODELAY alone, and events that were sent
    wait for the client's delayed ACK, as no server with a port of its own has it.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", port))  # noqa: S104  # in a network of our own
    return listener


def main() -> None:
    """Serves both ports until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="streams; the port that is watched")
    parser.add_argument("--control", type=int, required=True, help="truth, and whether it is up")
    parser.add_argument("--step", type=float, required=True, help="seconds between two tokens")
    parser.add_argument("--framework", action="store_true", help="models and Starlette's stream")
    options = parser.parse_args()
    sockets = [_listening(port) for port in (options.port, options.control)]
    config = uvicorn.Config(
        Application(options.step, options.framework),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=60,
    )
    uvicorn.Server(config).run(sockets=sockets)
