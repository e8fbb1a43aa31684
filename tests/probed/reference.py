"""A second opinion on a stream: events and token events of an SSE body by line splitting and
``json``, written against the standard and the protocols, not against the kernel's parser.
Keyed hashes word for word as they are defined, over whole bodies. And a generator of random, valid
exchanges.
"""

from __future__ import annotations

import json
import random
import re
import struct
from dataclasses import dataclass

TEXT_KEYS = {
    "content", "text", "reasoning_content", "reasoning", "arguments", "delta", "text_output",
    "partial_json", "thinking", "refusal",
}  # fmt: skip
SECRET = random.Random(83).randbytes(132 * 8)
_NUMBERS = struct.unpack("=132Q", SECRET)
_FIRST, _SECOND, _SALT = _NUMBERS[:64], _NUMBERS[64:128], _NUMBERS[128:]
_64 = 2**64 - 1
SEARCH = 512


@dataclass(frozen=True)
class Counts:
    """What a stream holds."""

    events: int
    token_events: int
    error: bool
    unclassified: int
    response_key: int | None


def _mixed(value: int, salt: int) -> int:
    value ^= salt
    value ^= value >> 32
    value = value * 0x9E3779B97F4A7C15 & _64
    value ^= value >> 29
    value = value * 0xBF58476D1CE4E5B9 & _64
    return value ^ value >> 32 or 1


def body_key(body: bytes) -> int | None:
    """The hash of a request's body: all words of 8 bytes of the first 16 KiB, then every eighth."""
    first = second = 0
    for piece in range(0, len(body), 512):
        part = body[piece : piece + 512].ljust(512, b"\0")
        step = 1 if piece < 16384 else 8
        a = sum(
            w * k for w, k in zip(struct.unpack("<64Q", part)[::step], _FIRST[::step], strict=True)
        )
        b = sum(
            w * k for w, k in zip(struct.unpack(">64Q", part)[::step], _SECOND[::step], strict=True)
        )
        first += a * (_mixed(piece // 512, _SALT[1]) | 1)
        second += b * (_mixed(piece // 512, _SALT[2]) | 1)
    inner = _mixed((second & _64) ^ len(body), _SALT[0])
    return _mixed((first & _64) ^ inner, _SALT[0]) if body else None


def id_key(name: bytes) -> int | None:
    """The hash of an answer's id as its bytes stand between the quotes."""
    state = _SALT[0]
    for byte in name:
        state = (state ^ byte) * 0x100000001B3 & _64
        state ^= state >> 32
    return _mixed(state, _SALT[0]) if name else None


def _walk(value: object) -> list[tuple[str, object]]:
    """Every key of a JSON value with what it holds, at any depth."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in [(k, v), *_walk(v)]]
    if isinstance(value, list):
        return [p for v in value for p in _walk(v)]
    return []


_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\]:,]|[^\s"{}\[\]:,]+')


@dataclass
class _Event:
    """What the first SEARCH bytes of one event's data tell."""

    text: bool = False
    error: bool = False
    name: bytes = b""


def _beginning(data: bytes) -> _Event:
    """Reads as much of an event's JSON as there is, token by token."""
    event, depth, key, last, parent = _Event(), 0, b"", b"", b""
    for found in _TOKEN.finditer(data):
        token, value_of = found[0], key
        if token != b":":
            key = b""
        if token == b":":
            key = last.strip(b'"')
        elif token == b"{":
            depth += 1
            parent = value_of if depth == 2 else parent
            event.error |= value_of == b"error" and data[found.end() : found.end() + 1] != b"}"
        elif token == b"}":
            depth -= 1
        elif token[:1] == b'"' and value_of:
            content = len(token) > 1 and token != b'""'
            event.text |= content and value_of.decode() in TEXT_KEYS
            event.error |= content and value_of == b"error"
            own = depth == 1 or (depth == 2 and parent in (b"response", b"message"))
            if own and value_of == b"id" and token[-1:] == b'"' and b"\\" not in token:
                event.name = event.name or token[1:-1]
        last = token
    return event


def _id(text: str) -> bytes:
    """The answer's id as it stands in an event's JSON; one with an escape is none."""
    whole = json.loads(text) if text else None
    if not isinstance(whole, dict):
        return b""
    for value in (whole, whole.get("response"), whole.get("message")):
        name = value.get("id") if isinstance(value, dict) else None
        if isinstance(name, str) and name:
            raw = json.dumps(name, ensure_ascii="\\u" in text)[1:-1]
            return b"" if "\\" in raw else raw.encode()
    return b""


def _events(body: bytes) -> list[tuple[str, bytes]]:
    """The events of a whole body, dispatched as in WHATWG HTML 9.2.6: their data, and its bytes as
    they come behind "data:" (behind one space too in the first line).
    """
    out: list[tuple[str, bytes]] = []
    data: list[str] = []
    for line in [*re.split(r"\r\n|\n|\r", body.decode()), ""]:
        if line.startswith("data:"):
            data.append(line[5:])
        if line or not data:
            continue
        text = "\n".join(one.removeprefix(" ") for one in data)
        if not text.startswith("[DONE]"):
            out.append((text, "".join([data[0].removeprefix(" "), *data[1:]]).encode()))
        data = []
    return out


def count(body: bytes) -> Counts:
    """What a whole body holds. An event of up to SEARCH bytes is read as JSON; of a longer one the
    beginning has to tell.
    """
    tokens = unclassified = 0
    error = False
    key: int | None = None
    events = _events(body)
    for text, raw in events:
        pairs = _walk(json.loads(text)) if text else []
        event = _Event(
            any(k in TEXT_KEYS and isinstance(v, str) and v for k, v in pairs),
            any(k == "error" and bool(v) for k, v in pairs),
            _id(text),
        )
        if len(raw) > SEARCH:
            event = _beginning(raw[:SEARCH])
            unclassified += not (event.text or event.error)
        tokens += event.text
        error |= event.error
        key = key or id_key(event.name)
    return Counts(len(events), tokens, error, unclassified, key)


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
    if rng.random() < 0.15:  # long: before what tells the event, or behind
        pad = {rng.choice(("logprobs", "obfuscation")): "y" * rng.randrange(400, 900)}
        value = pad | value if rng.random() < 0.5 else value | pad
    if rng.random() < 0.1:
        value = {"type": "x.y", rng.choice(("response", "message", "part")): value}
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


def request(rng: random.Random) -> tuple[bytes, int | None]:
    """A request with a random body and the key of that."""
    data = rng.randbytes(
        rng.choice((0, 1, 7, 8, 9, 509, 512, 1511)) if rng.random() < 0.97 else 20_011
    )
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
    if rng.random() < 0.5:
        return head + b"content-length: %d\r\n\r\n" % len(data) + data, body_key(data)
    chunks = [b"%x\r\n%s\r\n" % (len(p), p) for p in _pieces(rng, data, rng.choice((61, 9973)))]
    return head + b"transfer-encoding: chunked\r\n\r\n" + b"".join(chunks) + b"0\r\n\r\n", body_key(
        data
    )


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
