"""What the rules do, to whom, and how often."""

from __future__ import annotations

import pytest

from chaos.interposer.rules import Delay, Error, Reset, Rule, Sticky, Trap, drawn

from .conftest import Stage, eventually

NAME = "cuMemAlloc_v2"


def test_nth_and_times(stage: Stage) -> None:
    """From the 5th call on, three times."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Error(2), nth=5, times=3)], 30)
    assert [next(iter(target.run("handle", NAME))) for _ in range(11)] == [0] * 4 + [2] * 3 + [
        0
    ] * 4


def test_size_over(stage: Stage) -> None:
    """Smaller allocations, and those of just that size, are not even counted."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME, "cuMemCreate"), Error(2), size_over=4096)], 30)
    assert target.run("handle", NAME, 7, 4096) == {0: 7}
    assert target.run("handle", NAME, 7, 4097) == {2: 7}
    assert page.counts().rules[0].calls == 7


def test_the_pitch_is_no_size_but_width_times_height_is(stage: Stage) -> None:
    """The caller of it hears of rows."""
    target, page = stage.target(), stage.page()
    page.arm([Rule(("cuMemAllocPitch_v2",), Error(2), size_over=4096)], 30)
    assert target.run("handle", "cuMemAllocPitch_v2", 3, 4096) == {0: 3}
    assert target.run("handle", "cuMemAllocPitch_v2", 3, 4097) == {2: 3}


def test_probability_by_seed(stage: Stage) -> None:
    """The very calls that the seed chooses, and no others."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Error(2), probability=0.3, seed=41)], 30)
    got = [next(iter(target.run("handle", NAME))) for _ in range(101)]
    wanted = [2 if drawn(41, 0, call) < round(0.3 * 2**32) else 0 for call in range(1, 102)]
    assert got == wanted
    assert 15 < wanted.count(2) < 45


def test_ranks(stage: Stage) -> None:
    """A process's rank is that of its communicator; the other rank is not counted."""
    ranks = [stage.target(RANK=str(rank)) for rank in (0, 1)]
    page = stage.page()
    page.arm([Rule((NAME,), Error(2), rank=1)], 30)
    assert [rank.run("handle", NAME, 7) for rank in ranks] == [{0: 7}, {2: 7}]
    assert page.counts().rules[0].calls == 7
    assert {(one.pid, one.rank) for one in page.counts().processes} == {
        (rank.pid, number) for number, rank in enumerate(ranks)
    }


def test_the_rank_is_learnt_from_nccl_also_while_disarmed(stage: Stage) -> None:
    """The first communicator counts, and a process without one has no rank."""
    target, other = stage.target(TEST_RANK="0"), stage.target()
    page = stage.page()
    assert other.run("handle", NAME) == {0: 1}
    learnt = {one.pid: one.rank for one in page.counts().processes}
    assert learnt == {target.pid: 0, other.pid: None}
    page.arm([Rule((NAME,), Error(2), rank=0)], 30)
    assert target.run("handle", NAME, 5) == {2: 5}
    assert other.run("handle", NAME, 5) == {0: 5}


def test_pids(stage: Stage) -> None:
    """One process of the target alone."""
    one, other = stage.target(), stage.target()
    page = stage.page()
    page.arm([Rule((NAME,), Error(2), pid=other.pid)], 30)
    assert one.run("handle", NAME, 7) == {0: 7}
    assert other.run("handle", NAME, 5) == {2: 5}
    assert page.counts().rules[0].calls == 5


def test_the_first_rule_that_hits_decides(stage: Stage) -> None:
    """Those after it see only what it lets through."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Error(2), times=3), Rule((NAME,), Error(7), times=5)], 30)
    assert target.run("handle", NAME, 11) == {2: 3, 7: 5, 0: 3}
    assert [count.calls for count in page.counts().rules] == [11, 8]


def test_sticky_holds_the_process_and_ends_with_the_rule(stage: Stage) -> None:
    """All CUDA calls of the one that was hit; cuCtxGetCurrent, NCCL and other processes go on."""
    target, other = stage.target(TEST_RANK="0"), stage.target()
    page = stage.page()
    page.arm([Rule((NAME,), Sticky(700), nth=2, times=1)], 30)
    assert target.run("handle", "cuStreamSynchronize", 3) == {0: 3}
    assert target.run("handle", NAME, 3) == {0: 1, 700: 2}
    assert target.run("pointer", "cuStreamSynchronize", 3) == {700: 3}
    assert target.run("handle", "cuCtxGetCurrent", 3) == {0: 3}
    assert target.run("handle", "ncclAllReduce", 3) == {0: 3}
    assert other.run("handle", "cuStreamSynchronize", 3) == {0: 3}
    assert {one.pid: one.sticky for one in page.counts().processes} == {
        target.pid: 700,
        other.pid: None,
    }
    page.disarm()
    assert target.run("handle", "cuStreamSynchronize", 3) == {0: 3}


def test_a_delay_delays_and_then_makes_the_call(stage: Stage) -> None:
    """The answer is the driver's."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Delay(0.15))], 30)
    target.send("run", "handle", NAME, 1, 1)
    assert target.silent(0.1)
    assert target.codes() == {0: 1}
    (count,) = page.counts().rules
    assert count.first is not None
    assert count.first == count.last


def test_a_reset_really_loses_the_context(stage: Stage) -> None:
    """The call in whose place it came, and those after it, are refused by the driver itself."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Reset())], 30)
    codes = target.run("handle", NAME, 7)
    assert set(codes) <= {709, 201}
    assert sum(codes.values()) == 7
    assert page.counts().rules[0].hits == 1
    assert page.counts().processes[0].result == 0
    page.disarm()
    assert set(target.run("handle", "cuStreamSynchronize", 3)) <= {709, 201}


def test_a_trap_is_a_real_sticky_error(stage: Stage) -> None:
    """It stays after disarming, as only the end of the process heals it."""
    stage.configuration.set("trap.modelprobe_trap", 719)
    target, page = stage.target(), stage.page()
    page.arm([Rule(("cuLaunchKernel",), Trap())], 30)
    target.run("handle", "cuLaunchKernel", 7)
    assert page.counts().rules[0].hits == 1
    assert page.counts().processes[0].result == 0
    page.disarm()
    eventually(lambda: target.run("handle", "cuCtxSynchronize") == {719: 1})
    assert target.run("handle", NAME, 3) == {719: 3}


@pytest.mark.parametrize("action", [Reset(), Trap()])
def test_once_a_process_and_again_when_armed_again(stage: Stage, action: Reset | Trap) -> None:
    """Each process is hit once in each arming."""
    targets = [stage.target(), stage.target()]
    page = stage.page()
    for _ in range(2):
        page.arm([Rule(("cuEventQuery",), action)], 30)
        for target in targets:
            target.run("handle", "cuEventQuery", 5)
        assert (page.counts().rules[0].calls, page.counts().rules[0].hits) == (10, 2)
