"""What is read of a device each second: three calls, and the doubt about zeros.

The SM clock and what holds it down come with the middle group: the driver's counters of time spent
held down (violations) miss nothing in between, and each call is a thread that sleeps and wakes.
"""

from __future__ import annotations

from types import ModuleType

from sidecar.collectors.nvml.gpm import METRICS as GPM_METRICS
from sidecar.collectors.nvml.memory import Memory
from sidecar.collectors.nvml.protocol import Identity
from sidecar.collectors.nvml.reading import Reader, Values

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvmlClocksEventReason* in nvml.h).
REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}
_CLOCK_SM = 1  # NVML_CLOCK_SM
MOST_MEGAHERTZ = 20_000.0
_MOVES = 0.05  # a ratio above it is no rounding of nothing


class Fast:
    """The fast group of one device."""

    def __init__(self, nvml: ModuleType, reader: Reader, memory: Memory) -> None:
        self._nvml = nvml
        self._reader = reader
        self._memory = memory
        self._bits = -1
        self._reasons: Values = {}  # of those bits
        self._busy: list[float] = []  # utilisation since the last GPM reading
        self._distrusted = False  # utilisation said 0 while GPM moved

    def forget(self) -> None:
        """Starts anew after trouble."""
        self._busy.clear()

    def read(self, handle: object, identity: Identity) -> Values:
        """Memory, utilisation and power."""
        ask, put, nvml = self._reader.ask, self._reader.put, self._nvml
        values = self._memory.read(handle, identity[2])
        busy = ask("utilization", nvml.nvmlDeviceGetUtilizationRates, handle)
        if busy is not None:
            put(values, "utilization|gpu", "utilization", busy.gpu, 100.0, 0.01)
            put(values, "utilization|memory", "utilization", busy.memory, 100.0, 0.01)
        power = ask("power", nvml.nvmlDeviceGetPowerUsage, handle)
        if power is not None:
            put(values, "power", "power", power, 10e6, 1e-3)
        self._doubt(values)
        return values

    def clock(self, handle: object) -> Values:
        """The SM clock and what holds it down, of the middle group."""
        values: Values = {}
        megahertz = self._reader.ask("clocks", self._nvml.nvmlDeviceGetClockInfo, handle, _CLOCK_SM)
        if megahertz is not None:
            self._reader.put(values, "clock|sm", "clocks", megahertz, MOST_MEGAHERTZ, 1e6)
        self._throttle(values, handle)
        if self._busy and self._busy[-1] > _MOVES:
            _withhold(values, "clock|sm", "clock_sm")
        return values

    def _throttle(self, values: Values, handle: object) -> None:
        ask, nvml = self._reader.ask, self._nvml
        bits = ask("throttle_reasons", nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        if bits is None and self._reader.is_unsupported("throttle_reasons"):  # before R535
            old = nvml.nvmlDeviceGetCurrentClocksThrottleReasons
            bits = ask("throttle_reasons", old, handle, source="throttle_reasons.old")
        if bits is not None and self._reader.checked("throttle_reasons", bits, 2.0**32) is not None:
            if bits != self._bits:
                self._bits = bits
                self._reasons = {
                    f"throttle_active|{reason}": float(bool(bits & bit))
                    for bit, reason in REASONS.items()
                }
            values |= self._reasons

    def _doubt(self, values: Values) -> None:
        """A zero beside a sibling that moves is withheld and named, not believed."""
        busy = values.get("utilization|gpu")
        if busy is None:
            return
        self._busy.append(busy)
        if busy == 0 and self._distrusted:
            values["suspect|utilization"] = 1.0
            del values["utilization|gpu"]
        elif busy > _MOVES:
            _withhold(values, "power", "power")

    def compare(self, ratios: Values) -> None:
        """GPM against utilisation over the same seconds."""
        busy, self._busy = self._busy, []
        active = ratios.get("sm_active")
        if active is None or not busy:
            return
        self._distrusted = active > _MOVES and max(busy) == 0
        if active == 0 and min(busy) > _MOVES:
            for name in GPM_METRICS.values():
                if ratios.get(name) == 0:
                    del ratios[name]
                    ratios[f"suspect|{name}"] = 1.0


def _withhold(values: Values, key: str, name: str) -> None:
    if values.get(key) == 0:
        values[f"suspect|{name}"] = 1.0
        del values[key]
