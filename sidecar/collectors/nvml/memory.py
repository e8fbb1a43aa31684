"""Device memory by NVML's two calls, and whether its figures can be believed.

The old call counts what the driver reserves as used, the new one shows it apart. A device that
shares the host's memory has no total of its own, whatever either call says.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from sidecar.collectors.nvml.reading import Reader, Values

STATES = ("ok", "unified", "inconsistent", "not_supported")
_MOST_BYTES = float(1 << 50)
_INTEGRATED = re.compile(r"\b(GB10|Tegra|Xavier|Orin|Thor|nvgpu|Jetson)\b", re.I)


class Memory:
    """Chooses the call once, for a device and its MIG instances alike."""

    def __init__(self, nvml: ModuleType, reader: Reader, proc: Path) -> None:
        self._nvml = nvml
        self._reader = reader
        self._proc = proc
        self._version = 2
        self._host_total = _meminfo(proc).get("MemTotal", 0.0)
        self.total: float | None = None  # of the whole device, when it is believed

    def read(self, handle: object, name: str) -> Values:
        """What is known of the whole device, with its ``memory_state``."""
        raw = self._ask(handle)
        if raw is None:
            # Asked again rarely once both calls said so; the state holds in between.
            self.total = None
            none = self._reader.is_unsupported("memory.v1")
            return {"memory_state|unified": 1.0} if none else {}
        values = self._values(raw)
        self.total = values.get("memory_total")
        state = self._judge(values, name)
        if state != "ok":
            self.total = None
            return {f"memory_state|{state}": 1.0}
        return values | {f"memory_state|{state}": 1.0, f"memory_api|v{self._version}": 1.0}

    def read_instance(self, handle: object, instance: int) -> Values | None:
        """A MIG instance's figures, None when its handle is stale."""
        raw = self._reader.try_once(self._nvml.nvmlDeviceGetMemoryInfo, handle, *self._argument())
        if raw is None:
            return None
        values = self._values(raw)
        if not self._adds_up(values):
            self._reader.reject("memory")
            return {}
        named = ((key.split("|"), value) for key, value in values.items())
        return {"|".join([f"mig.{k[0]}", str(instance), *k[1:]]): value for k, value in named}

    def _argument(self) -> tuple[object, ...]:
        return (self._nvml.nvmlMemory_v2,) if self._version == 2 else ()

    def _ask(self, handle: object) -> object | None:
        """v2, and v1 for good where v2 fails: a driver does not grow a call while it runs."""
        call = self._nvml.nvmlDeviceGetMemoryInfo
        if self._version == 2:
            raw: object | None = self._reader.ask(
                "memory", call, handle, self._nvml.nvmlMemory_v2, source="memory.v2"
            )
            if raw is not None:
                return raw
        raw = self._reader.ask("memory", call, handle, source="memory.v1")
        if raw is not None:
            self._version = 1
        return raw

    def _values(self, raw: object) -> Values:
        values: Values = {}
        used = f"memory_used|v{self._version}"
        for key, attribute in (("memory_total", "total"), (used, "used"), ("memory_free", "free")):
            self._reader.put(values, key, "memory", getattr(raw, attribute), _MOST_BYTES)
        if self._version == 2:
            self._reader.put(
                values, "memory_reserved", "memory", getattr(raw, "reserved", None), _MOST_BYTES
            )
        return values

    def _adds_up(self, values: Values) -> bool:
        used = values.get(f"memory_used|v{self._version}")
        free, total = values.get("memory_free"), values.get("memory_total")
        if used is None or free is None or total is None:
            return False
        parts = used + free + values.get("memory_reserved", 0.0)
        return abs(parts - total) <= max(4 << 20, total / 4096)  # figures are whole pages or MiB

    def _judge(self, values: Values, name: str) -> str:
        if not values.get("memory_total"):
            return "not_supported"
        if not self._adds_up(values):
            return "inconsistent"
        used = values[f"memory_used|v{self._version}"]
        if _INTEGRATED.search(name) or self._is_the_hosts(values["memory_total"], used):
            return "unified"
        return "ok"

    def _is_the_hosts(self, total: float, used: float) -> bool:
        all_of_it = self._host_total
        if not all_of_it or abs(total - all_of_it) > 0.02 * all_of_it:
            return False
        host = _meminfo(self._proc)
        in_use = [all_of_it - host[key] for key in ("MemFree", "MemAvailable") if key in host]
        return any(abs(used - figure) <= 0.02 * all_of_it for figure in in_use)


def _meminfo(proc: Path) -> Values:
    """Bytes of ``/proc/meminfo`` (proc(5)); empty when it cannot be read."""
    found: Values = {}
    try:
        text = (proc / "meminfo").read_text()
    except OSError:
        return found
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in ("MemTotal", "MemFree", "MemAvailable"):
            found[name] = float(rest.split()[0]) * 1024
    return found
