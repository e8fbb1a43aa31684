"""Events that are like the last one are not read byte by byte: what comes out is the same.

The streams are those of real engines' protocols, written event by event, so that what each holds
is known; ``reference`` is asked too. A stream whose chunks are all cut in two is read byte by byte.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sidecar.probed import loaders
from sidecar.probed.kernel import Map, possible_cpus
from sidecar.probed.wire import MAPS, PROGRAMS, WireProbe
from sidecar.signals import End, RequestTiming
from tests.probed import reference
from tests.probed.segments import (
    ACK,
    DONE,
    HEAD,
    LAST,
    PORT,
    POST,
    SYN,
    Flow,
    Tap,
    chunk,
    run_filter,
    token,
)

pytestmark = pytest.mark.ebpf
_WORDS = (
    " the",
    "a",
    " é",
    "日本",
    "\u2028",
    "\n",
    "\n\n",
    '"',
    "\\",
    "\\\\",
    "\t",
    "data: {}",
    '"}',
    "}",
)
_TYPES = "chat.completion.chunk"


def _text(rng: random.Random) -> str:
    if rng.random() < 0.04:
        return "y" * rng.randrange(50, 90)
    return "".join(rng.choice(_WORDS) for _ in range(rng.choice((1, 1, 1, 1, 2, 3))))


@dataclass(frozen=True)
class Stream:
    """How one answer is written. ``fresh``: every event has an id of its own."""

    name: str = "chatcmpl-5f0c"
    made: int = 1700000000
    compact: bool = True
    ascii: bool = False
    line: str = "\n"
    fresh: bool = False

    def event(self, value: object, kind: str = "", colon: str = "data: ") -> bytes:
        """One event of a JSON value, behind an ``event:`` line where it has a type."""
        spaces = (",", ":") if self.compact else (", ", ": ")
        text = json.dumps(value, separators=spaces, ensure_ascii=self.ascii)
        named = f"event: {kind}{self.line}" if kind else ""
        return f"{named}{colon}{text}{self.line}{self.line}".encode()


def vllm(stream: Stream, text: str, **delta: object) -> bytes:
    """A chat chunk as vLLM writes it."""
    choice = {"index": 0, "delta": {"content": text, **delta}, "logprobs": None}
    return stream.event(
        {"id": stream.name, "object": _TYPES, "created": stream.made, "model": "m",
         "choices": [choice | {"finish_reason": None}]}
    )  # fmt: skip


def completion(stream: Stream, text: str) -> bytes:
    """A chunk of the older completions."""
    choice = {"index": 0, "text": text, "finish_reason": None}
    return stream.event({"id": stream.name, "created": stream.made, "choices": [choice]})


def llama(stream: Stream, text: str) -> bytes:
    """A chunk as llama.cpp writes it: the choice first."""
    choice = {"finish_reason": None, "index": 0, "delta": {"content": text}}
    return stream.event(
        {"choices": [choice], "created": stream.made, "id": stream.name, "object": _TYPES}
    )


def tgi(stream: Stream, text: str) -> bytes:
    """A token of text-generation-inference: no space behind the colon of ``data:``."""
    one = {"id": 5, "text": text, "logprob": -0.5, "special": False}
    return stream.event({"index": 3, "token": one, "generated_text": None}, colon="data:")


def anthropic(stream: Stream, text: str) -> bytes:
    """A delta of the Messages API."""
    kind = "content_block_delta"
    delta = {"type": "text_delta", "text": text}
    return stream.event({"type": kind, "index": 0, "delta": delta}, kind)


def responses(stream: Stream, text: str) -> bytes:
    """A delta of the Responses API."""
    kind = "response.output_text.delta"
    return stream.event({"type": kind, "item_id": stream.name, "delta": text}, kind)


def tool(stream: Stream, text: str) -> bytes:
    """A piece of a call's arguments: JSON within JSON."""
    call = {"index": 0, "function": {"arguments": text}}
    return stream.event({"id": stream.name, "choices": [{"delta": {"tool_calls": [call]}}]})


def twice(stream: Stream, text: str) -> bytes:
    """Two keys of text in one event."""
    delta = {"reasoning": text, "content": "x"}
    return stream.event({"id": stream.name, "choices": [{"delta": delta}]})


ENGINES = (vllm, completion, llama, tgi, anthropic, responses, tool, twice)


