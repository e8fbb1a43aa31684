"""An ASGI application of known content: what it answers to each path is written down here.

The tests of the wire tap hold the tap to it. Any ASGI server runs it; it needs nothing but Python.
"""

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any

Message = Mapping[str, Any]  # ASGI's own word for its untyped events
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Shape = Callable[[Receive, Send], Awaitable[None]]

TOKENS = 47  # events of a stream that carry text
EVENTS = 53  # all of them: a role, three empty deltas, a finish reason and the usage besides
FAILS_AFTER = 7  # tokens before the error of `/error`
DELAY = 0.02  # seconds before the first token; the head and the role go out at once
PAUSE = 0.001  # seconds before each further token
PLAIN = json.dumps({"choices": [{"message": {"content": "x" * 1009}}]}).encode()
STREAM = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))
JSON = (b"content-type", b"application/json")


def event(payload: object) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(payload)}\n\n".encode()


def chunk(delta: object, finish: str | None = None) -> bytes:
    """An event as the OpenAI protocol has it."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "rig"}
    return event({**frame, "choices": [choice]})


ROLE = chunk({"role": "assistant", "content": ""})
EMPTY = chunk({"content": ""})
USAGE = {"prompt_tokens": 5, "completion_tokens": TOKENS, "total_tokens": TOKENS + 5}
END = chunk({}, "stop") + event({"id": "chatcmpl-1", "choices": [], "usage": USAGE})
DONE = b"data: [DONE]\n\n"


def token(at: int) -> bytes:
    """The event of one token; each is another text, so that nobody takes it for a repetition."""
    return chunk({"content": f" word{at}"})


def whole() -> bytes:
    """The stream of `/v1/chat/completions` in one piece, without its comment lines."""
    tokens = b"".join(token(at) for at in range(TOKENS))
    return ROLE + 3 * EMPTY + tokens + END + DONE


async def start(send: Send, status: int, *headers: tuple[bytes, bytes]) -> None:
    """The head of an answer."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def write(send: Send, data: bytes, more: bool = True) -> None:
    """A part of the body; without `more` the last."""
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def drained(receive: Receive) -> bytes:
    """The request's body."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


async def rest(seconds: float) -> None:
    """Never less: uvloop's timers may be a millisecond early."""
    end = monotonic() + seconds
    while (left := end - monotonic()) > 0:
        await asyncio.sleep(left)


async def stream(receive: Receive, send: Send) -> None:
    """A paced stream: role, tokens among empty deltas and comments, finish, usage, [DONE]."""
    if not json.loads(await drained(receive) or b"{}").get("stream", True):
        return await answer(send, PLAIN)
    await start(send, 200, *STREAM)
    await write(send, ROLE)
    await rest(DELAY)
    for at in range(TOKENS):
        await write(send, token(at))
        if at < 3:
            await write(send, b": ping\n\n" + EMPTY)
        await rest(PAUSE)
    await write(send, END)
    await write(send, DONE)
    await write(send, b"", more=False)
    return None


async def answer(send: Send, body: bytes) -> None:
    """An answer in one piece, with its length."""
    await start(send, 200, JSON, (b"content-length", str(len(body)).encode()))
    await write(send, body, more=False)


async def plain(receive: Receive, send: Send) -> None:
    """An answer that is no stream, with a length."""
    await drained(receive)
    await answer(send, PLAIN)


async def chunked(receive: Receive, send: Send) -> None:
    """The same without a length, in three parts."""
    await drained(receive)
    await start(send, 200, JSON)
    for at in range(3):
        await write(send, PLAIN[at::3], more=at < 2)


async def nothing(receive: Receive, send: Send) -> None:
    """204, which has no body and no length."""
    await drained(receive)
    await start(send, 204)
    await write(send, b"", more=False)


async def zipped(receive: Receive, send: Send) -> None:
    """The stream under gzip: nobody in between sees an event of it."""
    await drained(receive)
    await start(send, 200, *STREAM, (b"content-encoding", b"gzip"))
    data = gzip.compress(whole(), mtime=0)
    await write(send, data[:101])
    await write(send, data[101:], more=False)


async def bytewise(receive: Receive, send: Send) -> None:
    """The first seven tokens, one byte a write: an event spans many chunks and many packets."""
    await drained(receive)
    await start(send, 200, *STREAM)
    for byte in b"".join(token(at) for at in range(7)) + DONE:
        await write(send, bytes([byte]))
    await write(send, b"", more=False)


async def lumped(receive: Receive, send: Send) -> None:
    """The whole stream in one write."""
    await drained(receive)
    await start(send, 200, *STREAM)
    await write(send, whole(), more=False)


async def failing(receive: Receive, send: Send) -> None:
    """A stream of status 200 that ends in an error event after seven tokens."""
    await drained(receive)
    await start(send, 200, *STREAM)
    for at in range(FAILS_AFTER):
        await write(send, token(at))
    await write(send, event({"error": {"message": "out of memory", "code": 500}}))
    await write(send, DONE, more=False)


async def endless(receive: Receive, send: Send) -> None:
    """Tokens until the client has gone."""
    await drained(receive)
    await start(send, 200, *STREAM)
    gone, at = asyncio.ensure_future(receive()), 0
    while not gone.done():
        await write(send, token(at))
        at += 1
        await rest(PAUSE)


SHAPES: dict[str, Shape] = {
    "/v1/chat/completions": stream,
    "/plain": plain,
    "/chunked": chunked,
    "/nothing": nothing,
    "/gzip": zipped,
    "/bytes": bytewise,
    "/lump": lumped,
    "/error": failing,
    "/endless": endless,
}


async def missing(receive: Receive, send: Send) -> None:
    """404."""
    await drained(receive)
    await start(send, 404, (b"content-length", b"0"))
    await write(send, b"", more=False)


async def app(scope: Message, receive: Receive, send: Send) -> None:
    """The application. It has no lifespan: a server that asks hears that by the exception."""
    if scope["type"] != "http":
        raise ValueError(f"only http is served, not {scope['type']}")
    await SHAPES.get(scope["path"], missing)(receive, send)
