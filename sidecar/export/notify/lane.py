"""One thread for one output: takes what is due from its outbox, sends it, backs off when it fails.

A thread for each, because a receiver that accepts and never answers holds its thread for seconds,
and the others are to hear of an alarm meanwhile.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import structlog

from sidecar.alarms.standing import Transition
from sidecar.export.notify.delivery import Outbox, Reason, Sender, Undelivered
from sidecar.export.notify.status import OutputState, OutputStatus
from sidecar.verdicts import Alarm

FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 30.0

log = structlog.get_logger("notify")


class Lane:
    """Joins a sender and its outbox. Only its thread sends; ``offer`` and ``status`` are for any
    thread and wait for nothing but book-keeping.
    """

    def __init__(
        self,
        sender: Sender,
        outbox: Outbox,
        rng: random.Random,
        clock: Callable[[], float] = time.monotonic,
        first_backoff_seconds: float = FIRST_BACKOFF_SECONDS,
        name: str = "",
    ) -> None:
        self.name = name or sender.name
        self._sender = sender
        self._outbox = outbox
        self._rng = rng
        self._clock = clock
        self._first_backoff_seconds = first_backoff_seconds
        self._changed = threading.Condition()  # guards the outbox and all that follows
        self._ending = False
        self._thread = threading.Thread(target=self._run, name=f"notify-{self.name}", daemon=True)
        self._sent = 0
        self._failed: Counter[Reason] = Counter()
        self._failures_in_row = 0
        self._not_before = -math.inf
        self._trouble: Undelivered | None = None
        self._trouble_since = 0.0
        self._last_good: float | None = None
        self._busy_since: float | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Asks the thread to end and breaks off what it is sending; what waits is not sent."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._sender.close()

    def join(self, timeout: float) -> bool:
        """Waits for the thread; False when it is still inside a call."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def offer(self, alarms: Sequence[Alarm], transitions: Iterable[Transition]) -> None:
        """A round: all alarms there are, and what changed."""
        with self._changed:
            now = self._clock()
            self._outbox.take(alarms, transitions, now)
            if self._outbox.next_due() <= now:
                self._changed.notify_all()

    def status(self) -> OutputStatus:
        """How it fares at this moment."""
        with self._changed:
            now = self._clock()
            state, since = self._judge(now)
            return OutputStatus(
                name=self.name,
                state=state,
                sent=self._sent,
                waiting=self._outbox.waiting(),
                failed=tuple(sorted(self._failed.items())),
                dropped=tuple(sorted(self._outbox.dropped.items())),
                age_seconds=None if self._last_good is None else now - self._last_good,
                trouble="" if self._trouble is None else self._trouble.text,
                trouble_seconds=now - since,
                retry_seconds=max(0.0, self._not_before - now),
            )

    def _judge(self, now: float) -> tuple[OutputState, float]:
        busy = self._busy_since
        if busy is not None and now - busy > 2 * self._sender.seconds:
            return OutputState.STUCK, busy
        if self._trouble is not None:
            return OutputState.FAILING, self._trouble_since
        return (OutputState.UNUSED if self._last_good is None else OutputState.WELL), now

    def _run(self) -> None:
        while (batch := self._await()) is not None:
            trouble = self._attempt(batch)
            if trouble is not None and trouble.final and len(batch) > 1:
                self._one_by_one(batch)

    def _await(self) -> tuple[Alarm, ...] | None:
        """What is to be sent now, as soon as there is something; None when it is to end."""
        with self._changed:
            while not self._ending:
                now = self._clock()
                wake = self._not_before
                if wake <= now:
                    batch = self._outbox.due(now, self._sender.batch)
                    if batch:
                        return batch
                    wake = self._outbox.next_due()
                self._changed.wait(None if wake == math.inf else max(0.0, wake - now))
            return None

    def _one_by_one(self, batch: Sequence[Alarm]) -> None:
        """One bad alarm must not keep the others of its message from arriving."""
        for alarm in batch:
            trouble = self._attempt((alarm,))
            if trouble is not None and not trouble.final:
                return  # all that is left is due again later

    def _attempt(self, batch: tuple[Alarm, ...]) -> Undelivered | None:
        self._busy_since = self._clock()
        trouble: Undelivered | None = None
        try:
            self._sender.send(batch)
        except Undelivered as error:
            trouble = error
        except Exception as error:  # a bug must not end the only thread of an output
            log.exception("sending failed", output=self.name)
            trouble = Undelivered(Reason.ERROR, f"{type(error).__name__}, see the log")
        with self._changed:
            self._busy_since = None
            self._note(batch, trouble)
        return trouble

    def _note(self, batch: tuple[Alarm, ...], trouble: Undelivered | None) -> None:
        if self._ending and trouble is not None:
            return
        now = self._clock()
        before, self._trouble = self._trouble, trouble
        if trouble is None:
            self._sent += len(batch)
            self._last_good = now
            self._failures_in_row = 0
            self._outbox.delivered(batch, now)
            if before is not None:
                log.info("alarms are accepted again", output=self.name)
            return
        self._failed[trouble.reason] += 1
        if before is None:
            self._trouble_since = now
        if before is None or before.reason is not trouble.reason:
            log.warning("alarms are not accepted", output=self.name, reason=trouble.text)
        if not trouble.final:
            self._outbox.failed(batch, now)
            self._failures_in_row += 1
            self._not_before = now + max(trouble.wait_seconds, self._backoff())
        elif len(batch) == 1:
            self._outbox.rejected(batch, now)

    def _backoff(self) -> float:
        """Doubling, jittered so that many sidecars do not knock together."""
        doubled = self._first_backoff_seconds * 2.0 ** min(self._failures_in_row - 1, 10)
        return min(MAX_BACKOFF_SECONDS, doubled) * self._rng.uniform(0.75, 1.25)
