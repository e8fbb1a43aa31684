"""A cgroup has its former limits of device memory again."""

from __future__ import annotations

from chaos.undo import heal
from chaos.undo.limits import Limits
from chaos.undo.undo import World
from chaos.vocabulary import Ending, Healing

UNDO = Limits("GPU-1", "/cgroup", 0, 80)


class _Device:
    def __init__(self, soft: int, hard: int, obeys: bool = True) -> None:
        self.now, self.obeys = (soft, hard), obeys

    def limits(self, device: str, cgroup: str) -> tuple[int, int]:
        assert (device, cgroup) == ("GPU-1", "/cgroup")
        return self.now

    def set_limits(self, device: str, cgroup: str, soft: int, hard: int) -> None:
        assert (device, cgroup) == ("GPU-1", "/cgroup")
        if self.obeys:
            self.now = soft, hard


def _healed(device: _Device) -> Healing:
    return heal(UNDO, World(limits=device.limits, set_limits=device.set_limits))


def test_restored() -> None:
    """The former figures are there again; a second time nothing is to be done."""
    device = _Device(0, 7)
    assert _healed(device).ending is Ending.HEALED
    assert device.now == (0, 80)
    assert _healed(device).ending is Ending.MOOT


def test_not_restored() -> None:
    """A device that takes no notice is a failure, with both figures."""
    healing = _healed(_Device(0, 7, obeys=False))
    assert healing.ending is Ending.FAILED
    assert "(0, 7), not (0, 80)" in healing.text


def test_no_nvml() -> None:
    """Where NVML cannot be asked it is told so, and never that it is well."""

    def unavailable(device: str, cgroup: str) -> tuple[int, int]:
        raise RuntimeError("NVML: Driver Not Loaded")

    healing = heal(UNDO, World(limits=unavailable))
    assert healing.ending is Ending.FAILED
    assert "Driver Not Loaded" in healing.text


def test_cgroup_gone() -> None:
    """Limits go with their cgroup."""

    def gone(device: str, cgroup: str) -> tuple[int, int]:
        raise FileNotFoundError(2, "No such file or directory")

    assert heal(UNDO, World(limits=gone)).ending is Ending.MOOT
