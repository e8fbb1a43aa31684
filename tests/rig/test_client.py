"""The client against servers of our own: what it counts as a token, and how it names failures."""

import asyncio
from collections.abc import Sequence

import pytest

from rig.client import Client
from rig.http1 import Framing, Part
from rig.ports import free_ports
from rig.truth import Truth

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"
END = b"0\r\n\r\n"
ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":null}}]}\n\n'
EMPTY = b'data: {"choices":[{"delta":{"content":""}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"completion_tokens":2}}\n\n'
WORD = b'data: {"choices":[{"delta":{"content":" river"}}]}\n\n'
ERROR = b'data: {"error":{"message":"out of memory"}}\n\n'
PAUSE = 0.1  # seconds between two writes of the server, which is what the client has to see


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


async def play(writes: Sequence[bytes], timeout: float, keep: bool) -> tuple[Truth, str]:
    """One request to a server that makes these writes, `PAUSE` apart, and then closes or not."""
    truth, over = Truth(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for number, data in enumerate(writes):
            if number:
                await asyncio.sleep(PAUSE)  # the interval under test
            writer.write(data)
            await writer.drain()
        if keep:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        said = await Client("127.0.0.1", port, truth, timeout).ask(b"GET / HTTP/1.1\r\n\r\n")
        over.set()
    return truth, said


def ask(*writes: bytes, timeout: float = 5.0, keep: bool = False) -> tuple[Truth, str]:
    """What the client counts and hears when the server makes these writes."""
    return asyncio.run(play(writes, timeout, keep))


def test_role_and_empty_deltas_are_not_tokens() -> None:
    """TTFT ends at the first delta with text, two writes after the role."""
    stream = (HEAD + chunk(ROLE), chunk(EMPTY), chunk(WORD), chunk(USAGE + DONE) + END)
    truth, said = ask(*stream)
    assert (truth.tokens, said, truth.failures.total()) == (1, " river", 0)
    assert truth.ttft.quantile(0.5) == pytest.approx(2 * PAUSE, abs=PAUSE / 2)


def test_gap_is_the_time_between_arrivals() -> None:
    """Two words in two writes are a pause apart."""
    truth, _ = ask(HEAD + chunk(WORD), chunk(WORD + DONE) + END)
    assert truth.itl.quantile(0.5) == pytest.approx(PAUSE, abs=PAUSE / 2)


def test_words_of_one_write_arrive_together() -> None:
    """Two words in one packet have a gap of 0, whatever the server's pace was."""
    truth, said = ask(HEAD + chunk(WORD) + chunk(WORD) + chunk(DONE) + END)
    assert (truth.itl.quantile(0.99), said) == (0.0, " river river")


@pytest.mark.parametrize(
    ("kind", "writes"),
    [
        ("closed", (HEAD + chunk(WORD),)),
        ("closed", (b"",)),
        ("cut", (HEAD + chunk(WORD) + END,)),
        ("empty", (HEAD + chunk(ROLE) + chunk(DONE) + END,)),
        ("error_event", (HEAD + chunk(WORD) + chunk(ERROR),)),
        ("garbage", (b"SSH-2.0-OpenSSH_9.2\r\n\r\n",)),
        ("garbage", (HEAD + b"nothing\r\n",)),
        ("garbage", (HEAD + b"1\r\nab\r\n",)),
        ("garbage", (HEAD + chunk(b"data: <html>\n\n"),)),
        ("garbage", (HEAD + chunk(b"data: [1]\n\n"),)),
        ("garbage", (HEAD + chunk(b"data: 1\n\n"),)),
        ("status_503", (b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno",)),
        ("status_429", (b"HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n",)),
        ("status_502", (b"HTTP/1.0 502 No\r\n\r\nuntil the end",)),
    ],
)
def test_failures_are_named(kind: str, writes: tuple[bytes, ...]) -> None:
    """Each way to fail has its own name, and counts once."""
    truth, _ = ask(*writes)
    assert (truth.requests, dict(truth.failures)) == (1, {kind: 1})


def test_silence_is_a_timeout() -> None:
    """A server that keeps the connection and says no more is not waited for without end."""
    truth, _ = ask(HEAD + chunk(WORD), timeout=2 * PAUSE, keep=True)
    assert dict(truth.failures) == {"timeout": 1}


def test_nobody_there_is_refused() -> None:
    """A port without listener gives `refused`, not an exception."""

    async def lonely() -> Truth:
        truth = Truth()
        await Client("127.0.0.1", free_ports([0])[0], truth, 5.0).ask(b"")
        return truth

    assert dict(asyncio.run(lonely()).failures) == {"refused": 1}


def test_framing_does_not_depend_on_how_bytes_are_split() -> None:
    """Fed byte by byte, an answer gives the same body as fed whole."""
    data = b"HTTP/1.1 100 Go on\r\n\r\n" + HEAD + chunk(WORD) + chunk(DONE) + END
    framing = Framing()
    body = b"".join(framing.feed(data[at : at + 1]) for at in range(len(data)))
    assert (framing.part, body) == (Part.OVER, WORD + DONE) == (Part.OVER, Framing().feed(data))
