"""The check of faults itself, on the stand-in driver, and on a real device where there is one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rig import driver
from tests.chaos.faults.engines import ENGINE, injecting, needs_driver
from tests.gpu.faults import CASES, case


@needs_driver
@pytest.mark.parametrize("one", CASES, ids=lambda one: str(one[0]))
def test_every_case_is_as_expected_on_the_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: tuple[str, str, tuple[str, ...]]
) -> None:
    """So that on a real device only the device is new."""
    machine = {"devices": 1, "memory.total": 2 << 30, "trap.modelprobe_trap": 719}
    driver.Configuration(tmp_path).update(machine)
    injecting(tmp_path, monkeypatch)
    row = case(*one, (sys.executable, str(ENGINE), "1"))
    assert row.expected, row


@needs_driver
def test_a_fault_that_does_not_show_is_not_as_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check can fail: here no kernel traps."""
    driver.Configuration(tmp_path).update({"devices": 1})
    injecting(tmp_path, monkeypatch)
    monkeypatch.setattr("tests.gpu.faults.SECONDS", 0.5)
    row = case("cuda_context_loss:trap", "step", ("719",), (sys.executable, str(ENGINE), "1"))
    assert not row.expected


@pytest.mark.gpu
@pytest.mark.timeout(240)
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no NVIDIA GPU here")
def test_the_faults_on_a_real_device() -> None:
    """OOM by hook and balloon, a sticky error by hook and for real, a context that is reset."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.gpu.faults"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
