"""NVML as a whole is gone: named causes with different remedies, and the way back."""

import os

import pytest

from sidecar.collectors.nvml import NvmlCollector
from sidecar.signals import Absence, NoData
from tests.nvml.conftest import Machine, View


def why(collector: NvmlCollector) -> NoData:
    with pytest.raises(NoData) as caught:
        collector.open()
    return caught.value


@pytest.mark.parametrize(
    ("code", "absence", "word"),
    [
        (18, Absence.PROTOCOL, "running engines go on"),
        (9, Absence.NOT_FOUND, "modprobe nvidia"),
        (4, Absence.NO_PERMISSION, "/dev/nvidia"),
        (999, Absence.UNSUPPORTED, "nvidiactl"),
        (20, Absence.UNSUPPORTED, "error 20"),
    ],
)
def test_init_that_fails(machine: Machine, code: int, absence: Absence, word: str) -> None:
    """Each code has its absence and its remedy in one line."""
    machine.set("fail.nvmlInit*", code)
    error = why(machine.collector())
    assert error.absence is absence
    assert word in error.reason


def test_no_library(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """A machine without the driver's library."""
    error = why(NvmlCollector(environment={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}))
    assert error.absence is Absence.NOT_FOUND
    assert "libnvidia-ml.so.1" in error.reason


def test_a_mismatch_that_is_repaired(machine: Machine) -> None:
    """Driver and library differ while we run: blind with the remedy, and back without a restart
    of the sidecar once the module is reloaded.
    """
    view = machine.view()
    machine.set("fail.nvml*", 18)
    error = view.blind()
    assert error.absence is Absence.PROTOCOL
    assert "reload the module" in error.reason
    assert why(view.collector).absence is Absence.PROTOCOL
    machine.configuration.remove("fail.nvml*")
    view.collector.open()
    view.wait(lambda v: v.get("up") == 1)


def test_a_container_that_lost_its_gpus(machine: Machine) -> None:
    """Unknown errors on all cards after it had worked: re-create the pod; no Xid is blamed."""
    machine.set("devices", 2)
    view = machine.view()
    machine.set("fail.nvml*", 999)
    error = view.blind()
    assert error.absence is Absence.CLOSED
    assert "re-create the pod" in error.reason
    again = why(view.collector)
    assert (again.absence, again.reason) == (error.absence, error.reason)
    assert view.events == []


def test_values_are_withdrawn_while_blind_and_counts_go_on(machine: Machine) -> None:
    """A new child knows no old values; what was counted is still counted."""
    view = machine.view()
    machine.set("event.1", "xid 94 device 0")
    view.wait(lambda v: v.get("xid_errors_total", xid="94") == 1)
    machine.set("fail.nvml*", 18)
    view.blind()
    machine.configuration.remove("fail.nvml*")
    view.collector.open()
    assert view.refresh().all("power_watts") == []
    view.wait(lambda v: v.get("up") == 1)
    assert view.get("xid_errors_total", xid="94") == 1


def test_release_on_demand(machine: Machine) -> None:
    """Released, the child is gone and the reason says how to take NVML back; then it reads on."""
    view = machine.view()
    view.collector.release()
    error = view.blind()
    assert error.absence is Absence.RELEASED
    assert "on request" in error.reason
    assert "on request" in why(view.collector).reason
    view.collector.retake()
    view.collector.open()
    view.wait(lambda v: v.get("up") == 1)


def test_collect_before_open() -> None:
    """A collector that was never opened has no data, and closing it is safe."""
    collector = NvmlCollector(environment={})
    collector.close()
    with pytest.raises(NoData):
        View(collector).refresh()
