"""Many threads at once lose no count."""

from __future__ import annotations

import os

import pytest

from chaos.interposer.rules import Delay, Error, Rule

from .conftest import Stage

NAME = "cuEventQuery"


@pytest.mark.parametrize("way", ["handle", "pointer"])
def test_sixteen_threads_armed_and_disarmed_lose_no_count(stage: Stage, way: str) -> None:
    """Thirteen times armed: each refusal that a thread saw is a hit, and each hit was seen."""
    hammered(stage, way, 13)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_thousand_times(stage: Stage) -> None:
    """As above."""
    hammered(stage, "handle", 1000)


def hammered(stage: Stage, way: str, cycles: int) -> None:
    target, page = stage.target(), stage.page()
    os.setpriority(os.PRIO_PROCESS, target.pid, 19)  # or our turn comes once in sixteen
    target.send("threads", way, NAME, 16)
    hits, rules = 0, [Rule((NAME,), Error(2)), Rule(("cuMemAlloc_v2",), Error(2))]
    for cycle in range(cycles):
        page.arm(rules[: 1 + cycle % 2], 30)
        while cycle % 3 == 0 and not page.counts().hits:
            page.renew()
        page.disarm()
        assert page.settle(5)
        hits += page.counts().hits
    target.send("stop")
    seen = target.codes()
    assert seen[1] == hits == page.counts().processes[0].hits
    assert hits >= cycles / 3
    assert seen[0] > 0
    target.close()


def test_threads_share_the_limit_of_a_rule(stage: Stage) -> None:
    """Exactly so many are hit, however many come at once."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Error(2), times=104729)], 60)
    target.send("threads", "handle", NAME, 16)
    while page.counts().hits < 104729:
        page.renew()
    target.send("stop")
    assert target.codes()[1] == page.counts().hits == 104729


def test_sixteen_sleepers_wake_together(stage: Stage) -> None:
    """None is left in its delay."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Delay(3600))], 60)
    target.send("threads", "handle", NAME, 16)
    while page.counts().hits < 16:
        page.renew()
    page.disarm()
    target.send("stop")
    assert target.codes()[1] == 0
