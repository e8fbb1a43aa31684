"""GPM: what the SMs, the tensor cores and the memory did between two samples (Hopper and later).

Ratios over the time since the last reading, of the device or of each MIG GPU instance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import ModuleType

from sidecar.collectors.nvml import codes
from sidecar.collectors.nvml.reading import Reader, Values

# NVML_GPM_METRIC_* of nvml.h; each a percentage.
METRICS = {2: "sm_active", 3: "sm_occupancy", 5: "tensor_active", 10: "dram_active"}
_WHOLE = -1


class Gpm:
    """Keeps one earlier sample of each scope: the device, or a GPU instance id."""

    def __init__(
        self,
        nvml: ModuleType,
        reader: Reader,
        most_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nvml = nvml
        self._reader = reader
        self._most = most_seconds
        self._clock = clock
        self._get: object | None = None
        self._before: dict[int, tuple[object, float]] = {}
        self._spare: list[object] = []

    def read(self, handle: object, instances: Sequence[int] | None) -> Values:
        """The ratios of each scope; empty the first time, and where GPM is not supported."""
        if not self._supported(handle):
            return {}
        scopes = [_WHOLE] if instances is None else list(instances)
        for gone in set(self._before) - set(scopes):
            self._spare.append(self._before.pop(gone)[0])
        values: Values = {}
        for scope in scopes:
            values |= self._scope(handle, scope)
        return values

    def _supported(self, handle: object) -> bool:
        if self._reader.is_unsupported("gpm") and not self._reader.may_ask("gpm"):
            return False
        if self._get is not None:
            return True
        answer = self._reader.ask("gpm", self._nvml.nvmlGpmQueryDeviceSupport, handle)
        if answer is not None and not answer.isSupportedDevice:
            self._reader.note("gpm", codes.NOT_SUPPORTED)
            return False
        if answer is not None:
            self._get = self._nvml.c_nvmlGpmMetricsGet_t()
        return answer is not None

    def _scope(self, handle: object, scope: int) -> Values:
        sample = self._spare.pop() if self._spare else self._alloc()
        if sample is None:
            return {}
        now = self._clock()
        if scope == _WHOLE:
            taken = self._reader.ask(
                "gpm", self._nvml.nvmlGpmSampleGet, handle, sample, source="gpm.sample"
            )
        else:
            taken = self._reader.try_once(self._nvml.nvmlGpmMigSampleGet, handle, scope, sample)
        before = self._before.pop(scope, None)
        if taken is None:
            self._spare += [sample] if before is None else [sample, before[0]]
            return {}
        self._before[scope] = (sample, now)
        if before is None:
            return {}
        self._spare.append(before[0])
        # Over a gap, such as a call that blocked, the mean would be passed off as the present.
        return self._metrics(before[0], sample, scope) if now - before[1] <= self._most else {}

    def _alloc(self) -> object | None:
        return self._reader.try_once(self._nvml.nvmlGpmSampleAlloc)

    def _metrics(self, first: object, second: object, scope: int) -> Values:
        get = self._get
        _fill(get, self._nvml.NVML_GPM_METRICS_GET_VERSION, first, second)
        answer = self._reader.ask("gpm", self._nvml.nvmlGpmMetricsGet, get, source="gpm.get")
        values: Values = {}
        if answer is None:
            return values
        for place, name in enumerate(METRICS.values()):
            metric = answer.metrics[place]
            if metric.nvmlReturn == 0:
                key = name if scope == _WHOLE else f"mig.{name}|{scope}"
                self._reader.put(values, key, "gpm", metric.value, 100.0, 0.01)
        return values


def _fill(get: object, version: int, first: object, second: object) -> None:
    """One struct of nvmlGpmMetricsGet_t is used again and again: it is 19 kB large."""
    fields = {"version": version, "numMetrics": len(METRICS), "sample1": first, "sample2": second}
    for name, value in fields.items():
        setattr(get, name, value)
    metrics = getattr(get, "metrics", ())
    for place, number in enumerate(METRICS):
        metrics[place].metricId = number
