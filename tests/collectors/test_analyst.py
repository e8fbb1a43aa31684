"""The analyst as a real process: slots of days in, evaluations out; killed, stopped, ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sidecar.collectors.analyst import FIRING, STANDING, Analyst, AnalystCollector
from sidecar.config import Settings
from sidecar.evaluation import Evaluation, Series, Standing
from sidecar.record import STEP, Record
from sidecar.recorder import Slot
from sidecar.signals import NoData, Sample, Signal
from sidecar.testing import wait_for

SERIES = Series("ttft", "downstream", "127.0.0.1:8000")
A_SLOT = 300.0


@pytest.fixture
def analyst(tmp_path: Path) -> Iterator[Analyst]:
    """One without a file, whose child is ended with the test."""
    one = Analyst(Settings())
    yield one
    one.stop()


def record(rng: np.random.Generator, n: int, slow: float = 0.0) -> Record:
    """Log-normal waits, a share of them 600 ms longer, in two blocks."""
    values = rng.lognormal(np.log(0.35), 0.45, n)
    values += 0.6 * (rng.random(n) < slow)
    found = Record()
    for value in values:
        found.strata[1][found.hist.add(float(value)) // STEP] += 1
    found.blocks = 2
    above = np.cumsum(np.array(found.strata[1])[::-1])[::-1].astype(float)
    found.squares[:] = type(found.squares)("d", (above**2 / n * 1.0).tolist())
    return found


def slots(days: int, n: int = 300, slow: float = 0.0) -> Iterator[Slot]:
    """One hour a day for so many days, and on the last day with slow ones."""
    rng = np.random.default_rng(7)
    start = (time.time() // 3_600 - 2) * 3_600 - 86_400 * (days - 1)
    for day in range(days):
        share = slow if day == days - 1 else 0.0
        for i in range(12):
            at = start + 86_400 * day + A_SLOT * i
            yield Slot(at, at + A_SLOT, True, {SERIES: record(rng, n, share)})


def rounds(analyst: Analyst, found: Iterator[Slot]) -> Evaluation:
    """Tells every slot, and waits until the last is evaluated; its evaluation."""
    last = 0.0
    for slot in found:
        analyst.put(slot)
        last = slot.end
        wait_for(lambda end=last: told(analyst, end), 30, "the round")  # type: ignore[misc]
    [one] = analyst.last.evaluations
    return one


def told(analyst: Analyst, end: float) -> bool:
    """Whether the round of the slot that ended then has come."""
    return any(one.at == end for one in analyst.exchange().evaluations)


def signals(analyst: Analyst) -> list[Signal]:
    """What the collector says now."""
    return list(AnalystCollector(analyst).collect(0.0))


def test_no_request_no_process(analyst: Analyst) -> None:
    """Where nothing is served nothing is compared, and 80 MB are not spent."""
    analyst.put(Slot(0.0, 300.0, True, {}))
    assert analyst.exchange().evaluations == ()
    assert analyst._child is None


def test_a_slow_tail_against_a_week_drifts(analyst: Analyst) -> None:
    """Seven healthy days, then four in a hundred are slow: the process says so, in two of three
    evaluations, and the samples do.
    """
    one = rounds(analyst, slots(8, slow=0.04))
    assert one.standing is Standing.JUDGED
    assert one.tail is not None
    assert one.tail.change.value > 0.12
    assert "tail" in one.firing
    found = [s for s in signals(analyst) if isinstance(s, Sample)]
    fires = {dict(s.labels)["rule"]: s.value for s in found if s.metric == FIRING.name}
    assert fires["tail"] == 1.0
    standing = {dict(s.labels)["standing"]: s.value for s in found if s.metric == STANDING.name}
    assert (standing["judged"], sum(standing.values())) == (1.0, 1.0)


def test_a_week_like_the_one_before_does_not(analyst: Analyst) -> None:
    """And the first days are warming."""
    found = slots(8)
    first = rounds(analyst, iter([next(found)]))
    assert first.standing is Standing.WARMING
    last = rounds(analyst, found)
    assert (last.standing, last.firing) == (Standing.JUDGED, frozenset())


def test_a_killed_analyst_is_said_and_started_again(analyst: Analyst) -> None:
    """What it knew is gone without a file; the next slot starts another."""
    found = slots(1)
    rounds(analyst, iter([next(found)]))
    assert analyst._child is not None
    os.kill(analyst._child.pid, signal.SIGKILL)
    with pytest.raises(NoData, match="ended"):
        wait_for(lambda: analyst.exchange() is None, 10, "its end")
    assert rounds(analyst, iter([next(found)])).standing is Standing.WARMING


def test_with_a_file_a_restart_forgets_nothing(tmp_path: Path) -> None:
    """The week, and that the alarm fires; at most the open slot is lost."""
    settings = Settings(alarms={"database": tmp_path / "alarms.db"})  # type: ignore[arg-type]
    first = Analyst(settings)
    found = list(slots(8, slow=0.04))
    try:
        assert rounds(first, iter(found[:-1])).firing >= {"tail"}
        child = first._child
        assert child is not None
        os.kill(child.pid, signal.SIGKILL)
        assert wait_for(lambda: child.reaped.is_set() or ended(first), 10, "its end")
    finally:
        first.stop()
    second = Analyst(settings)
    try:
        one = rounds(second, iter(found[-1:]))
        assert (one.standing, len(one.kept)) == (Standing.JUDGED, 7)
        assert one.firing >= {"tail"}
        assert second.last.store == "ok"
    finally:
        second.stop()


def ended(analyst: Analyst) -> bool:
    """Whether the child's end has been noticed."""
    try:
        analyst.exchange()
    except NoData:
        return True
    return False


def test_one_that_does_not_answer_is_killed(tmp_path: Path) -> None:
    """A stopped process neither answers nor ends."""
    now = [0.0]
    analyst = Analyst(Settings(), clock=lambda: time.monotonic() + now[0])
    try:
        found = slots(1)
        rounds(analyst, iter([next(found)]))
        child = analyst._child
        assert child is not None
        os.kill(child.pid, signal.SIGSTOP)
        analyst.put(next(found))
        analyst.exchange()
        now[0] = 241.0
        with pytest.raises(NoData, match="did not answer"):
            analyst.exchange()
        assert child.reaped.wait(10)
    finally:
        analyst.stop()


def test_stop_ends_the_process(analyst: Analyst) -> None:
    """Nothing is left behind, and nothing is started again."""
    rounds(analyst, iter([next(slots(1))]))
    child = analyst._child
    assert child is not None
    analyst.stop()
    assert child.reaped.wait(10)
    analyst.put(next(slots(1)))
    with pytest.raises(NoData):
        analyst.exchange()


def test_slots_that_nobody_takes_are_bounded_and_counted(analyst: Analyst) -> None:
    """Two hours wait; the oldest give way."""
    for i in range(30):
        analyst.put(Slot(300.0 * i, 300.0 * (i + 1), True, {}))
    assert analyst.dropped == 6
    assert next(s.value for s in signals(analyst) if isinstance(s, Sample)) == 6.0
