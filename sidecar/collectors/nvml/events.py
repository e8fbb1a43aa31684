"""Xid events of all devices, and whether their number is still the same; one thread's work.

The event set is asked now and then without waiting: the driver keeps events until they are
taken, and a thread that sleeps in the library could not be ended.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from types import ModuleType

from sidecar.collectors.nvml import codes
from sidecar.collectors.nvml.device import Device
from sidecar.collectors.nvml.protocol import XidNews

_XID = 8  # nvmlEventTypeXidCriticalError
_NO_INSTANCE = 0xFFFFFFFF
_MOST_AT_ONCE = 256
_REFUSED_SECONDS = 60.0


class Events:
    """``step`` fills ``news``; ``count`` is the number of devices as last seen."""

    def __init__(
        self,
        nvml: ModuleType,
        devices: Sequence[Device],
        address: Callable[[object], int],
        rest_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._nvml = nvml
        self._devices = devices
        self._address = address
        self._clock = clock
        self._wall = wall
        self._set: object | None = None
        self._registered: dict[int, int] = {}  # address of the handle: index
        self._refused: dict[int, float] = {}  # index: when to try again
        self._again_at = 0.0
        self._rest = rest_seconds  # between two counts, and after a failure
        self._count_at = clock() + rest_seconds
        self.news: deque[XidNews] = deque(maxlen=4096)
        self.count = len(devices)
        self.blind: int | None = None

    def step(self) -> None:
        """Takes what there is. A set that fails is made anew, without the devices that are lost."""
        now = self._clock()
        if now >= self._count_at:
            self._count_at = now + self._rest
            try:
                self.count = self._nvml.nvmlDeviceGetCount()
            except self._nvml.NVMLError as error:
                self._failed(error.value)
        if now < self._again_at:
            return
        try:
            self._take(now)
        except self._nvml.NVMLError as error:
            self._failed(error.value)
            self._drop()
            self._again_at = now + self._rest

    def _failed(self, code: int) -> None:
        self.blind = code if code in codes.GLOBAL else self.blind

    def _take(self, now: float) -> None:
        if self._set is None:
            self._set = self._nvml.nvmlEventSetCreate()
        if len(self._registered) < len(self._devices):
            for device in self._devices:
                self._register(device, now)
        for _ in range(_MOST_AT_ONCE if self._registered else 0):
            try:
                data = self._nvml.nvmlEventSetWait_v2(self._set, 0)
            except self._nvml.NVMLError as error:
                if error.value == codes.TIMEOUT:
                    return
                raise
            self._note(data)

    def _register(self, device: Device, now: float) -> None:
        known = device.index in self._registered.values()
        if known or now < self._refused.get(device.index, 0.0):
            return
        if device.handle is None or device.state in ("lost", "not_answering"):
            return
        try:
            self._nvml.nvmlDeviceRegisterEvents(device.handle, _XID, self._set)
        except self._nvml.NVMLError as error:
            self._failed(error.value)
            self._refused[device.index] = now + _REFUSED_SECONDS
            return
        self._registered[self._address(device.handle)] = device.index

    def _note(self, data: object) -> None:
        code, kind = int(getattr(data, "eventData", 0)), int(getattr(data, "eventType", 0))
        index = self._registered.get(self._address(getattr(data, "device", None)))
        # Other kinds of event, and those with data 0, say nothing of an Xid.
        if kind == _XID and code and index is not None:
            instance = int(getattr(data, "gpuInstanceId", _NO_INSTANCE))
            inside = None if instance == _NO_INSTANCE else instance
            self.news.append(XidNews(self._wall(), index, code, inside))

    def _drop(self) -> None:
        old, self._set = self._set, None
        self._registered.clear()
        if old is None:
            return
        try:
            self._nvml.nvmlEventSetFree(old)
        except self._nvml.NVMLError as error:
            self._failed(error.value)
