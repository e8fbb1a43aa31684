"""The child's threads: one a device, one for events, and the main one, which speaks.

The main thread never calls NVML between start and end, so that it goes on speaking whatever a
call does. It ends with its standard input: nobody is left to listen.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from types import ModuleType

from sidecar.collectors.nvml import codes
from sidecar.collectors.nvml.device import Device
from sidecar.collectors.nvml.events import Events
from sidecar.collectors.nvml.protocol import CardNews, Message, Options, XidNews, encode

_MOST_TICK_SECONDS = 2.0  # a heartbeat comes at least so often
_LAST_CALLS_SECONDS = 0.3
_STAGGER = 0.4  # of an interval: devices begin one after another, then the main thread speaks


class Watch:
    """Runs until standard input ends or NVML does; ``run`` returns the exit status."""

    def __init__(
        self,
        nvml: ModuleType,
        options: Options,
        address: Callable[[object], int],
        stand_in: Callable[[], bool],
    ) -> None:
        self._nvml = nvml
        self._options = options
        self._address = address
        self._stand_in = stand_in
        self._running = threading.Lock()  # held until the end
        self._running.acquire()
        self._devices: list[Device] = []
        self._threads: list[threading.Thread] = []
        self._events: Events | None = None
        self._unsent = b""
        self._told: dict[int, _Told] = {}

    def run(self) -> int:
        """Starts NVML, says hello, then speaks each interval."""
        try:
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
            driver = str(self._nvml.nvmlSystemGetDriverVersion())
        except self._nvml.NVMLError as error:
            return self._last_words(Message(blind=error.value))
        os.set_blocking(1, False)
        self._send(Message(hello=(driver, self._stand_in()), count=count))
        self._start(count)
        tick = min(self._options.fast, _MOST_TICK_SECONDS)
        next_at = time.monotonic() + tick / 2
        poll = select.poll()
        poll.register(0, select.POLLIN)
        while True:
            if poll.poll(max(0.0, next_at - time.monotonic()) * 1000) and not os.read(0, 64):
                return self._end()
            next_at = max(next_at + tick, time.monotonic())
            last = self._verdict()
            if last is not None:
                return self._last_words(last)
            self._speak()

    def _start(self, count: int) -> None:
        self._devices = [Device(self._nvml, index, self._options) for index in range(count)]
        self._events = Events(self._nvml, self._devices, self._address, 5 * self._options.events)
        self._told = {device.index: _Told() for device in self._devices}
        step = _STAGGER * self._options.fast / max(1, count)
        for device in self._devices:
            self._thread(device.step, f"device-{device.index}", device.index * step)
        self._thread(self._events_step, "events", step * count)

    def _events_step(self) -> float:
        if self._events is not None:
            self._events.step()
        return self._options.events

    def _thread(self, step: Callable[[], float], name: str, delay: float) -> None:
        def loop() -> None:
            wait = delay
            # A plain lock with a time-out: an Event would cost more than the calls between.
            while not self._running.acquire(timeout=wait):
                wait = step()
            self._running.release()

        thread = threading.Thread(target=loop, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _verdict(self) -> Message | None:
        """Reasons to end: NVML is gone for all, or the devices are others than they were."""
        events = self._events
        gone = [device.blind for device in self._devices if device.blind is not None]
        if events is not None and events.blind is not None:
            gone.append(events.blind)
        if gone:
            return Message(blind=gone[0], xids=self._xids())
        if self._devices and all(
            device.state == "error" and device.code == codes.UNKNOWN for device in self._devices
        ):
            return Message(blind=codes.UNKNOWN, xids=self._xids())
        if events is not None and events.count != len(self._devices):
            return Message(changed=True, xids=self._xids())
        return None

    def _speak(self) -> None:
        """One line of what changed; while the pipe is full, changes gather."""
        if self._unsent:
            self._flush()
            return
        now = time.monotonic()
        news = tuple(self._told[device.index].news(device, now) for device in self._devices)
        self._send(Message(cards=news, xids=self._xids()))

    def _xids(self) -> tuple[XidNews, ...]:
        news = self._events.news if self._events is not None else deque()
        return tuple(news.popleft() for _ in range(len(news)))

    def _send(self, message: Message) -> None:
        self._unsent += encode(message)
        self._flush()

    def _flush(self) -> None:
        try:
            self._unsent = self._unsent[os.write(1, self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._end()

    def _last_words(self, message: Message) -> int:
        self._send(message)
        return self._end()

    def _end(self) -> int:
        """Gives running calls a moment, then closes NVML; a call that blocks is left behind."""
        self._running.release()
        deadline = time.monotonic() + _LAST_CALLS_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            return 0
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            return 1  # it never started, or is gone
        return 0


class _Told:
    """What was said of one device, so that only changes are said again."""

    def __init__(self) -> None:
        self._state: tuple[str, float] | None = None
        self._identified = False
        self._groups: dict[str, dict[str, float]] = {}

    def news(self, device: Device, now: float) -> CardNews:
        """The difference to the last time."""
        stuck = device.stuck_since(now)
        groups = device.groups if stuck is None else {}
        state = device.state, device.since
        if stuck is not None and state[0] != "not_answering":
            state = "not_answering", time.time() - (now - stuck)
            if self._state is not None and self._state[0] == "not_answering":
                state = self._state
        said, self._state = self._state, state
        identity = None if self._identified else device.identity
        self._identified = self._identified or identity is not None
        changed = state != said or identity is not None
        return CardNews(
            index=device.index,
            good_at=device.good_at,
            state=state[0] if changed else None,
            since=state[1],
            identity=identity,
            values=self._changes({**groups, "account": device.account}),
        )

    def _changes(self, groups: dict[str, dict[str, float]]) -> dict[str, float | None]:
        changes: dict[str, float | None] = {}
        for name in self._groups.keys() | groups.keys():
            old, new = self._groups.get(name, {}), groups.get(name, {})
            if old is not new:
                changes |= dict.fromkeys(old.keys() - new.keys())
                changes |= {key: value for key, value in new.items() if old.get(key) != value}
        self._groups = groups
        return changes
