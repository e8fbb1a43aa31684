"""The driver's own limit on a cgroup's device memory, lowered to what is in use."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from chaos import nvml
from chaos.processes import Process
from chaos.target import PROC, Refused, Target
from chaos.undo import Undo
from chaos.undo.limits import Limits
from chaos.vocabulary import Effect, Proof


def unlimited(target: Target) -> list[str]:
    """What keeps the limit from the target, a sentence each."""
    try:
        leader = target.leader()
        for device in nvml.devices([leader.pid]):
            nvml.memory_limits(device, cgroup(leader))
            return []
    except (Refused, nvml.Unavailable) as error:
        return [f"{error}: memory limits need a driver of CUDA 13.4 or later and root"]
    return [f"target {target.name}: NVML shows no device on which it has memory"]


def cgroup(process: Process) -> str:
    """Its cgroup of version 2, as the kernel names it; raises ``Refused`` without one."""
    for line in (PROC / str(process.pid) / "cgroup").read_text().splitlines():
        number, _, path = line.split(":", 2)
        if number == "0":
            return path
    raise Refused(f"pid {process.pid} is in no cgroup of version 2, which limits are set on")


class Limited:
    """Implements ``Injection``. Going astray, it sets the limit that is there."""

    def __init__(self, device: str, leader: Process, astray: bool) -> None:
        self._device, self._cgroup = device, cgroup(leader)
        soft, hard = nvml.memory_limits(device, self._cgroup)
        self._new = hard if astray else nvml.memory_used(device, self._cgroup)
        self.undo: Undo = Limits(device, self._cgroup, soft, hard)
        self._asking = ThreadPoolExecutor(1, "limits")
        self._asked: Future[Effect] | None = None
        self._said = Effect(Proof.ABSENT, "not looked at yet")
        self._over = False

    def inject(self) -> None:
        """Sets it."""
        nvml.set_memory_limits(self._device, self._cgroup, self._new, self._new)

    def keep(self) -> None:
        """Nothing runs out."""

    def release(self) -> None:
        """The undo does it."""
        self._over, self._asked = True, None
        self._asking.shutdown(wait=False)

    def effect(self) -> Effect:
        """Seen when the driver says that the cgroup is at its limit; what it said last, since NVML
        takes longer to answer than others may wait. Raises what the asking raised.
        """
        if self._asked is not None and self._asked.done():
            self._said, self._asked = self._asked.result(), None
        if self._asked is None and not self._over:
            self._asked = self._asking.submit(self._look)
        return self._said

    def _look(self) -> Effect:
        _, hard = nvml.memory_limits(self._device, self._cgroup)
        used = nvml.memory_used(self._device, self._cgroup)
        evidence = (("hard_bytes", float(hard)), ("used_bytes", float(used)))
        full = hard == self._new and used + (1 << 20) >= hard
        text = f"the cgroup uses {used >> 20} of {hard >> 20} MiB"
        return Effect(Proof.SEEN if full else Proof.ABSENT, text, evidence)
