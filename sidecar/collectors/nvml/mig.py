"""MIG: the instances that a device is cut into, listed anew whenever a handle turned stale."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from sidecar.collectors.nvml.reading import Reader, Values


@dataclass(frozen=True, slots=True)
class Instance:
    """One MIG device: a compute instance of a GPU instance. Memory belongs to the latter."""

    handle: object
    gpu_instance: int
    compute_instance: int
    uuid: str
    name: str


class Mig:
    """``instances`` is None where MIG is off or unknown to the device."""

    def __init__(self, nvml: ModuleType, reader: Reader) -> None:
        self._nvml = nvml
        self._reader = reader
        self.instances: list[Instance] | None = None

    def read(self, handle: object) -> Values:
        """Reads mode and layout; both can change while we run."""
        mode = self._reader.ask("mig", self._nvml.nvmlDeviceGetMigMode, handle)
        if mode is None:
            self.instances = None
            return {}
        values: Values = {}
        enabled = self._reader.put(values, "mig_mode", "mig", mode[0], 1.0)
        self.instances = self._list(handle) if enabled else None
        for instance in self.instances or ():
            label = f"{instance.gpu_instance}|{instance.compute_instance}"
            values[f"mig.info|{label}|{instance.uuid}|{instance.name}"] = 1.0
        return values

    def first_of_each(self) -> dict[int, Instance]:
        """One MIG device for each GPU instance, so that shared memory counts once."""
        found: dict[int, Instance] = {}
        for instance in self.instances or ():
            found.setdefault(instance.gpu_instance, instance)
        return found

    def _list(self, handle: object) -> list[Instance]:
        most = self._reader.try_once(self._nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
        found = []
        for index in range(min(int(most), 16)):
            one = self._reader.try_once(
                self._nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index
            )
            instance = self._look(one) if one is not None else None
            if instance is not None:
                found.append(instance)
        return found

    def _look(self, handle: object) -> Instance | None:
        once, nvml = self._reader.try_once, self._nvml
        gpu = once(nvml.nvmlDeviceGetGpuInstanceId, handle)
        compute = once(nvml.nvmlDeviceGetComputeInstanceId, handle)
        uuid = once(nvml.nvmlDeviceGetUUID, handle)
        if gpu is None or compute is None or uuid is None:
            return None  # gone between two calls
        name = str(once(nvml.nvmlDeviceGetName, handle) or "").rpartition("MIG ")[2]
        return Instance(handle, int(gpu), int(compute), str(uuid), name.replace("|", " "))
