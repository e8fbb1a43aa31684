"""HTTP/1.1 as the front speaks it: a request's head, an answer, and the leg to llama.cpp.

Requests with a chunked body get 411: no client of the rig sends one.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from rig.http1 import Framing, Garbage, Part

LIMIT = 1 << 18  # bytes of a head
HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "expect"})
REASONS = {200: "OK", 400: "Bad Request", 411: "Length Required", 500: "Internal Server Error"}
REASONS |= {502: "Bad Gateway", 503: "Service Unavailable"}
JSON = "Content-Type: application/json"
END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Head:
    """First line and fields of a message, as they came; `fields` by lower-case name."""

    first: str
    lines: tuple[str, ...]
    fields: dict[str, str]

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        return self.fields.get("connection", "").lower() != "close" and "HTTP/1.1" in self.first

    def passed_on(self) -> tuple[str, ...]:
        """The fields that are not of this connection alone (RFC 9110, section 7.6.1)."""
        return tuple(line for line in self.lines if line.partition(":")[0].lower() not in HOP)


def head(data: bytes) -> Head:
    """Parse a head that ends in an empty line."""
    first, *lines = data.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Head(first, tuple(lines), {name.lower(): value.strip() for name, _, value in pairs})


def answer(status: int, body: bytes, fields: Sequence[str] = (JSON,)) -> bytes:
    """A whole answer."""
    first = f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"
    return "\r\n".join((first, *fields, f"Content-Length: {len(body)}", "", "")).encode() + body


def error(status: int, text: str, kind: str) -> bytes:
    """VLLM's JSON for an error (`ErrorResponse` of its OpenAI server)."""
    found = {"message": text, "type": kind, "param": None, "code": status}
    return json.dumps({"error": found}).encode()


def chunk(body: bytes) -> bytes:
    """One chunk of a chunked body; empty ends it."""
    return b"%x\r\n%b\r\n" % (len(body), body)


class Upstream:
    """One request to llama.cpp on a connection of its own: it closes after each anyway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._framing = Framing()
        self.head = Head("", (), {})

    @classmethod
    async def open(cls, port: int, request: Head, body: bytes) -> "Upstream":
        """Connect and send the request; raises OSError."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LIMIT)
        found = cls(reader, writer)
        fields = (*request.passed_on(), "Connection: close")
        length = (f"Content-Length: {len(body)}",) if body else ()
        writer.write(
            "\r\n".join((request.first, *fields, *length, "", "")).encode("latin-1") + body
        )
        return found

    async def begin(self) -> None:
        """Read the answer's head; raises OSError or `Garbage`."""
        try:
            data = await self._reader.readuntil(END)
        except asyncio.IncompleteReadError:
            raise ConnectionResetError("llama.cpp closed before it answered") from None
        self.head = head(data)
        self._framing.feed(data)

    @property
    def status(self) -> int:
        """The answer's status."""
        return self._framing.status

    async def read(self) -> bytes:
        """The next bytes of the body, empty at its end; raises ConnectionResetError for a cut."""
        while self._framing.part is not Part.OVER:
            data = await self._reader.read(1 << 16)
            if not data and self._framing.part is not Part.UNTIL_CLOSE:
                raise ConnectionResetError("llama.cpp closed in the middle of an answer")
            if not data:
                return b""
            if body := self._framing.feed(data):
                return body
        return b""

    async def whole(self) -> bytes:
        """The whole body, after the head if that has not been read."""
        if not self.head.first:
            await self.begin()
        parts = []
        while part := await self.read():
            parts.append(part)
        return b"".join(parts)

    def abort(self) -> None:
        """Close at once; llama.cpp then drops the request."""
        self._writer.transport.abort()


__all__ = ["Garbage", "Head", "Upstream", "answer", "chunk", "error", "head"]
