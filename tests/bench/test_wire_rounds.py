"""The bench's rounds on a real server, with a load so small that only its counts mean something."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from bench.wire_pairs import STALL_SECONDS
from sidecar.probed.wire import WireProbe
from sidecar.signals import NoData

pytestmark = [
    pytest.mark.ebpf,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]
REQUESTS = {"usual": 7 * 3, "stalled": 7}


@pytest.fixture(scope="module", params=["bare", "framework"])
def told(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the bench found on either server; skips where no tap can be loaded."""
    try:
        WireProbe("prebuilt").close()
    except NoData as failure:
        pytest.skip(failure.reason)
    command = [sys.executable, "-m", "tests.bench.small_wire", request.param]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("load", ["usual", "stalled"])
def test_every_event_is_accounted_for(told: dict[str, Any], load: str) -> None:
    """The tap counted each event that was sent once, and told of each request once."""
    found = told[load]
    assert (found["requests"], found["lost"], found["strange"]) == (REQUESTS[load], 0, 0)


def test_nothing_was_dropped(told: dict[str, Any]) -> None:
    """The tap's own counts of what it missed are there, and zero."""
    assert set(told["drops"].values()) == {0}


def test_a_pair_has_ratios(told: dict[str, Any]) -> None:
    """One pair was played, and each of its ratios is of two measurements."""
    assert told["n"] == 1
    assert all(ratio > 0 for ratio in told["ratios"])


def test_waiting_is_inside_ttft(told: dict[str, Any]) -> None:
    """Each request that waited before a stopped server has its waiting in the TTFT it is told."""
    assert told["stalled"]["ttft_least_seconds"] >= STALL_SECONDS
