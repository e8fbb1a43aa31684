"""Tests of sidecar.detect.burn and its ring."""

import math
import random

import pytest

from sidecar.detect.burn import CONDITIONS, LONGEST, Budget, Doubt, Judgement
from sidecar.detect.inputs import Refusal, Refused
from sidecar.verdicts import Outcome, Severity

HOUR, DAY = 60, 1_440
FAST, SLOW, STEADY = CONDITIONS


def watched(
    minutes: int,
    total: float = 100.0,
    bad: float = 0.0,
    budget: Budget | None = None,
    start: int = 0,
) -> Budget:
    """So many minutes of ``bad`` of ``total`` requests each."""
    budget = budget or Budget(0.999)
    for minute in range(start, start + minutes):
        budget.record(60.0 * minute, bad, total)
    return budget


def at(minute: int) -> float:
    return 60.0 * minute


def judged(budget: Budget, minute: int) -> list[Judgement]:
    return [budget.judge(condition, at(minute)) for condition in CONDITIONS]


def outcomes(budget: Budget, minute: int) -> list[Outcome]:
    return [one.outcome for one in judged(budget, minute)]


def test_the_workbook_s_conditions() -> None:
    """2 %, 5 % and 10 % of a 30 day budget in an hour, six hours, three days."""
    spent = [c.factor * c.long_seconds / (30 * 86_400) for c in CONDITIONS]
    assert spent == pytest.approx([0.02, 0.05, 0.10])
    assert [c.long_seconds / c.short_seconds for c in CONDITIONS] == pytest.approx([12.0] * 3)
    assert [c.severity for c in CONDITIONS] == [Severity.PAGE, Severity.PAGE, Severity.TICKET]


def test_burn_rate_over_any_window() -> None:
    """One failure in a thousand burns at 1, two at 2, whatever the window."""
    budget = watched(4 * DAY, 1_000, 2)
    for seconds in (60.0, 300.0, 3_600.0, 21_600.0, 86_400.0, LONGEST):
        assert budget.burn(seconds, at(4 * DAY - 1)) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="no window"):
        budget.burn(LONGEST + 1, at(4 * DAY))


def test_windows_forget() -> None:
    """An hour after the last failure the hour is clean, and the day is not."""
    budget = watched(DAY, 1_000)
    watched(10, 1_000, 500, budget, start=DAY)
    watched(60, 1_000, 0, budget, start=DAY + 10)
    now = at(DAY + 69)
    assert budget.burn(3_600.0, now) == 0
    assert budget.over(21_600.0, now).bad == 5_000
    assert budget.over(86_400.0, now).bad == 5_000


def test_all_healthy_passes() -> None:
    """Half of the allowed failures is no alarm."""
    assert outcomes(watched(4 * DAY, 2_000, 1), 4 * DAY - 1) == [Outcome.PASS] * 3


@pytest.mark.parametrize(
    ("bad", "minutes", "alarms"),
    [
        (20, 60, [Outcome.FAIL, Outcome.PASS, Outcome.PASS]),  # burns at 20: 6 h see 3.3
        (20, 360, [Outcome.FAIL, Outcome.FAIL, Outcome.FAIL]),
        (8, 360, [Outcome.PASS, Outcome.FAIL, Outcome.PASS]),
        (2, 3 * DAY, [Outcome.PASS, Outcome.PASS, Outcome.FAIL]),
    ],
)
def test_each_rate_has_its_window(bad: int, minutes: int, alarms: list[Outcome]) -> None:
    """After four healthy days, of 1,000 requests a minute ``bad`` fail for so long."""
    budget = watched(4 * DAY, 1_000)
    watched(minutes, 1_000, bad, budget, start=4 * DAY)
    assert outcomes(budget, 4 * DAY + minutes - 1) == alarms


def test_the_short_window_ends_it() -> None:
    """Five minutes after an outage the fast page is over, though the hour still burns."""
    budget = watched(4 * DAY, 1_000)
    watched(10, 1_000, 1_000, budget, start=4 * DAY)
    assert budget.judge(FAST, at(4 * DAY + 9)).outcome is Outcome.FAIL
    watched(5, 1_000, 0, budget, start=4 * DAY + 10)
    found = budget.judge(FAST, at(4 * DAY + 14))
    assert found.outcome is Outcome.PASS
    assert found.long_burn is not None
    assert found.long_burn > 14.4


def test_one_failure_of_ten_an_hour_pages_nobody() -> None:
    """Ten requests an hour, one fails: it burns at 100 and is too few to say."""
    budget = Budget(0.999)
    for minute in range(4 * DAY):
        budget.record(at(minute), 0, 1 if minute % 6 == 0 else 0)
    budget.record(at(4 * DAY), 1, 1)
    found = budget.judge(FAST, at(4 * DAY))
    assert (found.outcome, found.doubt) == (Outcome.UNKNOWN, Doubt.TOO_FEW)
    assert found.long_burn == pytest.approx(100.0)


def test_an_outage_of_ten_an_hour_pages() -> None:
    """Where all of ten requests an hour fail, the fifth failure pages."""
    budget = Budget(0.999)
    for minute in range(4 * DAY):
        budget.record(at(minute), 0, 1 if minute % 6 == 0 else 0)
    for minute in range(4 * DAY, 4 * DAY + 25):
        failed = 1 if minute % 6 == 0 else 0
        budget.record(at(minute), failed, failed)
    assert budget.judge(FAST, at(4 * DAY + 24)).outcome is Outcome.FAIL


