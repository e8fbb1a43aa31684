"""One thread for one collector: open, collect at its interval, back off while it is blind."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from sidecar.collectors import Collector
from sidecar.signals import (
    Absence,
    CollectorState,
    CollectorStatus,
    NoData,
    RequestTiming,
    Signal,
)

MAX_BACKOFF_SECONDS = 15.0
_SILENT_SECONDS = 10.0  # without signals for so long, a firing collector is attached again

log = structlog.get_logger("worker")


@dataclass(frozen=True, slots=True)
class Batch:
    """What one collection brought."""

    worker: Worker
    signals: tuple[Signal, ...]
    at: float  # monotonic


class Worker:
    """Runs one collector in one thread: open, collect at its interval, back off when it is blind.

    Only the thread writes the fields; the state thread reads them. Each is a single assignment.
    """

    def __init__(
        self,
        collector: Collector,
        inbox: queue.Queue[Batch],
        rng: random.Random,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.collector = collector
        self._inbox = inbox
        self._rng = rng
        self._wall = wall
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"collector-{collector.name}", daemon=True
        )
        self._busy_since: float | None = None
        self._blind: tuple[Absence, str] | None = None
        self._last_good: float | None = None
        self._last_fired: float | None = None
        self._duration: float | None = None
        self._collections = 0
        self._failures: Counter[Absence] = Counter()
        self._dropped = 0

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Asks the thread to end and closes the source, which wakes most blocking calls."""
        self._stop.set()
        self._close()

    def join(self, timeout: float) -> bool:
        """Waits for the thread; False when it is still inside a call."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def status(self) -> CollectorStatus:
        """How the collector fares at this moment."""
        now = time.monotonic()
        state, absence, reason = self._judge(now)
        return CollectorStatus(
            name=self.collector.name,
            state=state,
            absence=absence,
            reason=reason,
            age_seconds=None if self._last_good is None else now - self._last_good,
            duration_seconds=self._duration,
            collections=self._collections,
            failures=tuple(sorted(self._failures.items())),
            dropped=self._dropped,
            stand_in=getattr(self.collector, "stand_in", False),
        )

    def _judge(self, now: float) -> tuple[CollectorState, Absence | None, str]:
        busy_since = self._busy_since
        if busy_since is not None and now - busy_since > self.collector.deadline_seconds:
            reason = f"a call has not come back for {now - busy_since:.0f} s"
            return CollectorState.BLIND, Absence.STUCK, reason
        blind = self._blind
        if blind is not None:
            return CollectorState.BLIND, *blind
        if self._last_good is None:
            return CollectorState.STARTING, None, ""
        quiet = max(_SILENT_SECONDS, 3 * self.collector.interval_seconds)
        if self._last_fired is None or now - self._last_fired > quiet:
            return CollectorState.ATTACHED, None, ""
        return CollectorState.FIRING, None, ""

    def _run(self) -> None:
        failures_in_row = 0
        while not self._stop.is_set():
            try:
                self._call(self.collector.open)
                while not self._stop.is_set():
                    started = time.monotonic()
                    self._collect()
                    failures_in_row = 0
                    spent = time.monotonic() - started
                    self._stop.wait(max(0.0, self.collector.interval_seconds - spent))
            except NoData as error:
                self._note(error.absence, error.reason)
            except Exception as error:  # the one place where any bug is caught
                self._note(Absence.ERROR, f"{type(error).__name__}, see the log")
                if not self._stop.is_set():
                    log.exception("collector failed", collector=self.collector.name)
            self._close()
            failures_in_row += 1
            self._stop.wait(self._backoff(failures_in_row))

    def _call(self, method: Callable[[], None]) -> None:
        self._busy_since = time.monotonic()
        try:
            method()
        finally:
            self._busy_since = None

    def _collect(self) -> None:
        started = time.monotonic()
        self._busy_since = started
        try:
            signals = tuple(self.collector.collect(self._wall()))
        finally:
            self._busy_since = None
        self._duration = time.monotonic() - started
        if self._duration > self.collector.deadline_seconds:
            # Its values were already withdrawn; they are too old to come back.
            raise NoData(Absence.STUCK, f"a collection took {self._duration:.1f} s")
        self._collections += 1
        self._last_good = time.monotonic()
        if self._fires(signals):
            self._last_fired = self._last_good
        self._blind = None
        try:
            self._inbox.put_nowait(Batch(self, signals, self._last_good))
        except queue.Full:
            self._dropped += len(signals)

    def _fires(self, signals: tuple[Signal, ...]) -> bool:
        if self.collector.streamed:
            return any(isinstance(signal, RequestTiming) for signal in signals)
        return bool(signals)

    def _note(self, absence: Absence, reason: str) -> None:
        if self._stop.is_set():
            return
        self._failures[absence] += 1
        if self._blind is None or self._blind[0] is not absence:
            log.warning(
                "collector blind", collector=self.collector.name, absence=absence, reason=reason
            )
        self._blind = (absence, reason)

    def _close(self) -> None:
        try:
            self.collector.close()
        except Exception:  # closing must never end a worker
            log.exception("collector close failed", collector=self.collector.name)

    def _backoff(self, failures: int) -> float:
        """Doubling from half a second, jittered so that many sidecars do not knock together."""
        base = max(0.5, self.collector.interval_seconds / 2)
        span = min(MAX_BACKOFF_SECONDS, base * 2.0 ** min(failures - 1, 10))
        return span * self._rng.uniform(0.75, 1.25)
