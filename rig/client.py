"""One streamed chat completion, timed where its bytes arrive.

An asyncio protocol reads the clock in the very callback that receives bytes; a general client
library puts locks, tasks and copies in between, which would count as the service's latency.
"""

import asyncio
import json
from time import perf_counter
from typing import cast

from rig.http1 import LIMIT, Framing, Garbage, Part
from rig.truth import Truth

IDLE = 64  # connections kept for later requests


class ErrorEvent(Exception):
    """The stream carried an error in place of a token."""


def content(payload: bytes) -> str:
    """The text of an event's first choice: empty for a role, a usage chunk or a finish reason.

    Raises `Garbage` for what is not a chat completion chunk, `ErrorEvent` for a reported error.
    """
    try:
        chunk = json.loads(payload)
        if "error" in chunk:
            raise ErrorEvent(str(chunk["error"])[:200])
        choices = chunk["choices"]
        text = choices[0]["delta"].get("content") if choices else ""
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise Garbage(f"not a chat completion chunk: {payload[:40]!r}") from None
    return text if isinstance(text, str) else ""


class Answer:
    """An answer under way: feeds the truth with each token, and knows how it ended."""

    def __init__(self, truth: Truth) -> None:
        self.over: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.framing = Framing()
        self.words: list[str] = []
        self._truth = truth
        self._sent = self._last = 0.0
        self._done = False
        self._events = b""

    def sent(self) -> None:
        """The request goes out now: TTFT counts from here, not from connecting."""
        self._sent = perf_counter()

    def received(self, data: bytes, now: float) -> None:
        """Take bytes that arrived at `now`, on the clock of `perf_counter`."""
        known = self.framing.status
        try:
            body = self.framing.feed(data)
            if self.framing.status != known:
                self._truth.answered(self.framing.status)
            if self.framing.status == 200:
                self._read(body, now)
        except Garbage:
            self.end("garbage")
        except ErrorEvent:
            self.end("error_event")
        if self.framing.part is Part.OVER:
            self.end(self._verdict())

    def closed(self, error: Exception | None) -> None:
        """The connection is gone; that is an end in order only for a body without a length."""
        if self.framing.part is Part.UNTIL_CLOSE and error is None:
            self.end(self._verdict())
        else:
            self.end("closed" if error is None else "reset")

    def end(self, failure: str | None) -> None:
        """The first end counts."""
        if not self.over.done():
            self.over.set_result(failure)

    def _verdict(self) -> str | None:
        """How a complete answer went: a whole stream has tokens and says that it is done."""
        if self.framing.status != 200:
            return f"status_{self.framing.status}"
        if not self.words:
            return "empty"
        return None if self._done else "cut"

    def _read(self, body: bytes, now: float) -> None:
        *events, self._events = (self._events + body.replace(b"\r\n", b"\n")).split(b"\n\n")
        if len(self._events) > LIMIT:
            raise Garbage("an event longer than a megabyte")
        for event in events:
            for line in event.split(b"\n"):
                if line.startswith(b"data:"):
                    self._data(line[5:].strip(), now)

    def _data(self, payload: bytes, now: float) -> None:
        if payload == b"[DONE]":
            self._done = True
            return
        text = content(payload)
        if not text:
            return
        if self.words:
            self._truth.itl.add(now - self._last)
        else:
            self._truth.ttft.add(now - self._sent)
        self._last = now
        self._truth.tokens += 1
        self.words.append(text)


class Connection(asyncio.Protocol):
    """One connection with at most one request on it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None

    @property
    def usable(self) -> bool:
        """Whether the other side has left it open."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop; the clock is read before anything else."""
        now = perf_counter()
        if self._answer is not None:
            self._answer.received(data, now)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        if self._answer is not None:
            self._answer.closed(exc)

    def ask(self, request: bytes, answer: Answer) -> None:
        """Send the request; the answer hears what comes back."""
        if self._transport is None:
            raise ConnectionResetError("not connected")
        self._answer = answer
        answer.sent()
        self._transport.write(request)

    def abort(self) -> None:
        """Close without waiting for bytes that are not yet sent."""
        if self._transport is not None:
            self._transport.abort()


class Client:
    """Sends requests to one address over kept connections, as pooled clients do."""

    def __init__(self, host: str, port: int, truth: Truth, timeout: float) -> None:
        self._address, self._truth, self._timeout = (host, port), truth, timeout
        self._idle: list[Connection] = []

    async def ask(self, request: bytes) -> str:
        """The answer's text; whatever goes wrong is counted in the truth by its kind."""
        answer, connection = Answer(self._truth), None
        try:
            async with asyncio.timeout(self._timeout):
                connection = await self._connection()
                connection.ask(request, answer)
                failure = await answer.over
        except TimeoutError:
            failure = "timeout"
        except ConnectionRefusedError:
            failure = "refused"
        except OSError:
            failure = "unreachable"
        finally:
            self._keep(connection, answer)
        self._truth.ended(failure)
        return "".join(answer.words)

    async def _connection(self) -> Connection:
        while self._idle:
            kept = self._idle.pop()
            if kept.usable:
                return kept
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Connection, *self._address))[1]

    def _keep(self, connection: Connection | None, answer: Answer) -> None:
        if connection is None:
            return
        whole = answer.framing.part is Part.OVER and answer.framing.reusable
        if whole and connection.usable and len(self._idle) < IDLE:
            self._idle.append(connection)
        else:
            connection.abort()
