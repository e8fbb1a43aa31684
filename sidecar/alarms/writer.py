"""One thread between the book and the disk, so that a slow disk never holds up a verdict.

The book hands over everything it knows once a round; the thread writes what differs from what the
file holds. Rounds that come while it writes are not queued: the latest one has it all, but for
transitions and levels, which wait in bounded queues.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import structlog

from sidecar.alarms.outbox import Outbox, Parcel
from sidecar.alarms.standing import Key, Standing, Transition
from sidecar.alarms.states import StoreState, StoreStatus
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from sidecar.verdicts import Mark

REST_SECONDS = 0.2  # between two writes
POLL_SECONDS = 2.0  # how often marks are looked for
_FIRST_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 60.0

log = structlog.get_logger("alarms")


class Writer:
    """Owns the store from ``start`` to ``stop``; everything else may be called from any thread.

    A file that could not be read at the start and can be later holds alarms the book has never
    heard of: :meth:`exchange` hands them over, and until the round after that nothing is written.
    """

    def __init__(
        self,
        store: Store,
        rest_seconds: float = REST_SECONDS,
        poll_seconds: float = POLL_SECONDS,
        first_retry_seconds: float = _FIRST_RETRY_SECONDS,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._rest_seconds = rest_seconds
        self._poll_seconds = poll_seconds
        self._first_retry_seconds = first_retry_seconds
        self._wall = wall
        self._outbox = Outbox()
        self._written: dict[Key, Standing] = _by_key(store.restored)
        self._known = store.read  # what the file held has reached the book
        self._found: tuple[Standing, ...] = ()
        self._doubted = False
        self._waiting = False  # for the book to adopt what was found
        self._mutex = threading.Lock()  # of these two
        self._marks: tuple[Mark, ...] = ()
        self._look_at = 0.0
        self._retry_at = 0.0
        self._delay = first_retry_seconds
        self._said = (StoreState.OK, "")
        self._durable = self._writes = self._failures = 0
        self._durable_at = time.monotonic()  # when what the file holds was handed over
        self._write_seconds = 0.0
        self._busy_since: float | None = None
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alarms-writer", daemon=True)

    def start(self) -> None:
        """Starts the thread; without a configured file there is none."""
        self._say()
        if self._store.path is not None:
            self._thread.start()

    def stop(self, timeout: float = 2.0) -> bool:
        """Writes what waits and closes the file; False when the disk took longer than that."""
        self._stop.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def exchange(
        self, standings: tuple[Standing, ...], transitions: Iterable[Transition]
    ) -> tuple[Standing, ...]:
        """Takes a round of the book, and returns what a late opening found in the file, for the
        book to adopt before the next round: nearly always nothing. Never waits for the disk.
        """
        if self._store.path is None:
            return ()
        self._outbox.put(standings, transitions)
        with self._mutex:
            found, self._found = self._found, ()
            if not found:
                self._waiting = False
        self._wake.set()
        return found

    def level(self, key: str, payload: str) -> bool:
        """Keeps a detector's level (JSON), the latest for each key; False when it was refused."""
        return self._store.path is not None and self._outbox.level(key, payload)

    def doubt(self) -> None:
        """Has the file examined, as when it is opened: somebody else found it damaged."""
        self._doubted = True
        self._wake.set()

    def marks(self) -> tuple[Mark, ...]:
        """The marks in force when the file was last looked at, and the deploy that ended last."""
        return self._marks

    def status(self) -> StoreStatus:
        """How the file fares at this moment."""
        busy_since, rounds, now = self._busy_since, self._outbox.rounds, time.monotonic()
        return StoreStatus(
            state=self._store.state,
            reason=self._store.reason,
            rounds=rounds,
            durable=self._durable,
            writes=self._writes,
            failures=self._failures,
            dropped_transitions=self._outbox.dropped_transitions,
            dropped_levels=self._outbox.dropped_levels,
            write_seconds=self._write_seconds,
            busy_seconds=0.0 if busy_since is None else now - busy_since,
            lag_seconds=0.0 if self._durable >= rounds else max(0.0, now - self._durable_at),
        )

    def _run(self) -> None:
        while not self._stop.is_set():
            self._guard(self._turn)
            self._stop.wait(self._rest_seconds)
            self._wake.wait(self._poll_seconds)
            self._wake.clear()
        self._retry_at = 0.0
        self._guard(self._turn)
        self._guard(self._store.close)

    def _guard(self, step: Callable[[], None]) -> None:
        self._busy_since = time.monotonic()
        try:
            step()
        except Exception:  # a row nobody thought of must not end the only thread that writes
            self._failures += 1
            log.exception("alarm store step failed")
        finally:
            self._busy_since = None

    def _turn(self) -> None:
        now = time.monotonic()
        if self._doubted:
            self._doubted = False
            self._store.close()
        if self._store.state is not StoreState.OK and now < self._retry_at:
            return
        if not self._store.usable():
            self._reopen()
        if self._store.usable() and now >= self._look_at:
            self._look_at = now + self._poll_seconds
            self._marks = self._store.marks(self._wall())
        with self._mutex:
            waiting = self._waiting
        parcel = None if waiting else self._outbox.take(self._written)
        if parcel is not None and self._store.usable():
            self._write(parcel)
        self._settle(now)

    def _reopen(self) -> None:
        self._store.open(self._store.path)
        self._written = _by_key(self._store.restored)
        if self._store.read and not self._known:
            self._known = True
            with self._mutex:
                self._found = self._store.restored
                self._waiting = bool(self._found)

    def _write(self, parcel: Parcel) -> None:
        if parcel.change == Change() and self._store.state is StoreState.OK:
            self._keep(parcel)
            return
        began = time.monotonic()
        state = self._store.write(parcel.change)
        self._write_seconds = time.monotonic() - began
        if state is StoreState.OK:
            self._outbox.done(parcel)
            self._written = _by_key(parcel.standings)
            self._keep(parcel)
            self._writes += 1

    def _keep(self, parcel: Parcel) -> None:
        self._durable, self._durable_at = parcel.round, parcel.at

    def _settle(self, now: float) -> None:
        """Says a new state once, and makes room before the next attempt where one failed."""
        if self._store.state is StoreState.OK:
            self._delay = self._first_retry_seconds
        else:
            self._failures += 1
            self._retry_at = now + self._delay
            self._delay = min(2 * self._delay, _LONGEST_RETRY_SECONDS)
        self._say()

    def _say(self) -> None:
        said, self._said = self._said, (self._store.state, self._store.reason)
        if self._said == said:
            return
        where = "in a file" if self._said[0] is StoreState.OK else "in memory only"
        log.warning(f"alarms are kept {where}", state=self._said[0], reason=self._said[1])


def _by_key(standings: Iterable[Standing]) -> dict[Key, Standing]:
    return {standing.alarm.key: standing for standing in standings}
