"""The GPU check itself, and the check on a real device where there is one."""

import shutil
import subprocess
import sys

import pytest

from sidecar.signals import Sample
from tests.gpu import check
from tests.gpu.check import Row


def test_a_figure_that_one_side_lacks_disagrees() -> None:
    """Absent on both sides is agreement; on one side it is not, nor is a value out of tolerance."""
    assert Row("x", None, None, 1).agrees
    assert Row("x", 10.0, 10.5, 1).agrees
    assert not Row("x", None, 10.0, 1).agrees
    assert not Row("x", 10.0, None, 1).agrees
    assert not Row("x", 10.0, 12.0, 1).agrees


def test_a_sample_is_picked_by_card_and_label() -> None:
    """The second card's memory clock is not the first one's, nor its SM clock."""
    name = check.metrics.TABLE["clock"][0].name
    samples = [
        Sample(name, value, (("gpu", gpu), ("uuid", "u"), ("clock", clock)))
        for gpu, clock, value in (("0", "sm", 1.0), ("1", "sm", 2.0), ("1", "memory", 3.0))
    ]
    assert check.pick(samples, "clock", "1", clock="memory") == 3.0
    assert check.pick(samples, "clock", "2", clock="sm") is None


@pytest.mark.gpu
@pytest.mark.timeout(240)
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no NVIDIA GPU here")
def test_a_real_device_agrees() -> None:
    """Field by field with nvidia-smi, per-process memory, GPM."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.gpu.check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
