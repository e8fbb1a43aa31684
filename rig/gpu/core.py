"""The one thread that works the device: requests are admitted, their tokens share steps.

A step is launched when its first member needs it and waited for when a member's token is there,
as engines that schedule one step ahead do: the device computes while llama.cpp does.
"""

import asyncio
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from rig.gpu.blocks import Blocks
from rig.gpu.device import Device
from rig.gpu.errors import EngineDead, OutOfMemory
from rig.gpu.orders import Kind, Order
from rig.gpu.ranks import Ranks
from rig.gpu.work import BLOCK, Request, Settings, Work

WINDOW = 0.002  # seconds after its launch in which a step takes further members
Done = asyncio.Future[None]


class Core:
    """Starts with `start`; everything else is called on the event loop."""

    def __init__(self, settings: Settings, ranks: Ranks, dead: Callable[[Exception], None]) -> None:
        self.settings, self.ranks = settings, ranks
        self.busy_since: float | None = None  # monotonic seconds; None while idle
        self.launched = self.synced = 0  # steps
        self.error: Exception | None = None
        self._dead = dead
        self._loop = asyncio.get_running_loop()
        self._todo: SimpleQueue[tuple[Work, Request, Done] | None] = SimpleQueue()
        self._pending: set[Done] = set()
        self._open_requests: dict[int, Request] = {}  # those with blocks, of the thread alone
        self._ready = self._future()
        self._thread = Thread(target=self._run, name="device", daemon=True)

    async def start(self) -> None:
        """Return when every rank has its weights; raises EngineDead."""
        self._thread.start()
        await self._ready

    def ask(self, work: Work, request: Request) -> Done:
        """Done when it is; raises OutOfMemory for this request, EngineDead for all."""
        future = self._future()
        if self.error is not None:
            future.set_exception(EngineDead())
        else:
            self._todo.put((work, request, future))
        return future

    def die(self, error: Exception) -> None:
        """Every request that waits fails, and all that come; safe to call again."""
        self.error = self.error or error
        for future in list(self._pending):
            if not future.done():
                future.set_exception(EngineDead())

    def stop(self, seconds: float) -> None:
        """Let the thread close the device, for so long at most."""
        self._todo.put(None)
        self._thread.join(seconds)

    def _future(self) -> Done:
        future: Done = self._loop.create_future()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    # From here on: in the thread.

    def _run(self) -> None:
        try:
            self._open()
            self._post([(self._ready, None)])
            while self._round():
                self.busy_since = None
            self.device.close()
        except Exception as error:  # noqa: BLE001  whatever it is, requests must not wait for ever
            self._dead(error)

    def _open(self) -> None:
        settings = self.settings
        self.device = Device(0, settings.shape)
        self.blocks = Blocks(self.device, settings.pool)
        if settings.ranks > 1:
            unique = self.device.unique_id()
            self.ranks.greet(unique)
            self.device.join(unique, settings.ranks, 0)

    def _round(self) -> bool:
        """One item of work with all that wait behind it; False to end."""
        try:
            items = [self._todo.get(timeout=WINDOW if self.device.flight else None)]
        except Empty:  # nothing joins the step any more: see how it ended
            self.busy_since = monotonic()
            self._synchronise()
            return True
        self.busy_since = monotonic()
        try:
            while True:
                items.append(self._todo.get_nowait())
        except Empty:
            work = [item for item in items if item is not None]
        done: list[tuple[Done, Exception | None]] = []
        members: list[Request] = []
        for kind, request, future in sorted(work, key=lambda item: -item[0].value):
            try:
                if self._single(kind, request):
                    members.append(request)
                done.append((future, None))
            except OutOfMemory as full:
                done.append((future, full))
        self._post(done)  # tokens are due now, whatever the next step will be
        if members:
            self._step(members)
        return len(work) == len(items)

    def _single(self, kind: Work, request: Request) -> bool:
        """What is the request's own affair; True when it takes part in the next step."""
        if kind is Work.RELEASE:
            if request.step > self.synced:
                self._synchronise()
            self._open_requests.pop(request.number, None)
            self.blocks.free(request.number)
            self.ranks.tell(Order(Kind.FREE, request.number))
            return False
        if kind is Work.TOKEN:
            request.tokens += 1
            if request.step > self.synced:
                self._synchronise()
            if request.failure is not None:
                raise request.failure
        if request.tokens > request.room:
            self._grow(request)
        return True

    def _grow(self, request: Request) -> None:
        """Blocks for all its tokens, on every rank."""
        blocks = -(-(request.tokens - request.room) // BLOCK)
        count = blocks * BLOCK * self.settings.bytes_per_token
        self.blocks.allocate(request.number, count)
        request.room += blocks * BLOCK
        self._open_requests[request.number] = request
        self.ranks.tell(Order(Kind.ALLOCATE, request.number, count))

    def _step(self, members: list[Request]) -> None:
        """Join the step under way if it is young, else launch the next; a prompt always does."""
        flight = self.device.flight
        young = flight is not None and monotonic() - flight.since < WINDOW
        joining = all(0 < request.step < self.launched for request in members)
        if not (young and joining):
            self._synchronise()
            tokens = sum(1 if request.step else request.tokens for request in members)
            self.ranks.tell(Order(Kind.STEP, number=tokens))
            try:
                self.device.launch(tokens)
            except OutOfMemory as full:
                for request in members:
                    request.failure = full  # told with the token that this step was for
            self.launched += 1
        for request in members:
            request.step = self.launched

    def _synchronise(self) -> None:
        """Wait for what was launched; then the ranks' failed allocations are known."""
        self.device.synchronise()
        self.synced = self.launched
        for found in self.ranks.failures():
            request = self._open_requests.get(found.request)
            if request is not None:
                request.failure = OutOfMemory(found.wanted, found.free, found.total, found.mine)

    def _post(self, done: list[tuple[Done, Exception | None]]) -> None:
        self._loop.call_soon_threadsafe(settle, done)


def settle(done: list[tuple[Done, Exception | None]]) -> None:
    """Set the futures' results, unless the engine's death has."""
    for future, error in done:
        if not future.done():
            future.set_exception(error) if error else future.set_result(None)
