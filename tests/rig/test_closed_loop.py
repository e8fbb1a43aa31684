"""The closed loop holds a service at a number of requests; the open one never waits."""

import asyncio
from dataclasses import dataclass, field

import pytest

from rig.traffic import Load, Settings, request
from rig.truth import Summary

CLIENTS = 5
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 68\r\nConnection: close\r\n\r\n"
    b'data: {"choices":[{"delta":{"content":" river"}}]}\n\ndata: [DONE]\n\n\n\n'
)


@dataclass
class Service:
    """Answers after some time; notes how many requests were open at once."""

    seconds: float
    open: int = 0
    most: int = 0
    heads: list[bytes] = field(default_factory=list)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request."""
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(self.seconds)  # the time that an answer takes
        self.open -= 1
        writer.write(ANSWER)
        await writer.drain()
        writer.close()


async def played(service: Service, **settings: float) -> Summary:
    """A load of half a second against the service."""
    server = await asyncio.start_server(service, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return await Load(Settings(url=url, seconds=0.5, **settings)).run(lambda _: None)


def test_so_many_at_once_and_no_more() -> None:
    """A slow service has exactly as many open requests as there are clients."""
    service = Service(0.1)
    summary = asyncio.run(played(service, clients=CLIENTS, rate=200.0))
    assert service.most == CLIENTS
    assert summary.requests >= 2 * CLIENTS
    assert summary.failures == {}


def test_rate_is_the_most_it_sends() -> None:
    """A service that answers at once, or refuses at once, is not flooded."""
    service = Service(0.0)
    asyncio.run(played(service, clients=CLIENTS, rate=20.0))
    assert 3 <= len(service.heads) <= 10


def test_a_key_is_sent_as_bearer() -> None:
    """With a key every request has it; without there is no such header."""
    assert b"\r\nAuthorization: Bearer k\r\n" in request("h", [], 1, "t", "k")
    assert b"Authorization" not in request("h", [], 1, "t")


@pytest.mark.parametrize("clients", [0, -1, 1000])
def test_a_senseless_number_of_clients_is_refused(clients: int) -> None:
    """As many as can be open at once, and at least one."""
    with pytest.raises(ValueError, match="clients"):
        Settings(url="http://127.0.0.1:1", clients=clients)
