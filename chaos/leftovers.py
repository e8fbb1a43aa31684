"""What a fault, or a bad recovery from it, leaves on the target's devices."""

from __future__ import annotations

from dataclasses import dataclass

from chaos import nvml
from chaos.target import Refused, Target

NOTABLE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Who had memory on which devices before; ``unlooked`` is why that is not known."""

    devices: tuple[str, ...]
    strangers: frozenset[int]
    unlooked: str = ""

    @classmethod
    def before(cls, target: Target) -> Leftovers:
        """Looks at the devices of the target."""
        try:
            own = {process.pid for process in target.members()}
            found = nvml.devices(sorted(own))
            if not found:
                return cls((), frozenset(), "NVML shows no device on which the target has memory")
            return cls(tuple(found), frozenset(nvml.holders(found)) - own)
        except (Refused, nvml.Unavailable) as error:
            return cls((), frozenset(), str(error))

    def after(self, target: Target) -> str:
        """A sentence on processes that are not the target's and hold memory now; empty if none."""
        if not self.devices:
            return ""
        try:
            own = {process.pid for process in target.members()}
        except Refused:  # it is down: what remains then is not yet left behind for good
            return ""
        try:
            now = nvml.holders(self.devices)
        except nvml.Unavailable:
            return ""
        new = {pid: used for pid, used in now.items() if pid not in own | self.strangers}
        notable = [f"pid {pid} {used >> 20} MiB" for pid, used in new.items() if used > NOTABLE]
        return f"holds device memory since: {', '.join(notable)}" if notable else ""
