"""A context that is lost, on the stand-in driver."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from chaos.fault import Injection
from chaos.faults.cuda_context_loss import FAULT
from chaos.undo import heal
from chaos.vocabulary import Ending, Healer, Proof
from rig import driver
from tests.chaos.faults.engines import Engine, engine, needs_driver

pytestmark = needs_driver
METHODS = {method.name: method for method in FAULT.methods}
LOST = {"reset": {"201", "709"}, "trap": {"719"}}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """One on which our kernel traps, as it does on a device."""
    driver.Configuration(tmp_path).update({"devices": 1, "trap.modelprobe_trap": 719})
    return tmp_path


def injected(one: Engine, method: str, astray: bool = False) -> Injection:
    found = METHODS[method]
    assert found.preflight(one.target) == []
    injection = found.prepare(one.target, random.Random(1), astray)
    injection.inject()
    return injection


def test_hook_answers_a_sticky_error_while_it_lasts(machine: Path) -> None:
    """One of two codes, the same in every call, and none after: a lease can heal it."""
    with engine(machine) as one:
        injection = injected(one, "hook")
        answers = {one.ask("step") for _ in range(5)}
        assert len(answers) == 1
        assert answers < {"700", "719"}
        assert injection.effect().proof is Proof.SEEN
        injection.release()
        assert heal(injection.undo).ending is not Ending.FAILED
        assert one.ask("step") == "0"


@pytest.mark.parametrize("method", ["reset", "trap"])
def test_the_context_really_is_lost_and_the_process_ended(machine: Path, method: str) -> None:
    """Its calls fail in the driver, also once nothing is armed; only a new process is well."""
    assert METHODS[method].heals_by is Healer.RESTART
    with engine(machine) as one:
        injection = injected(one, method)
        one.ask("step")
        assert one.ask("step") in LOST[method]
        assert injection.effect().proof is Proof.SEEN
        injection.release()
        assert one.ask("step") in LOST[method]
        assert heal(injection.undo).ending is Ending.HEALED
        assert one.process.wait(5) != 0


@pytest.mark.parametrize("method", ["reset", "trap"])
def test_a_process_that_was_not_hit_is_not_ended(machine: Path, method: str) -> None:
    """It made no call in which it could have been."""
    with engine(machine) as one:
        injection = injected(one, method)
        injection.release()
        assert heal(injection.undo).ending is not Ending.FAILED
        assert one.ask("step") == "0"


@pytest.mark.parametrize("method", METHODS)
def test_astray_touches_nobody(machine: Path, method: str) -> None:
    """A control run has no effect, and says so."""
    with engine(machine) as one:
        injection = injected(one, method, astray=True)
        assert one.ask("step") == "0"
        assert injection.effect().proof is Proof.ABSENT
        injection.release()
        assert heal(injection.undo).ending is not Ending.FAILED
        assert one.ask("step") == "0"
