"""Giving a cgroup its former limits of device memory back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

from chaos.fields import Fields, Json
from chaos.undo.undo import World, failed, healed, moot
from chaos.vocabulary import Healing

_OWNER = "chaos.nvml"


@dataclass(frozen=True, slots=True)
class Limits:
    """``soft_bytes`` and ``hard_bytes`` are what the device had for the cgroup before, as
    nvmlDeviceGetMemoryLimits_v1 tells: 0 and the highest number mean none.
    """

    device: str
    cgroup: str
    soft_bytes: int
    hard_bytes: int
    kind: ClassVar[str] = "limits"

    @classmethod
    def from_fields(cls, fields: Fields) -> Limits:
        """From its JSON."""
        return cls(
            fields.text("device"),
            fields.text("cgroup"),
            fields.integer("soft_bytes"),
            fields.integer("hard_bytes"),
        )

    def fields(self) -> dict[str, Json]:
        """As JSON."""
        return {
            "device": self.device,
            "cgroup": self.cgroup,
            "soft_bytes": self.soft_bytes,
            "hard_bytes": self.hard_bytes,
        }

    def heal(self, world: World) -> Healing:
        """Over once the device tells the former figures."""
        name = f"memory limits of device {self.device} for {self.cgroup}"
        try:
            read: Callable[[str, str], tuple[int, int]] = world.limits or _owned("memory_limits")
            write = world.set_limits or _owned("set_memory_limits")
            former = (self.soft_bytes, self.hard_bytes)
            if read(self.device, self.cgroup) == former:
                return moot(f"{name} are as they were")
            write(self.device, self.cgroup, *former)
            now = read(self.device, self.cgroup)
        except FileNotFoundError:
            return moot(f"{name} went with the cgroup")
        except (ImportError, AttributeError, RuntimeError) as error:
            return failed(f"{name} cannot be restored here: {error}")
        if now != former:
            return failed(f"{name} are {now}, not {former} again")
        return healed(f"{name} are {former} again")


def _owned(name: str) -> Callable[..., tuple[int, int]]:
    found: Callable[..., tuple[int, int]] = getattr(import_module(_OWNER), name)
    return found
