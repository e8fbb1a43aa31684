"""A second opinion on a stream: events and token events of an SSE body by line splitting and
``json``, written against the standard and the protocols, not against the kernel's parser.
And a generator of random, valid exchanges.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass

TEXT_KEYS = {
    "content", "text", "reasoning_content", "reasoning", "arguments", "delta", "text_output",
    "partial_json", "thinking", "refusal",
}  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """What a stream holds."""

    events: int
    token_events: int
    error: bool


def _walk(value: object) -> list[tuple[str, object]]:
    """Every key of a JSON value with what it holds, at any depth."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in [(k, v), *_walk(v)]]
    if isinstance(value, list):
        return [p for v in value for p in _walk(v)]
    return []


def count(body: bytes) -> Counts:
    """Counts the events of a whole body, dispatched as in WHATWG HTML 9.2.6."""
    events = tokens = 0
    error = False
    data: list[str] = []
    for line in [*re.split(r"\r\n|\n|\r", body.decode()), ""]:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        if line or not data:
            continue
        text = "\n".join(data)
        data = []
        if text.startswith("[DONE]"):
            continue
        events += 1
        pairs = _walk(json.loads(text)) if text else []
        found = any(k in TEXT_KEYS and isinstance(v, str) and v for k, v in pairs)
        tokens += found
        error |= any(k == "error" and v for k, v in pairs)
    return Counts(events, tokens, error)


_WORDS = (
    "a",
    "é",
    "\u2028",
    '"',
    "\\",
    "\n",
    "data: {}\n\n",
    '"content":"x"',
    "0\r\n\r\n",
    "[DONE]",
)


def _text(rng: random.Random) -> str:
    return "".join(rng.choice(_WORDS) for _ in range(rng.randrange(4)))


def _value(rng: random.Random, depth: int = 0) -> object:
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind < 3:
        return _text(rng)
    if kind < 6:
        return (None, True, False, 0, -17.5e3, 99991)[rng.randrange(6)]
    if kind < 7:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    keys = ["content", "text", "id", "role", "delta", "arguments", "choices", "conten", "x:y", '"']
    keys += ["reasoning_content", "usage", "logprobs"]
    picked = rng.sample(keys, rng.randrange(1, 4))
    return {key: _value(rng, depth + 1) for key in picked}


def _event(rng: random.Random, line: str) -> str:
    kind = rng.randrange(10)
    if kind == 0:
        return f": ping{line}{line}"
    if kind == 1:
        return f"event: x{line}id: 5{line}data:{line}{line}"
    spaces = rng.choice(((",", ":"), (", ", ": "), (" , ", " : ")))
    value = {"id": _text(rng), "choices": [_value(rng)], "delta": _value(rng)}
    text = json.dumps(value, separators=spaces, ensure_ascii=rng.random() < 0.5)
    if kind == 2:  # a document over several lines
        text = json.dumps(value, indent=1).replace("\n", f"{line}data: ")
    return rng.choice(("", ": c" + line)) + f"data:{rng.choice(('', ' '))}{text}{line}{line}"


def body(rng: random.Random) -> bytes:
    """A random SSE body."""
    line = rng.choice(("\n", "\n", "\r\n", "\r"))
    parts = [_event(rng, line) for _ in range(rng.randrange(12))]
    if rng.random() < 0.3:
        parts.append(
            "data: "
            + json.dumps({"error": rng.choice((None, "", 0, False, [], {}, {"code": 5}, ["x"], 7))})
            + line * 2
        )
    return "".join([*parts, rng.choice(("", f"data: [DONE]{line}{line}"))]).encode()


def _pieces(rng: random.Random, data: bytes, longest: int) -> list[bytes]:
    out, at = [], 0
    while at < len(data):
        size = rng.randrange(1, longest + 1)
        out.append(data[at : at + size])
        at += size
    return out


def response(rng: random.Random, data: bytes) -> tuple[bytes, bool]:
    """A response around a body, and whether only a close ends it."""
    kind = rng.randrange(5)
    head = "HTTP/1.1 200 OK\r\nServer: " + "x" * rng.randrange(700) + "\r\n"
    head += rng.choice(("Content-Type", "CONTENT-TYPE", "content-type"))
    head += rng.choice((": text/event-stream\r\n", ":text/event-stream; charset=utf-8\r\n"))
    if kind == 0:
        return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data, False
    if kind == 1:
        return f"{head}Connection: close\r\n\r\n".encode() + data, True
    chunks = [
        b"%x%s\r\n%s\r\n" % (len(piece), rng.choice((b"", b"", b";a=b", b" ")), piece)
        for piece in _pieces(rng, data, rng.choice((3, 61, 499, 9973)))
    ]
    tail = rng.choice((b"0\r\n\r\n", b"000\r\nx: y\r\n\r\n"))
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + b"".join(chunks) + tail, False


def packets(rng: random.Random, data: bytes) -> list[tuple[int, bytes]]:
    """Data as (offset, bytes) segments with copies, retransmissions and overlaps, none missing."""
    out: list[tuple[int, bytes]] = []
    at = 0
    for piece in _pieces(rng, data, rng.choice((7, 131, 1448, 2503))):
        back = rng.randrange(at + 1) if rng.random() < 0.2 else at
        back = max(back, at + len(piece) - 2503)
        out.append((back, data[back : at + len(piece)]))
        if rng.random() < 0.3:
            out.append(rng.choice(out))
        at += len(piece)
    return out
