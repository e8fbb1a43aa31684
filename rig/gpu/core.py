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
from rig.gpu.errors import CudaError, EngineDead, OutOfMemory
from rig.gpu.guarded import BlocksLost, Guard, Guarded, Unguarded
from rig.gpu.ranks import Ranks
from rig.gpu.steps import WINDOW, Steps
from rig.gpu.work import Request, Settings, Work

Done = asyncio.Future[None]
Item = tuple[Work, Request, Done]


class Core:
    """Starts with `start`; everything else is called on the event loop.

    `rebuilds` is how many lost contexts a minute are rebuilt; None: it dies of the first.
    """

    def __init__(
        self,
        settings: Settings,
        ranks: Ranks,
        dead: Callable[[Exception], None],
        rebuilds: int | None = None,
    ) -> None:
        self.settings, self.ranks = settings, ranks
        self.busy_since: float | None = None  # monotonic seconds; None while idle
        self.error: Exception | None = None
        self._dead = dead
        self._loop = asyncio.get_running_loop()
        self._rebuilds = rebuilds
        self._todo: SimpleQueue[Item | None] = SimpleQueue()
        self._pending: set[Done] = set()
        self._steps = Steps(settings, ranks)
        self._ready = self._future()
        self._thread = Thread(target=self._run, name="device", daemon=True)

    @property
    def device(self) -> Device:
        """Rank 0's, from `start` on; another one after each rebuild."""
        return self._steps.device

    @property
    def blocks(self) -> Blocks:
        """What requests hold on it."""
        return self._steps.blocks

    @property
    def launched(self) -> int:
        """Steps so far."""
        return self._steps.launched

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
            self._steps.open()
            self._guard = self._guarded()
            self._post([(self._ready, None)])
            while self._round():
                self.busy_since = None
            self.device.close()
        except Exception as error:  # noqa: BLE001  whatever it is, requests must not wait for ever
            self._dead(error)

    def _guarded(self) -> Guard:
        if self._rebuilds is None:
            return Unguarded()
        alone = self.settings.ranks == 1  # a communicator's other ranks would have to join anew
        rebuild = self._steps.reopen if alone else None
        return Guarded(self._rebuilds, rebuild, lambda: self.device.adopt(), self._dead)

    def _round(self) -> bool:
        """One item of work with all that wait behind it; False to end."""
        items = self._taken()
        work = [item for item in items if item is not None]
        self.busy_since = monotonic()
        self._guard.check()
        try:
            if items:
                self._work(work)
            else:  # nothing joins the step any more: see how it ended
                self._steps.synchronise()
        except CudaError as error:
            if not self._guard.survives(error):
                raise
            self._fail(work)
        return len(work) == len(items)

    def _taken(self) -> list[Item | None]:
        """All that waits, at least one item unless a step is under way; None is the end."""
        items: list[Item | None] = []
        try:
            items.append(self._todo.get(timeout=WINDOW if self.device.flight else None))
            while True:
                items.append(self._todo.get_nowait())
        except Empty:
            return items

    def _fail(self, work: list[Item]) -> None:
        """The context was lost in the middle of a round: what that was for fails, or is moot."""
        ends = [request for kind, request, _ in work if kind is Work.RELEASE]
        told: list[tuple[Done, Exception | None]] = [
            (done, None if request in ends else BlocksLost()) for _, request, done in work
        ]
        self._post(told)  # those that were told before keep what they were told
        self._guard.check()
        for request in ends:
            self._steps.free(request)

    def _work(self, work: list[Item]) -> None:
        done: list[tuple[Done, Exception | None]] = []
        members: list[Request] = []
        for kind, request, future in sorted(work, key=lambda item: -item[0].value):
            try:
                if self._steps.single(kind, request):
                    members.append(request)
                done.append((future, None))
            except (OutOfMemory, BlocksLost) as failed:
                done.append((future, failed))
        self._post(done)  # tokens are due now, whatever the next step will be
        if members:
            self._steps.step(members)

    def _post(self, done: list[tuple[Done, Exception | None]]) -> None:
        self._loop.call_soon_threadsafe(settle, done)


def settle(done: list[tuple[Done, Exception | None]]) -> None:
    """Set the futures' results, unless the engine's death has."""
    for future, error in done:
        if not future.done():
            future.set_exception(error) if error else future.set_result(None)
