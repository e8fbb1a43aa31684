"""A rank that does not come, on the stand-in libraries; the hook is shown on the rig's engine."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from chaos.faults.nccl_timeout import FAULT, chosen, ranks
from chaos.processes import Process
from chaos.target import Refused
from chaos.undo import heal
from chaos.vocabulary import Ending, Proof
from tests.chaos.faults.engines import Engine, engine, needs_driver

pytestmark = needs_driver
METHODS = {method.name: method for method in FAULT.methods}


def stopped(process: Process) -> bool:
    """Whether it comes to be, soon."""
    deadline = time.monotonic() + 5
    while process.state() != "T" and time.monotonic() < deadline:
        time.sleep(0.01)
    return process.state() == "T"


def rank_of(one: Engine) -> Process:
    """Its other rank."""
    return ranks(one.target)[1]


def test_the_rank_that_is_chosen_is_not_the_one_that_answers(tmp_path: Path) -> None:
    """What shall be seen is the waiting of the others."""
    with engine(tmp_path, ranks=3) as one:
        found = {chosen(one.target, random.Random(seed)).pid for seed in range(20)}
        assert len(found) == 2
        assert one.process.pid not in found


def test_one_process_alone_waits_for_nobody(tmp_path: Path) -> None:
    """It is said before anything is tried."""
    with engine(tmp_path) as one:
        for method in METHODS.values():
            assert any("needs two" in lack for lack in method.preflight(one.target))


def test_stop_stops_a_rank_until_it_is_undone(tmp_path: Path) -> None:
    """The kernel says both."""
    with engine(tmp_path, ranks=2) as one:
        rank = rank_of(one)
        injection = METHODS["stop"].prepare(one.target, random.Random(1), False)
        assert injection.effect().proof is Proof.ABSENT
        injection.inject()
        assert stopped(rank)
        assert injection.effect().proof is Proof.SEEN
        injection.release()
        assert heal(injection.undo).ending is Ending.HEALED
        assert rank.state() != "T"


def test_stop_astray_stops_nobody_of_the_target(tmp_path: Path) -> None:
    """Though somebody is stopped; and that one is ended."""
    with engine(tmp_path, ranks=2) as one:
        injection = METHODS["stop"].prepare(one.target, random.Random(1), True)
        injection.inject()
        assert injection.effect().proof is Proof.ABSENT
        injection.release()
        assert heal(injection.undo).ending is not Ending.FAILED


def test_a_rank_that_somebody_else_stopped_is_left_to_him(tmp_path: Path) -> None:
    """Undoing would wake what we did not stop."""
    with engine(tmp_path, ranks=2) as one:
        rank = rank_of(one)
        os.kill(rank.pid, signal.SIGSTOP)
        assert stopped(rank)
        with pytest.raises(Refused, match="stopped already"):
            METHODS["stop"].prepare(one.target, random.Random(1), False)
        os.kill(rank.pid, signal.SIGCONT)
