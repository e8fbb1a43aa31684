"""Plays the schedule against a service: arrivals never wait for answers, histories are resent.

Only a closed loop waits: it holds a service at a number of requests, whatever it can bear.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from urllib.parse import urlsplit

from rig.client import Client
from rig.schedule import SYSTEM, Turn, schedule
from rig.truth import Summary, Truth, spread

OPEN = 256  # requests under way; beyond it an arrival fails as `not_sent`
REMEMBERED = 24  # words of an answer that later turns resend: prefill has to stay short
GRACE = 2.0  # seconds that requests under way get after SIGTERM
INTERVAL = 1.0  # seconds between two summary files
Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Settings:
    """One load; `seconds` None runs until SIGTERM, `tokens` are asked of every request.

    With `clients` it is a closed loop: so many at once, each asking again when it has its answer,
    and `rate` is only the most that they start in a second.
    """

    url: str
    rate: float = 2.0
    clients: int | None = None
    seconds: float | None = None
    seed: int = 1
    tokens: int = 80
    timeout: float = 60.0
    key: str | None = None  # for a gateway that wants `Authorization: Bearer …`

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme != "http" or not urlsplit(self.url).hostname:
            raise ValueError(f"not an http:// address: {self.url}")
        if self.rate <= 0 or self.tokens <= 0 or self.timeout <= 0:
            raise ValueError("rate, tokens and timeout must be above 0")
        if self.clients is not None and not 0 < self.clients <= OPEN:
            raise ValueError(f"clients must be 1 to {OPEN}")


def request(
    netloc: str, messages: list[Message], tokens: int, traceparent: str, key: str | None = None
) -> bytes:
    """The bytes of a streaming chat completion; `ignore_eos` makes its length certain."""
    body = json.dumps(
        {
            "model": "rig",
            "messages": messages,
            "max_tokens": tokens,
            "stream": True,
            "ignore_eos": True,
        }
    ).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1",
        f"Host: {netloc}",
        "Content-Type: application/json",
        "Accept: text/event-stream",
        f"Traceparent: {traceparent}",
        *(() if key is None else (f"Authorization: Bearer {key}",)),
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*head, "", "")).encode() + body


class Load:
    """Plays a schedule against a service, and can be asked for its truth at any time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._truth = Truth()
        self._stop = asyncio.Event()
        self._talks: dict[int, list[Message]] = {}
        self._open: set[asyncio.Task[None]] = set()
        self._started, self._cpu = perf_counter(), process_time()
        parts = urlsplit(settings.url)
        self._netloc, host, port = parts.netloc, parts.hostname or "", parts.port or 80
        self._client = Client(host, port, self._truth, settings.timeout)

    def stop(self) -> None:
        """No further arrivals; requests under way get `GRACE` seconds."""
        self._stop.set()

    def summary(self) -> Summary:
        """The truth so far."""
        truth, settings = self._truth, self._settings
        seconds = perf_counter() - self._started
        return Summary(
            requests=truth.requests,
            failed=truth.failures.total(),
            unfinished=len(self._open),
            failures=dict(truth.failures),
            statuses=dict(truth.statuses),
            ttft_seconds=spread(truth.ttft),
            itl_seconds=spread(truth.itl),
            tokens=truth.tokens,
            seconds=seconds,
            idle_ratio=max(0.0, 1 - (process_time() - self._cpu) / max(seconds, 1e-9)),
            rate=settings.rate,
            seed=settings.seed,
        )

    async def run(self, report: Callable[[Summary], None]) -> Summary:
        """Play to the end; `report` hears the truth every second and once at the end."""
        self._started, self._cpu = perf_counter(), process_time()
        reporter = asyncio.create_task(self._report(report))
        await (self._arrivals() if self._settings.clients is None else self._crowd())
        await self._drain()
        reporter.cancel()
        final = self.summary()
        report(final)
        return final

    async def _arrivals(self) -> None:
        end = self._settings.seconds
        for turn in schedule(self._settings.seed, self._settings.rate):
            if end is not None and turn.at > end:
                await self._wait(end)
                return
            if await self._wait(turn.at):
                return
            self._send(turn)

    async def _crowd(self) -> None:
        """The closed loop, until its time is over or it is stopped."""
        stopped = asyncio.create_task(self._stop.wait())
        end = self._settings.seconds
        for turn in schedule(self._settings.seed, self._settings.rate):
            now = perf_counter() - self._started
            if await self._wait(now + 1 / self._settings.rate):
                break
            while len(self._open) >= (self._settings.clients or 0) and not stopped.done():
                await asyncio.wait({*self._open, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if stopped.done() or (end is not None and perf_counter() - self._started > end):
                break
            self._send(turn)
        stopped.cancel()

    async def _wait(self, at: float) -> bool:
        """Until `at` seconds after the start; True when stopped before."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._started + at - perf_counter()):
                return await self._stop.wait()
        return False

    def _send(self, turn: Turn) -> None:
        if len(self._open) >= OPEN:
            self._truth.ended("not_sent")
            return
        task = asyncio.create_task(self._converse(turn))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _converse(self, turn: Turn) -> None:
        """One turn of a conversation, with the history that is there when it is sent."""
        system = {"role": "system", "content": SYSTEM}
        talk = self._talks.setdefault(turn.conversation, [system])
        talk.append({"role": "user", "content": turn.question})
        if turn.last:
            del self._talks[turn.conversation]
        settings = self._settings
        data = request(self._netloc, talk, settings.tokens, turn.traceparent, settings.key)
        answer = await self._client.ask(data)
        words = answer.split()[:REMEMBERED]
        talk.append({"role": "assistant", "content": " ".join(words)})

    async def _drain(self) -> None:
        """Let requests end; those that do not are counted as unfinished, not as failed."""
        stopped = asyncio.create_task(self._stop.wait())
        waiting = asyncio.create_task(asyncio.wait({*self._open})) if self._open else None
        if waiting is not None:
            await asyncio.wait({stopped, waiting}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({waiting}, timeout=GRACE)
            waiting.cancel()
        stopped.cancel()

    async def _report(self, report: Callable[[Summary], None]) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            report(self.summary())