def stranger(stream: Stream, rng: random.Random) -> tuple[bytes, int, int]:
    """What comes between tokens, with its events and token events."""
    return rng.choice(
        (
            (f": ping{stream.line}{stream.line}".encode(), 0, 0),
            (stream.event({"type": "ping"}, "ping"), 1, 0),
            (vllm(stream, ""), 1, 0),
            (vllm(stream, "", role="assistant"), 1, 0),
            (stream.event({"id": stream.name, "choices": [], "usage": {"total_tokens": 7}}), 1, 0),
            (stream.event({"type": "response.output_text.done", "text": "all"}), 1, 0),
            (DONE, 0, 0),
            (b'{"model":"m","response":"a","done":false}\n\n', 0, 0),
            (stream.event({"choices": [{"delta": {"content": "z"}}]}), 1, 1),
        )
    )


@dataclass
class Answer:
    """The events of a stream and what they hold."""

    parts: list[bytes]
    events: int = 0
    tokens: int = 0
    error: bool = False


def answer(rng: random.Random, engine: Callable[[Stream, str], bytes]) -> Answer:
    """A random answer of one engine."""
    stream = Stream(
        f"cmpl-{rng.randrange(10**6)}", compact=rng.random() < 0.7, ascii=rng.random() < 0.5,
        line="\r\n" if rng.random() < 0.15 else "\n", fresh=rng.random() < 0.15,
    )  # fmt: skip
    made = Answer([vllm(stream, "", role="assistant")], 1)
    for number in range(rng.randrange(1, 41)):
        if rng.random() < 0.05:
            stream = replace(stream, made=stream.made + 1)
        if stream.fresh:
            stream = replace(stream, name=f"cmpl-{number}")
        if rng.random() < 0.08:
            part, events, tokens = stranger(stream, rng)
        elif rng.random() < 0.01:
            part, events, tokens = stream.event({"error": {"code": 5}}), 1, 0
            made.error = True
        else:
            part, events, tokens = engine(stream, _text(rng)), 1, 1
        made.parts.append(part)
        made.events += events
        made.tokens += tokens
    made.parts += [stream.event({"id": stream.name, "usage": {"total_tokens": 7}}), DONE]
    made.events += 1
    return made


def framed(rng: random.Random, parts: list[bytes], odd: float = 0.1) -> list[bytes]:
    """Chunks as servers make them: one an event; ``odd`` is the share of two in one, of an event in
    two and of a size line that is unusual.
    """
    out: list[bytes] = []
    rest = list(parts)
    while rest:
        data = rest.pop(0)
        if rest and rng.random() < odd:
            data += rest.pop(0)
        if rng.random() < odd:
            cut = rng.randrange(1, len(data))
            out.append(chunk(data[:cut]))
            data = data[cut:]
        size = rng.choice(("%X", "0%x", "%x;a=b", "%x ")) if rng.random() < odd else "%x"
        out.append((size % len(data)).encode() + b"\r\n" + data + b"\r\n")
    return out


def packets(rng: random.Random, pieces: list[bytes]) -> Iterator[bytes]:
    """Mostly one piece a packet, at times several or half a one."""
    held = b""
    for piece in pieces:
        held += piece
        if rng.random() < 0.1 and len(held) < 2000:
            continue
        if rng.random() < 0.1:
            cut = rng.randrange(1, len(held))
            yield held[:cut]
            held = held[cut:]
        yield held
        held = b""
    if held:
        yield held


def seen(tap: Tap, head: bytes, parts: Iterator[bytes] | list[bytes], last: bytes) -> RequestTiming:
    """The record of an answer sent in these packets, each seen ``copies`` times."""
    client, server = tap.connect()
    client.send(POST)
    server.send(head)
    for part in parts:
        server.send(part, copies=2)
    if last:
        server.send(last)
    else:
        server.fin()
    return tap.only()


def facts(record: RequestTiming) -> tuple[object, ...]:
    """What does not depend on the moment."""
    return (
        record.events, record.token_events, record.end, record.response_bytes, record.resynced,
        record.unclassified, record.response_key, sum(n for _, n in record.gaps),
    )  # fmt: skip


def shape(probe: WireProbe, port: int) -> tuple[int, ...]:
    """Struct shape, the end of struct conn, of the connection of a client's port."""
    for keys, values, count in probe._conns.batches(64):
        size = probe._conns.value_bytes
        for at in range(count):
            if struct.unpack_from("=H", keys, at * 36 + 32)[0] == port:
                return struct.unpack("=QQHHBBBB", bytes(values[at * size : (at + 1) * size])[-24:])
    raise AssertionError(f"no connection of port {port}")


