"""Collector workers → one state thread → immutable snapshots that anyone may read at any time.

Each collector has a thread of its own, so one that blocks delays nobody: the state thread sees
that its call has not come back, calls it stuck and withdraws its values.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

import structlog

from sidecar.collectors import Collector, Releasable
from sidecar.observe.rules import complete
from sidecar.signals import CollectorState
from sidecar.snapshot import Snapshot
from sidecar.state import State
from sidecar.worker import Batch, Worker

PUBLISH_SECONDS = 1.0
_INBOX = 1_000  # batches; a full inbox drops the newest, counted

log = structlog.get_logger("pipeline")

Judge = Callable[[Snapshot, float], Snapshot]


def _unjudged(snapshot: Snapshot, _clock: float) -> Snapshot:
    return snapshot


class Pipeline:
    """Owns the workers and the state thread; ``snapshot`` never blocks."""

    def __init__(
        self,
        collectors: Iterable[Collector],
        state: State,
        rng: random.Random | None = None,
        publish_seconds: float = PUBLISH_SECONDS,
        judge: Judge = _unjudged,
    ) -> None:
        self._state = state
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._publish_seconds = publish_seconds
        self._judge = judge
        self._inbox: queue.Queue[Batch] = queue.Queue(_INBOX)
        self._workers = self._hire(collectors)
        self._next: tuple[Worker, ...] | None = None
        self._released = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="state", daemon=True)
        self._snapshot = Snapshot(at=time.time(), started=time.time())

    def _hire(self, collectors: Iterable[Collector]) -> tuple[Worker, ...]:
        return tuple(Worker(collector, self._inbox, self._rng) for collector in collectors)

    def start(self) -> None:
        """Starts every thread; sources may come up in any order, before or after."""
        self._thread.start()
        for worker in self._workers:
            worker.start()

    def snapshot(self) -> Snapshot:
        """The latest snapshot."""
        return self._snapshot

    def ready(self) -> tuple[bool, str]:
        """Whether a first snapshot was published, and why not."""
        if self._snapshot.sequence == 0:
            return False, "no snapshot yet"
        return True, ""

    def replace(self, collectors: Iterable[Collector]) -> None:
        """Puts new collectors in place of all, at the next publication; counted requests stay."""
        # Not started here: a second call before then just forgets these.
        self._next = self._hire(collectors)

    def hold(self, released: bool) -> None:
        """Has every collector that can give up what it holds, or take it again."""
        self._released = released
        for worker in self._workers:
            if isinstance(worker.collector, Releasable):
                (worker.collector.release if released else worker.collector.retake)()

    def stop(self, timeout: float = 2.0) -> list[str]:
        """Ends everything within about ``timeout``; returns the collectors still in a call."""
        deadline = time.monotonic() + timeout
        self._stop.set()
        for worker in self._workers:
            worker.stop()
        self._thread.join(max(0.0, deadline - time.monotonic()))
        return [
            worker.collector.name
            for worker in self._workers
            if not worker.join(max(0.0, deadline - time.monotonic()))
        ]

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                batch = self._inbox.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                self._guard(self._publish)
                due = max(due + self._publish_seconds, time.monotonic())
                continue
            self._guard(partial(self._take, batch))
            if time.monotonic() > due:  # a busy inbox must not keep the clock from publishing
                self._guard(self._publish)
                due = time.monotonic() + self._publish_seconds

    def _guard(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:  # a bad batch must not end the only state thread
            log.exception("state step failed")

    def _take(self, batch: Batch) -> None:
        if batch.worker in self._workers:
            self._state.apply(batch.worker.collector.name, batch.signals, batch.at)

    def _publish(self) -> None:
        self._swap()
        clock = time.monotonic()
        statuses = tuple(worker.status() for worker in self._workers)
        for status in statuses:
            if status.state is CollectorState.BLIND:
                self._state.withdraw(status.name)
        snapshot = self._state.snapshot(statuses, time.time(), clock)
        self._snapshot = self._judge(complete(snapshot), clock)

    def _swap(self) -> None:
        workers, self._next = self._next, None
        if workers is None:
            return
        kept = {worker.collector.name for worker in workers}
        for worker in self._workers:
            worker.stop()
            if worker.collector.name not in kept:
                self._state.withdraw(worker.collector.name)
        self._workers = workers
        self.hold(self._released)
        for worker in workers:
            worker.start()