def test_few_failures_of_few_requests_by_chance() -> None:
    """At ten requests an hour and the allowed rate of failures, thirty days page nobody: seed 7."""
    rng, budget = random.Random(7), Budget(0.999)
    for minute in range(30 * DAY):
        total = int(rng.random() < 1 / 6)
        bad = int(total and rng.random() < 0.001)
        budget.record(at(minute), bad, total)
        if bad:
            assert budget.judge(FAST, at(minute)).outcome is not Outcome.FAIL
            assert budget.judge(SLOW, at(minute)).outcome is not Outcome.FAIL


def test_no_traffic_is_unknown() -> None:
    """Watched, and nothing came: neither good nor bad."""
    found = judged(watched(4 * DAY, 0), 4 * DAY - 1)
    assert {(one.outcome, one.doubt) for one in found} == {(Outcome.UNKNOWN, Doubt.NO_TRAFFIC)}
    assert found[0].long.covered == 1


def test_traffic_that_stops_in_an_outage_resolves_nothing() -> None:
    """Clients that give up make the short window empty, not good."""
    budget = watched(4 * DAY, 1_000)
    watched(10, 1_000, 1_000, budget, start=4 * DAY)
    watched(10, 0, 0, budget, start=4 * DAY + 10)
    assert budget.judge(FAST, at(4 * DAY + 19)).outcome is Outcome.UNKNOWN


def test_a_window_that_is_not_covered_is_unknown() -> None:
    """After ten minutes the hour says nothing yet of a burn that the rest of it may outweigh."""
    found = watched(10, 1_000, 40).judge(FAST, at(9))  # burns at 40; over the hour at 6.7
    assert (found.outcome, found.doubt) == (Outcome.UNKNOWN, Doubt.NOT_COVERED)
    assert found.long.covered == pytest.approx(1 / 6)


def test_a_burn_that_nothing_before_could_outweigh() -> None:
    """After ten minutes of outage it does not matter what came before."""
    found = watched(10, 1_000, 1_000).judge(FAST, at(9))
    assert found.outcome is Outcome.FAIL


def test_the_short_window_alone_can_pass() -> None:
    """Five healthy minutes are enough to say that it does not burn now."""
    assert watched(5, 1_000).judge(FAST, at(4)).outcome is Outcome.PASS


def test_time_without_us_is_not_covered() -> None:
    """A restart of two hours leaves a hole of two hours, and no good requests in it."""
    budget = watched(4 * DAY, 1_000)
    watched(30, 1_000, 0, budget, start=4 * DAY + 2 * HOUR)
    now = at(4 * DAY + 2 * HOUR + 29)
    assert budget.over(3_600.0, now).covered == pytest.approx(0.5)
    assert budget.over(21_600.0, now).covered == pytest.approx(240 / 360, abs=0.01)


def test_records_further_apart_than_a_slot_leave_no_hole() -> None:
    """A record every two minutes covers the minutes between."""
    budget = Budget(0.999)
    for minute in range(0, 120, 2):
        budget.record(at(minute), 0, 100)
    assert budget.over(3_600.0, at(118)).covered == 1
    assert budget.over(3_600.0, at(118)).total == 3_000


def test_silence_is_not_coverage() -> None:
    """Asked an hour after the last record, nothing of the hour was watched."""
    found = watched(DAY, 1_000).over(3_600.0, at(DAY + HOUR))
    assert (found.total, found.covered) == (0, 0)


@pytest.mark.parametrize(("objective", "reachable"), [(0.9, False), (0.93, False), (0.95, True)])
def test_rates_out_of_reach(objective: float, reachable: bool) -> None:
    """Of an objective of 90 % even an outage burns at 10, so that 14.4 never holds."""
    assert FAST.reachable(objective) is reachable
    outage = watched(4 * DAY, 100, 100, Budget(objective))
    assert (outage.judge(FAST, at(4 * DAY - 1)).outcome is Outcome.FAIL) is reachable


def test_memory_is_bounded() -> None:
    """Three days take 504 slots, a month the same."""
    budget = watched(30 * DAY)
    assert len(budget.fine.total) + len(budget.coarse.total) == 504


@pytest.mark.parametrize(
    ("moment", "bad", "total", "refusal"),
    [
        (6_000.0, math.nan, 1.0, Refusal.NOT_A_NUMBER),
        (6_000.0, 0.0, math.nan, Refusal.NOT_A_NUMBER),
        (6_000.0, -1.0, 1.0, Refusal.NEGATIVE),
        (6_000.0, 0.0, 1e12, Refusal.BEYOND_RANGE),
        (5_940.0, 0.0, 1.0, Refusal.DUPLICATE),
        (5_000.0, 0.0, 1.0, Refusal.UNORDERED),
        (3e8, 0.0, 1.0, Refusal.AHEAD),
    ],
)
def test_what_is_no_count_never_enters(
    moment: float, bad: float, total: float, refusal: Refusal
) -> None:
    """Refused by name, and the budget is as it was."""
    budget, untouched = watched(100), watched(100)
    with pytest.raises(Refused) as refused:
        budget.record(moment, bad, total, now=6_000.0)
    assert refused.value.refusal is refusal
    assert budget == untouched


def test_more_bad_than_all() -> None:
    """Two bad of one is a mistake of the caller."""
    with pytest.raises(ValueError, match="2 bad of 1"):
        Budget(0.999).record(0.0, 2, 1)


def test_a_clock_that_was_ten_years_ahead_is_forgotten() -> None:
    """What was recorded for 2036 is gone when the clock is right again."""
    budget = watched(100)
    budget.record(3e8, 1, 1)
    budget.record(6_000.0, 0, 5, now=6_000.0)
    assert budget.over(3_600.0, 6_000.0).total == 5


@pytest.mark.parametrize("objective", [0.0, 1.0, -1.0, math.nan])
def test_objectives_without_a_budget(objective: float) -> None:
    """An objective lies between 0 and 1."""
    with pytest.raises(ValueError, match="no budget"):
        Budget(objective)
