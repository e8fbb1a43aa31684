"""Real requests at a steady pace, as a client sends them: what recovery is judged by.

Each is a short streamed chat completion. A service that hangs or crawls keeps at most ``MOST_OPEN``
of them open, so that it is not our requests from which it cannot recover; those that then are not
sent are counted, and the open ones fail by their own deadline.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

import httpx

from chaos.bodies import PLAIN, TooLong, fetched, lines
from chaos.target import Refused
from chaos.vocabulary import Probe

KEY = "MODELPROBE_CHAOS_KEY"  # in the environment: every user of a machine sees arguments
MOST_OPEN = 8
LONGEST = 1 << 18  # bytes of an answer of so few tokens
LONGEST_NAME = 512  # characters of a model
MODELS = 1 << 20  # bytes of a list of models
TOKENS = 8
# What hostile JSON ends in: RecursionError where it is nested deeply.
NO_JSON = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Place:
    """Where to ask: ``name`` is ``engine`` or ``users``. Seconds."""

    name: str
    url: str
    period: float = 0.25
    deadline: float = 10.0
    model: str | None = None


class Prober:
    """Asks one place, from ``start`` to ``stop``; ``probes`` are those that are over, and ``open``
    when the others were sent, in seconds of the monotonic clock.
    """

    def __init__(self, place: Place, clock: Callable[[], float] = monotonic) -> None:
        self.place, self.probes, self.open = place, list[Probe](), dict[int, float]()
        self.skipped = 0
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticker: asyncio.Task[None] | None = None
        self._model = place.model
        key = os.environ.get(KEY)
        try:
            self._client = httpx.AsyncClient(
                base_url=place.url.rstrip("/"),
                headers=PLAIN | ({"Authorization": f"Bearer {key}"} if key else {}),
                timeout=place.deadline,
                limits=httpx.Limits(max_connections=MOST_OPEN, max_keepalive_connections=0),
                trust_env=False,
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise Refused(f"{place.url!r}: {error}; write http://HOST:PORT") from None

    async def start(self) -> None:
        """Finds the model's name, then asks at once and from then on; raises ``Refused``."""
        if self._model is None:
            self._model = await self._found()
        self._ticker = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Open requests are given up, and count for nothing."""
        tasks = [*self._tasks, *([self._ticker] if self._ticker else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.aclose()

    def since(self, at: float) -> list[Probe]:
        """Those that ended after ``at``."""
        return [probe for probe in self.probes if probe.ended >= at]

    def forget(self, before: float) -> None:
        """Drops what ended before: memory is bounded by one run."""
        self.probes = self.since(before)

    async def _found(self) -> str:
        try:
            body = await fetched(self._client, "/v1/models", MODELS, self.place.deadline)
            found = json.loads(body)["data"][0]["id"]
            if not isinstance(found, str) or not 0 < len(found) <= LONGEST_NAME:
                raise ValueError("no name")
        except (httpx.HTTPError, TimeoutError, *NO_JSON) as error:
            raise Refused(
                f"{self.place.url}/v1/models names no model ({type(error).__name__}): is the "
                "service up? --model NAME names one"
            ) from None
        return found

    async def _tick(self) -> None:
        due, number = self._clock(), 0
        while True:
            number += 1
            if len(self._tasks) < MOST_OPEN:
                task = asyncio.create_task(self._ask(number))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                self.skipped += 1
            due = max(due + self.place.period, self._clock() - self.place.period)
            await asyncio.sleep(max(0.0, due - self._clock()))

    async def _ask(self, number: int) -> None:
        sent = self._clock()
        self.open[number] = sent
        stream = _Stream(self._clock)
        try:
            async with asyncio.timeout(self.place.deadline):
                failure = await stream.read(self._client, self._body(number))
        except TimeoutError:
            failure = "timeout"
        except httpx.HTTPError as error:
            failure = _failure(error, begun=stream.first is not None)
        except (RuntimeError, ValueError):  # whatever it was, it was no answer
            failure = "garbage"
        except BaseException:
            del self.open[number]
            raise
        del self.open[number]
        ttft = None if stream.first is None else stream.first - sent
        self.probes.append(Probe(sent, self._clock(), failure, ttft, stream.tokens))

    def _body(self, number: int) -> dict[str, object]:
        # Another text each time, so that no cache of answers can pass for a service that is well.
        text = f"Count up from {number}."
        return {
            "model": self._model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": TOKENS,
            "stream": True,
        }


def _failure(error: httpx.HTTPError, begun: bool) -> str:
    if isinstance(error, httpx.ConnectError):
        return "refused"
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    if isinstance(error, TooLong):
        return "too_long"
    return "cut" if begun else "closed"


class _Stream:
    """One answer as it comes; counts tokens and keeps none of the text."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.first: float | None = None
        self.tokens = 0
        self._clock = clock

    async def read(self, client: httpx.AsyncClient, body: dict[str, object]) -> str | None:
        """To its end; the kind of failure, or None."""
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            if answer.status_code != 200:
                return f"status_{answer.status_code}"
            async for payload in _events(answer):
                if payload == "[DONE]":
                    return None if self.tokens else "empty"
                kind = _kind(payload)
                if kind == "error":
                    return "error_event"
                if kind == "token":
                    self.first = self.first or self._clock()
                    self.tokens += 1
        return "cut" if self.tokens else "empty"


async def _events(answer: httpx.Response) -> AsyncIterator[str]:
    async for line in lines(answer, LONGEST):
        if line.startswith(b"data:"):
            yield line[5:].strip().decode(errors="replace")


def _kind(payload: str) -> str:
    """``error``, ``token`` or ``other``; what is no chat completion chunk is an error."""
    try:
        chunk = json.loads(payload)
        if "error" in chunk:
            return "error"
        choices = chunk["choices"]
        delta = choices[0]["delta"] if choices else {}
    except NO_JSON:
        return "error"
    with suppress(AttributeError):
        text = delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning")
        return "token" if text else "other"
    return "error"
