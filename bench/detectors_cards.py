"""A GPU in simulated time whose calls hang or fail: the collector's own reading of it and its own
inventory, on a driver that is made up. A part of ``./run bench detectors``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import cast

from sidecar.collectors.nvml.codes import GPU_IS_LOST, NOT_SUPPORTED
from sidecar.collectors.nvml.device import Device
from sidecar.collectors.nvml.inventory import Inventory
from sidecar.collectors.nvml.protocol import CardNews, Identity, Options, XidNews
from sidecar.signals import CollectorState, CollectorStatus
from sidecar.snapshot import Snapshot

Span = tuple[float, float]
IDENTITY: Identity = ("GPU-0", "00000000:00:00.0", "H100", "96.00")
_NVML = CollectorStatus("nvml", CollectorState.FIRING)


class _NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class Driver:
    """A small pynvml with three calls that answer. What is called within ``hangs`` comes back at
    their end, and from ``lost`` on every call says that the card is lost. ``second`` is called for
    each second that passes meanwhile, as the collector's main thread goes on speaking.
    """

    NVMLError = _NvmlError

    def __init__(self, second: Callable[[float], None], hangs: Sequence[Span], lost: float) -> None:
        self.now = 0.0
        self._second, self._hangs, self._lost = second, hangs, lost
        self._answers: dict[str, object] = {
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlDeviceGetUUID": IDENTITY[0],
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=50, memory=20),
        }

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*_: object) -> object:
            self.sleep(max((b for a, b in self._hangs if a <= self.now < b), default=self.now))
            if self.now >= self._lost:
                raise _NvmlError(GPU_IS_LOST)
            if name not in self._answers:
                raise _NvmlError(NOT_SUPPORTED)
            return self._answers[name]

        return call

    def sleep(self, until: float) -> None:
        """Time passes; each whole second is spoken of."""
        while self.now < until:
            following = float(int(self.now) + 1)
            self.now = min(until, following)
            if self.now == following:
                self._second(self.now)


class Card:
    """One device behind such a driver; ``watch`` gets a snapshot for each second of ``run``."""

    def __init__(
        self, watch: Callable[[Snapshot, float], None], hangs: Sequence[Span], lost: float
    ) -> None:
        self._watch = watch
        self._driver = Driver(self._speak, hangs, lost)
        nvml = cast("ModuleType", self._driver)  # three calls of it
        self._device = Device(nvml, 0, Options(), self._clock, self._clock)
        self._inventory = Inventory(1)
        self._inventory.begin("570.86.15", 1)
        self._identity: Identity | None = IDENTITY

    def _clock(self) -> float:
        return self._driver.now

    def run(self, since: float, until: float) -> None:
        """Reads it from one moment to another; what lies before is passed over."""
        self._driver.now = max(self._driver.now, since)
        while self._driver.now < until:
            rest = self._device.step()
            self._driver.sleep(self._driver.now + rest)

    def xid(self, code: int, at: float) -> None:
        """The driver's event set tells of one."""
        self._inventory.add_xid(XidNews(at, 0, code, None))

    def _speak(self, now: float) -> None:
        """What the child's main thread says of it: a call that is late is a state already."""
        device = self._device
        late = device.stuck_since(now) is not None
        state = "not_answering" if late else device.state
        news = CardNews(0, device.good_at, state, device.since, self._identity)
        self._inventory.take(news)
        self._watch(snapshot(self._inventory, now), now)


def snapshot(inventory: Inventory, now: float) -> Snapshot:
    """What is known of these cards, and nothing else."""
    return Snapshot(now, 0.0, 0, (_NVML,), tuple(inventory.samples(now, now)))


def rack(number: int) -> Iterator[CardNews]:
    """So many cards that are well, each of which says who it is."""
    for index in range(number):
        identity = (f"GPU-{index}", f"00000000:{index:02X}:00.0", "H100", "96.00")
        yield CardNews(index, 1.0, "ok", 1.0, identity)
