"""KV blocks on one rank: device allocations of their own, or places in a pool taken at start.

On demand each request's memory shows in NVML; in a pool, as vLLM has it, NVML shows the pool only.
"""

from rig.gpu.device import Device


class Blocks:
    """What each request holds; `pool` bytes are allocated at once, 0 for on demand."""

    def __init__(self, device: Device, pool: int) -> None:
        self._device = device
        self._held: dict[int, list[int]] = {}
        self.pool, self.used = pool, 0
        self._counts: dict[int, int] = {}
        if pool:
            device.allocate(pool)

    def allocate(self, request: int, count: int) -> None:
        """More bytes for a request; raises OutOfMemory on demand. A pool is counted, not asked:
        whoever admits requests has to see to it that they fit.
        """
        if not self.pool:
            self._held.setdefault(request, []).append(self._device.allocate(count))
        self._counts[request] = self._counts.get(request, 0) + count
        self.used += count

    def free(self, request: int) -> None:
        """Give back all that a request holds; nothing when it holds nothing."""
        for at in self._held.pop(request, ()):
            self._device.free(at)
        self.used -= self._counts.pop(request, 0)
