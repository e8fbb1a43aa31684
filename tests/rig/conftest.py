"""Real parts for the tests of the rig, on ports of their own."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from rig.gateway import Absent
from rig.haproxy import binary
from rig.ports import free_ports
from rig.stack import Plan

POLL = 0.02


def wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return once `condition` holds; fail the test after `seconds`."""
    pause, deadline = Event(), monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, "the condition did not come true in time"
        pause.wait(POLL)


@pytest.fixture
def until() -> Callable[..., None]:
    """Wait for a condition, with a deadline."""
    return wait


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A stack without load on free ports, so that a rig that is already up does not matter."""
    gateway, admin, engine = free_ports([0, 0, 0])
    return Plan(
        folder=tmp_path, gateway_port=gateway, admin_port=admin, engine_port=engine, load=False
    )


@pytest.fixture
def haproxy() -> None:
    """Skip, with the reason, where HAProxy is not installed."""
    try:
        binary()
    except Absent as absent:
        pytest.skip(str(absent))
