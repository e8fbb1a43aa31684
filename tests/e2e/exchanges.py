"""A client that knows what it sent, what came back and when, on the clock of the tap."""

from __future__ import annotations

import asyncio
import ctypes
import json
import re
import socket
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from time import monotonic

from rig.http1 import Framing, Part

PATH = "/v1/chat/completions"
_SO_ATTACH_FILTER = 26  # asm-generic/socket.h
_TOKEN = re.compile(rb'"content": ?"[^"]')


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request: ``sent`` is before its first byte left, ``first`` after a token event was read,
    ``ended`` after the last byte was; seconds of CLOCK_MONOTONIC. ``body`` is without framing.
    """

    trace_id: str
    status: int
    body: bytes
    sent: float
    first: float
    ended: float


@dataclass(frozen=True, slots=True)
class Load:
    """So many requests to one port, so many at a time. Not ``reuse``: each has a connection.
    ``loss`` is the share of packets that the client's sockets throw away unread.
    """

    port: int
    requests: int = 31
    concurrency: int = 7
    reuse: bool = True
    tokens: int = 47
    key: str = ""
    model: str = "rig"
    streamed: bool = True
    loss: float = 0.0


def trace_id(at: int) -> str:
    """A W3C trace id that nobody else has."""
    return f"{at + 1:08x}{'b5' * 12}"


def request(load: Load, at: int) -> bytes:
    """A chat completion as clients send it, with a trace context of its own."""
    asked = {"model": load.model, "stream": load.streamed, "max_tokens": load.tokens}
    usage = {"stream_options": {"include_usage": True}} if load.streamed else {}
    messages = [{"role": "user", "content": f"Say something about the number {at}."}]
    body = json.dumps({**asked, **usage, "messages": messages}).encode()
    lines = [f"POST {PATH} HTTP/1.1", f"Host: 127.0.0.1:{load.port}"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"traceparent: 00-{trace_id(at)}-{'7a' * 8}-01"]
    lines += [f"Authorization: Bearer {load.key}"] if load.key else []
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _answered(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, load: Load, at: int
) -> tuple[Exchange, bool]:
    """An exchange, and whether its connection can have another."""
    framing, body, first = Framing(), b"", 0.0
    data = request(load, at)
    sent = monotonic()
    writer.write(data)
    while framing.part is not Part.OVER:
        data = await reader.read(1 << 16)
        if not data and framing.part is Part.UNTIL_CLOSE:
            break
        assert data, f"closed in the middle of request {at}: {body[-200:]!r}"
        body += framing.feed(data)
        if not first and _TOKEN.search(body):
            first = monotonic()
    found = Exchange(trace_id(at), framing.status, body, sent, first, monotonic())
    return found, framing.reusable


def lose(link: socket.socket, share: float) -> None:
    """Drops a share of what comes in, by a classic BPF filter: the peer has to send it again."""
    accept, drop = (0x06, 0, 0, 0xFFFFFFFF), (0x06, 0, 0, 0)  # BPF_RET|BPF_K
    draw = (0x20, 0, 0, 2**32 - 0x1000 + 56)  # BPF_LD|BPF_W|BPF_ABS, SKF_AD_RANDOM
    jump = (0x35, 0, 1, int(share * 2**32))  # BPF_JMP|BPF_JGE|BPF_K
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("=HBBI", *one) for one in (draw, jump, accept, drop))
    )
    program = struct.pack("@HP", 4, ctypes.addressof(code))
    link.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


async def _worker(load: Load, numbers: Iterable[int]) -> list[Exchange]:
    found, writer = [], None
    for at in numbers:
        if writer is None:
            reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
            if load.loss:
                lose(writer.get_extra_info("socket"), load.loss)
        exchange, reusable = await _answered(reader, writer, load, at)
        found.append(exchange)
        if not (reusable and load.reuse):
            writer.close()
            await writer.wait_closed()
            writer = None
    if writer is not None:
        writer.close()
        await writer.wait_closed()
    return found


async def _all(load: Load) -> list[Exchange]:
    numbers = iter(range(load.requests))
    workers = (_worker(load, numbers) for _ in range(load.concurrency))
    return [one for part in await asyncio.gather(*workers) for one in part]


def exchanged(load: Load) -> list[Exchange]:
    """All of a load's exchanges; AssertionError when a server ends one early."""
    return asyncio.run(asyncio.wait_for(_all(load), 120))


def ask(
    port: int, method: str, path: str, body: bytes = b"", headers: Sequence[tuple[str, str]] = ()
) -> tuple[int, bytes]:
    """Status and body of one request on a connection of its own."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body or None, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def spoken(port: int, *pieces: bytes, until: bytes = b"") -> bytes:
    """All that a server says on one connection until it closes. The first piece is sent at once,
    the others when ``until`` was said. Bytes that a server refuses to take are not sent.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
        said, left = b"", list(pieces)
        with suppress(ConnectionError):  # it may close, or reset, before it has read all
            link.sendall(left.pop(0))
            while data := link.recv(1 << 16):
                said += data
                if left and until in said:
                    link.sendall(left.pop(0))
    return said
