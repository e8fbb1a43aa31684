"""Allocations that fail, on the stand-in driver."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.fault import Injection
from chaos.faults.gpu_oom import FAULT, Balloon
from chaos.undo import heal
from chaos.vocabulary import Ending, Proof
from rig import driver
from tests.chaos.faults.engines import Engine, engine, injecting, needs_driver

pytestmark = needs_driver
MIB = 1 << 20
METHODS = {method.name: method for method in FAULT.methods}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one small device, which this process has too."""
    driver.Configuration(tmp_path).update({"devices": 1, "memory.total": 256 * MIB})
    injecting(tmp_path, monkeypatch)
    return tmp_path


def until(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def prepared(one: Engine, method: str, astray: bool = False) -> Injection:
    found = METHODS[method]
    assert found.preflight(one.target) == []
    return found.prepare(one.target, random.Random(1), astray)


def kept(injection: Injection) -> bool:
    """Whether its effect is seen in time, while it is kept up."""

    def seen() -> bool:
        injection.keep()
        return injection.effect().proof is Proof.SEEN

    return until(seen)


def test_hook_refuses_every_allocation_and_no_other_call(small: Path) -> None:
    """Counted by the page, and over when released."""
    with engine(small) as one:
        injection = prepared(one, "hook")
        assert one.ask("allocate", str(MIB)) == "0"
        injection.inject()
        assert injection.effect().proof is Proof.ABSENT
        assert one.ask("allocate", str(MIB)) == "2"
        assert one.ask("step") == "0"
        assert injection.effect().proof is Proof.SEEN
        injection.release()
        assert heal(injection.undo).ending is not Ending.FAILED
        assert one.ask("allocate", str(MIB)) == "0"


def test_hook_astray_touches_nobody(small: Path) -> None:
    """A control run has no effect, and says so."""
    with engine(small) as one:
        injection = prepared(one, "hook", astray=True)
        injection.inject()
        assert one.ask("allocate", str(MIB)) == "0"
        assert injection.effect().proof is Proof.ABSENT
        injection.release()


def test_balloon_really_fills_the_device(small: Path) -> None:
    """The target's allocation fails in the driver itself, and works again after."""
    with engine(small) as one:
        before = one.ask("free")
        injection = prepared(one, "balloon")
        injection.inject()
        assert kept(injection)
        assert one.ask("allocate", str(4 * MIB)) == "2"
        injection.release()
        assert heal(injection.undo).ending is not Ending.FAILED
        # The stand-in frees what a process held when its number is free: a moment after its end.
        assert until(lambda: one.ask("free") == before, 1.0)


def test_balloon_takes_what_is_freed_meanwhile(small: Path) -> None:
    """It tops up: an engine that gives memory back finds none either."""
    with engine(small) as one, engine(small) as other:
        assert other.ask("allocate", str(64 * MIB)) == "0"
        injection = prepared(one, "balloon")
        injection.inject()
        assert kept(injection)
        other.process.kill()
        other.process.wait()

        def full() -> bool:
            injection.keep()
            return int(one.ask("free")) < 4 * MIB

        assert until(full)
        injection.release()


def test_balloon_astray_holds_nothing(small: Path) -> None:
    """A control run has no effect, and says so."""
    with engine(small) as one:
        before = one.ask("free")
        injection = prepared(one, "balloon", astray=True)
        injection.inject()
        injection.keep()
        assert injection.effect().proof is Proof.ABSENT
        assert one.ask("free") == before
        injection.release()


INJECTOR = """
import sys, time
from chaos.faults.gpu_oom import Balloon
balloon = Balloon(sys.argv[1])
balloon.inject()
while True:
    balloon.keep()
    print(balloon.effect().proof, flush=True)
    time.sleep(0.02)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_balloon_gives_all_back_when_its_injector_dies_or_hangs(
    small: Path, number: signal.Signals
) -> None:
    """At once, or when its lease is over."""
    with engine(small) as one:
        before = one.ask("free")
        device = "GPU-00000000-0000-4000-8000-000000000000"
        with subprocess.Popen(
            (sys.executable, "-c", INJECTOR, device), stdout=subprocess.PIPE, text=True
        ) as injector:
            assert injector.stdout is not None
            assert any(line.strip() == Proof.SEEN for line in injector.stdout)
            assert int(one.ask("free")) < 4 * MIB
            os.kill(injector.pid, number)
            try:
                assert until(lambda: one.ask("free") == before)
            finally:
                injector.kill()


def test_a_balloon_whose_injector_is_gone_ends_without_a_word(small: Path) -> None:
    """Also when it was about to say what it holds."""
    read, write = os.pipe()
    with subprocess.Popen(
        (sys.executable, "-m", "chaos.balloon"),
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    ) as process:
        os.close(write)
        os.close(read)
        assert process.communicate(b"keep\n", 10)[1] == b""
        assert process.returncode == 0


def test_undo_of_a_balloon_ends_it(small: Path) -> None:
    """Whoever undoes it knows it by its token alone."""
    with engine(small) as one:
        device = "GPU-00000000-0000-4000-8000-000000000000"
        balloon = Balloon(device)
        balloon.inject()
        assert kept(balloon)
        assert heal(balloon.undo).ending is Ending.HEALED
        assert until(lambda: int(one.ask("free")) > 200 * MIB)
        with pytest.raises(OSError, match="ended before"):
            balloon.release()


def test_limit_says_that_this_driver_has_none(small: Path) -> None:
    """Rather than be tried."""
    with engine(small) as one:
        (lack,) = METHODS["limit"].preflight(one.target)
        assert "CUDA 13.4" in lack


def test_a_balloon_that_is_gone_holds_nothing_whatever_it_said_last(small: Path) -> None:
    """And whoever keeps it up is told, rather than go on as if the device were full."""
    with engine(small) as one:
        injection = prepared(one, "balloon")
        injection.inject()
        assert kept(injection)
        assert heal(injection.undo).ending is Ending.HEALED  # as if its lease had run out
        assert injection.effect().proof is Proof.ABSENT
        with pytest.raises(OSError, match="balloon has ended"):
            injection.keep()