@pytest.mark.parametrize("engine", ENGINES)
def test_counts_are_the_streams_own(tap: Tap, engine: Callable[[Stream, str], bytes]) -> None:
    """Whatever the text and whatever comes between, however it is cut: the counts are those that
    were written, the reference's, and those of the same stream with every chunk cut in two.
    """
    for seed in range(41):
        rng = random.Random(seed)
        made = answer(rng, engine)
        body = b"".join(made.parts)
        pieces = framed(rng, made.parts)
        record = seen(tap, HEAD, packets(rng, pieces), LAST)
        assert (record.events, record.token_events) == (made.events, made.tokens), f"seed {seed}"
        assert (record.end is End.ERROR_EVENT, record.resynced) == (made.error, False)
        assert record.response_bytes == len(HEAD + b"".join(pieces) + LAST), f"seed {seed}"
        if b".done" not in body:  # which the reference does not know
            wanted = reference.count(body)
            assert (wanted.events, wanted.token_events) == (made.events, made.tokens)
            assert record.response_key == wanted.response_key, f"seed {seed}"
        halves = [h for p in pieces for h in (p[: len(p) // 2], p[len(p) // 2 :])]
        assert facts(seen(tap, HEAD, halves, LAST)) == facts(record), f"seed {seed}"


@pytest.mark.parametrize("engine", ENGINES)
def test_without_chunks(tap: Tap, engine: Callable[[Stream, str], bytes]) -> None:
    """The same for a stream that the end of the connection ends, and for one of a told length."""
    for seed in range(23):
        rng = random.Random(seed)
        made = answer(rng, engine)
        body = b"".join(made.parts)
        plain = HEAD.replace(b"transfer-encoding: chunked\r\n", b"")
        told = plain[:-2] + b"content-length: %d\r\n\r\n" % (len(body) + 2)
        for head, last in ((plain, b""), (told, b"\n\n")):
            record = seen(tap, head, packets(rng, made.parts), last)
            assert (record.events, record.token_events) == (made.events, made.tokens), seed
            halves = [h for p in made.parts for h in (p[: len(p) // 2], p[len(p) // 2 :])]
            assert facts(seen(tap, head, halves, last)) == facts(record), f"seed {seed}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunked", [True, False])
def test_shape_is_known(
    prebuilt: WireProbe, engine: Callable[[Stream, str], bytes], chunked: bool
) -> None:
    """Of every protocol an event is recognised by its shape, as soon as the third one."""
    tap = Tap(prebuilt)
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD if chunked else HEAD.replace(b"transfer-encoding: chunked\r\n", b""))
    for text in ("a", "be", " sea", "\n", "日"):
        event = engine(Stream(), text)
        server.send(chunk(event) if chunked else event, copies=2)
    assert shape(prebuilt, client.source[1])[5] == 1  # hit
    server.fin()
    record = tap.only()
    assert (record.events, record.token_events) == (5, 5)


def test_new_shape_is_learnt_at_once(prebuilt: WireProbe) -> None:
    """A second that changes in every event's ``created`` costs one event, not the rest."""
    tap = Tap(prebuilt)
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD)
    for second in range(3):
        for _ in range(3):
            server.send(chunk(vllm(Stream(made=1700000000 + second), "a")))
        assert shape(prebuilt, client.source[1])[5] == 1
    tap.forget_all()


def test_shapes_that_never_return(prebuilt: WireProbe) -> None:
    """Where each event has a number of its own, ever fewer are learnt from, up to one in 128."""
    tap = Tap(prebuilt)
    client, server = tap.connect()
    client.send(POST)
    server.send(HEAD)
    for number in range(509):
        server.send(chunk(vllm(Stream(f"cmpl-{number}"), "a")))
    *_, hit, wait, patience = shape(prebuilt, client.source[1])
    assert (hit, patience) == (0, 127)
    assert wait > 0
    server.send(LAST)
    assert tap.only().token_events == 509


@pytest.mark.parametrize("text", ['\\"', "\\\\", '\\\\\\"', "a\\\\", "\\u005c", "\\n", '\\"}'])
def test_escapes(tap: Tap, text: str) -> None:
    """An escape in a text, at its end too, neither ends it nor hides what follows."""
    empty, error = token(""), b'data: {"choices":[],"error":{"code":5}}\n\n'
    for tail, end in ((empty, End.COMPLETE), (error, End.ERROR_EVENT)):
        events = [token("a"), token("b"), token(text), token("c"), token(text), tail]
        record = seen(tap, HEAD, [chunk(e) for e in events], LAST)
        assert (record.events, record.token_events, record.end) == (6, 5, end)


@pytest.mark.parametrize(
    ("text", "events", "tokens"),
    [
        ('a"}}]}\n\ndata: {"choices":[{"index":0,"delta":{"content":"', 4, 3),
        ('a","error":"x', 3, 3),
        ("a\n", 3, 3),
        ("a\r", 3, 3),
        ("", 3, 2),
    ],
)
def test_bytes_that_leave_the_string(tap: Tap, text: str, events: int, tokens: int) -> None:
    """What stands in the text's place but is more than a text is read as what it is."""
    parts = [chunk(token("a")), chunk(token("b")), chunk(token(text))]
    record = seen(tap, HEAD, parts, LAST)
    assert (record.events, record.token_events) == (events, tokens)
    assert (record.end is End.ERROR_EVENT) == ("error" in text)


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_size_that_lies(tap: Tap, cut: int) -> None:
    """A chunk that ends before or behind its event is no event of the known shape."""
    body = token("a")
    framing = [chunk(body), chunk(body), chunk(body + b"data"[: cut - 1]), chunk(body[:-cut])]
    record = seen(tap, HEAD, [*framing, chunk(body[-cut:])], LAST)
    halves = [h for p in [*framing, chunk(body[-cut:])] for h in (p[:9], p[9:])]
    assert facts(seen(tap, HEAD, halves, LAST)) == facts(record)


def test_next_answer_starts_anew(tap: Tap) -> None:
    """The answers of one connection have a key each, though their events are of one shape."""
    client, server = tap.connect()
    for name in ("cmpl-1", "cmpl-2", "cmpl-1"):
        client.send(POST)
        server.send(HEAD)
        for _ in range(3):
            server.send(chunk(vllm(Stream(name), "a")))
        server.send(LAST)
    keys = [record.response_key for record in tap.records()]
    assert keys == [reference.id_key(name) for name in (b"cmpl-1", b"cmpl-2", b"cmpl-1")]


def test_nothing_is_left() -> None:
    """Of an event that was recognised no byte stays, and its shape depends on the secret."""
    found = []
    for secret in (reference.SECRET, reference.SECRET[::-1]):
        loaded = loaders.load("prebuilt", "wire", PROGRAMS, (*MAPS, "works"))
        try:
            found.append(_shape_behind(loaded, secret))
        finally:
            loaded.close()
    assert found[0][2:] == found[1][2:]
    assert found[0][:2] != found[1][:2]


def _shape_behind(loaded: loaders.Loaded, secret: bytes) -> tuple[int, ...]:
    """The shape behind a few events, between which the program's memory holds nothing of them."""
    Map(loaded.maps["secrets"]).update(b"\0" * 4, secret)
    Map(loaded.maps["ports"]).update(PORT.to_bytes(2, "little"), b"\1")
    cpus = possible_cpus(Path("/sys/devices/system/cpu/possible").read_text())
    client = Flow(None, ("198.51.100.7", 7), ("192.0.2.1", PORT), 5000)  # type: ignore[arg-type]  # no tap
    server = Flow(None, ("192.0.2.1", PORT), ("198.51.100.7", 7), 9000, client)  # type: ignore[arg-type]
    client.peer = server
    frames = [client.segment(b"", SYN, 4999), client.segment(POST, ACK)]
    for part in (HEAD, *(chunk(vllm(Stream("zqJwXkYv"), "zqJwXkYv")) for _ in range(5))):
        frames.append(server.segment(part, ACK))
        server.seq += len(part)
    for frame in frames:
        run_filter(loaded.programs["wire"], frame)
        dump = (Map(loaded.maps["works"], cpus).lookup(b"\0" * 4) or b"") + b"".join(
            bytes(values) for _, values, _ in Map(loaded.maps["conns"]).batches(64)
        )
        assert dump.strip(b"\0")
        for piece in (b"zqJw", b"XkYv", b"choi", b"cont"):
            assert piece not in dump
    ((_, values, _),) = Map(loaded.maps["conns"]).batches(64)
    size = Map(loaded.maps["conns"]).value_bytes
    last = struct.unpack("=QQHHBBBB", bytes(values[:size])[-24:])
    assert last[5] == 1  # it was recognised
    return last
