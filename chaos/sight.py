"""What the sidecar says, asked over HTTP as an operator would: T2, when an alarm began to fire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import islice
from time import monotonic

import httpx

from chaos.bodies import fetched
from chaos.vocabulary import Detected

PERIOD = 0.5  # seconds between two looks
DEADLINE = 5.0  # seconds for one
LARGEST = 4 << 20  # bytes of a state: more of it would keep us from renewing a lease
ALARMS = 1_000  # that fire at once; the others are not looked at
_LONGEST = 500  # characters of what it says
Key = tuple[str, str]


class Sight:
    """Alarms that fire. ``blind`` says why nothing can be seen now, empty while it can."""

    def __init__(self, url: str | None, clock: Callable[[], float] = monotonic) -> None:
        self.blind = "no sidecar was named" if url is None else "not asked yet"
        self._url, self._clock = url, clock
        self._firing: dict[Key, str] = {}
        self._began: list[tuple[Key, float, str]] = []
        self._missed: tuple[float, str] | None = None
        self._task: asyncio.Task[None] | None = None
        self._client: httpx.AsyncClient | None = None

    async def start(self) -> None:
        """Looks once, then again and again; a sidecar that does not answer is no error."""
        if self._url is None:
            return
        self._client = httpx.AsyncClient(timeout=DEADLINE, trust_env=False)
        await self._look(self._client)
        self._began.clear()  # what fired before we came is nobody's finding
        self._task = asyncio.create_task(self._watch(self._client))

    async def stop(self) -> None:
        """Ends the looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    @property
    def firing(self) -> tuple[str, ...]:
        """The rules that fire now."""
        return tuple(sorted({rule for rule, _ in self._firing}))

    def since(self, start: float) -> tuple[Detected, ...]:
        """What has begun to fire after ``start`` (monotonic), in seconds after it."""
        found = [(at, key[0], text) for key, at, text in self._began if at >= start]
        return tuple(Detected(rule, at - start, text) for at, rule, text in sorted(found))

    def unseen(self, start: float) -> str:
        """Why something may have fired unseen since ``start``; empty if every look succeeded."""
        if self.blind or self._missed is None or self._missed[0] < start:
            return self.blind
        return f"{self._missed[1]}, for a while"

    def forget(self, before: float) -> None:
        """Drops what began before: memory is bounded by one run."""
        self._began = [item for item in self._began if item[1] >= before][-10 * ALARMS :]

    async def _watch(self, client: httpx.AsyncClient) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            await self._look(client)

    async def _look(self, client: httpx.AsyncClient) -> None:
        url = f"{str(self._url).rstrip('/')}/api/v1/state"
        try:
            firing = _firing(json.loads(await fetched(client, url, LARGEST, DEADLINE)))
        except _UNREAD as error:
            self.blind = f"the sidecar cannot be asked: {type(error).__name__}"
            self._missed = self._clock(), self.blind
            return
        self.blind, now = "", self._clock()
        self._began += [(key, now, text) for key, text in firing.items() if key not in self._firing]
        self._firing = firing


# The last five are what hostile JSON ends in.
_UNREAD = (
    *(httpx.HTTPError, httpx.InvalidURL, TimeoutError),
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
)


def _firing(state: object) -> dict[Key, str]:
    if not isinstance(state, dict):
        raise TypeError("no state")
    found = {}
    alarms = (alarm for alarm in state["alarms"] if alarm["state"] == "firing")
    for alarm in islice(alarms, ALARMS):
        labels = sorted((str(name), str(value)) for name, value in alarm["labels"].items())
        subject = ",".join(f"{name}={value}" for name, value in labels)
        rule, text = str(alarm["rule"])[:_LONGEST], str(alarm.get("text", ""))[:_LONGEST]
        found[rule, subject[:_LONGEST]] = text
    return found
