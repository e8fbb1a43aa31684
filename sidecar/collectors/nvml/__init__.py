"""The GPUs, through the driver's management library (NVML), in a process of its own.

A call of that library can block for 45 s, or for good. So this side only starts the child
(``child.py``), takes what it says, and ends it when it goes silent: nothing here ever waits for a
GPU. The child imports this package too, hence nothing heavy here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sidecar.children import Child
from sidecar.collectors.nvml.codes import why_blind
from sidecar.collectors.nvml.inventory import Inventory
from sidecar.collectors.nvml.launch import child_environment, library_is_there
from sidecar.collectors.nvml.metrics import METRICS
from sidecar.collectors.nvml.protocol import Message, Options, decode
from sidecar.signals import Absence, Event, NoData, Signal

if TYPE_CHECKING:  # pydantic is half of what the child would weigh
    from sidecar.config import Settings

__all__ = ["METRICS", "NvmlCollector", "from_settings"]

_HELLO_SECONDS = 8.0  # Python's start and nvmlInit, which takes seconds without persistence mode
_SILENT_SECONDS = 5.0
_MOST_LEFT = 1  # children that hang in the kernel; where two do, a third would too
_LOOK_AGAIN_SECONDS = 10.0  # for a card that is lost or missing; doubles
_MOST_LOOK_AGAIN_SECONDS = 300.0


def from_settings(settings: Settings) -> Iterable[NvmlCollector]:
    """One collector where the library is found, or where it is asked for."""
    gpu = settings.gpu
    environment = child_environment(gpu.library_folder, os.environ)
    wanted = gpu.enabled == "always" or (gpu.enabled == "auto" and library_is_there(environment))
    if not wanted:
        return []
    return [NvmlCollector(gpu.expected, Options(fast=gpu.interval_seconds), environment)]


class NvmlCollector:
    """Keeps one child and the inventory, which outlives children: counts must not start again."""

    name = "nvml"
    metrics = METRICS
    streamed = False
    deadline_seconds = 10.0

    def __init__(
        self,
        expected: int = 0,
        options: Options | None = None,
        environment: Mapping[str, str] | None = None,
        look_again_seconds: float = _LOOK_AGAIN_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        options = options or Options()
        self.interval_seconds = options.fast
        # What is slower than the fast group must not be read more often than it.
        self._options = replace(
            options, middle=max(options.middle, options.fast), slow=max(options.slow, options.fast)
        )
        self._environment = dict(os.environ if environment is None else environment)
        self._look_again = look_again_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._left: list[Child] = []  # all that are not reaped yet, the present one too
        self._events: list[Event] = []  # not handed over yet
        self._released = False
        self._worked = False
        self._looks = 0
        self._look_at = 0.0
        self._inventory = Inventory(expected)
        self.stand_in = False

    def open(self) -> None:
        """Starts a child and waits for its first word; NoData names why there is none."""
        self.close()
        self._inventory.forget()
        self._start()
        self._looks = 0

    def _start(self) -> None:
        with self._lock:
            if self._released:
                raise _released()
            self._left = [child for child in self._left if not child.reaped.is_set()]
            if len(self._left) > _MOST_LEFT:
                raise _hanging(self._left)
            arguments = ["-m", "sidecar.collectors.nvml.child", self._options.dump()]
            child = self._child = Child(arguments, self._environment, self._clock)
            self._left.append(child)
        lines = child.wait(_HELLO_SECONDS)
        if not lines:
            self._say_why(child)
        for line in lines:
            self._take(decode(line))

    def collect(self, now: float) -> Iterable[Signal]:
        """What is known of every card, and an event for each new incident."""
        child = self._child
        if self._released or child is None:
            raise _released() if self._released else _gone(None)
        messages = [decode(line) for line in child.lines()]
        for message in messages:
            self._take(message)
        if any(message.changed for message in messages) or self._is_time_to_look():
            self._replace(child)
        elif child.ended or self._is_silent(child):
            self._say_why(child)
        events, self._events = self._events, []
        return [*self._inventory.samples(self._clock(), now), *events]

    def close(self) -> None:
        """Lets the child go; returns at once, whatever it is doing."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.let_go()

    def release(self) -> None:
        """Gives NVML up, so that the driver can be replaced; safe from any thread."""
        self._released = True
        self.close()

    def retake(self) -> None:
        """Reads again, from the next time the collector is opened."""
        self._released = False

    def _take(self, message: Message) -> None:
        if message.hello is not None:
            driver, self.stand_in = message.hello
            self._inventory.begin(driver, message.count or 0)
        for card in message.cards:
            self._inventory.take(card)
            self._worked = self._worked or card.good_at is not None
        if message.cards:
            self._inventory.retire()
        events = [self._inventory.add_xid(xid) for xid in message.xids]
        self._events += [event for event in events if event is not None]
        if message.blind is not None:
            raise why_blind(message.blind, self._worked)

    def _is_time_to_look(self) -> bool:
        """A lost or missing card comes back only to a process that starts NVML anew; but not
        while a call hangs: the new process might hang too, and all be blind for one.
        """
        inventory = self._inventory
        if inventory.present >= inventory.expected or not inventory.all_answer():
            self._looks = 0
            return False
        now = self._clock()
        if self._looks == 0:
            self._looks, self._look_at = 1, now + self._look_again
        return now >= self._look_at

    def _replace(self, child: Child) -> None:
        """A new child in the old one's place; what is known stays until it tells."""
        child.let_go()
        self._looks += 1
        wait = self._look_again * 2.0 ** min(self._looks - 1, 10)
        self._look_at = self._clock() + min(_MOST_LOOK_AGAIN_SECONDS, wait)
        self._start()

    def _is_silent(self, child: Child) -> bool:
        limit = max(_SILENT_SECONDS, 2 * self.interval_seconds)
        return self._clock() - child.heard_at > limit

    def _say_why(self, child: Child) -> None:
        if not child.ended:
            child.let_go(kill=True)
            if self._released or self._child is not child:
                raise _released() if self._released else _gone(None)
            raise NoData(
                Absence.STUCK,
                f"the NVML reader (pid {child.pid}) has said nothing for "
                f"{self._clock() - child.heard_at:.0f} s and was killed; if it stays, it hangs "
                "in the driver: see the kernel's log for Xids",
            )
        status = child.status()
        if status is not None and status > 0:
            raise RuntimeError(f"the NVML reader ended with status {status}, see its output above")
        raise _gone(status)


def _released() -> NoData:
    return NoData(
        Absence.RELEASED,
        "NVML was released on request, so that the driver can be replaced; the same request "
        "takes it back",
    )


def _hanging(left: list[Child]) -> NoData:
    pids = " and ".join(str(child.pid) for child in left)
    return NoData(
        Absence.STUCK,
        f"NVML readers (pid {pids}) hang in the driver and do not die; no more are started; see "
        "the kernel's log for Xids, the node may need a reboot",
    )


def _gone(status: int | None) -> NoData:
    how = f"was ended by signal {-status}" if status else "has ended"
    return NoData(Absence.CLOSED, f"the NVML reader {how}; it is started again")
