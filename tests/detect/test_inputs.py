"""Tests of sidecar.detect.inputs: what comes in, and that nothing else ever does."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.detect import inputs
from sidecar.detect.burn import Budget
from sidecar.detect.ewma import Chart
from sidecar.detect.inputs import Refusal, Refused
from sidecar.detect.level import Level
from sidecar.detect.runrule import RunRule
from sidecar.detect.stored import keep

anything = st.tuples(st.floats(), st.floats())


def test_zero_and_the_ceiling_are_readings() -> None:
    """Zero is a value, and so is the largest one allowed."""
    assert inputs.reading(0.0) == 0
    assert inputs.reading(1e9) == 1e9
    with pytest.raises(Refused) as refused:
        inputs.reading(51.0, ceiling=50.0)
    assert refused.value.refusal is Refusal.BEYOND_RANGE


def test_clocks_may_differ_by_five_minutes() -> None:
    """300 s ahead is taken, more is not; without a clock to compare nothing is ahead."""
    assert inputs.moment(1_300.0, None, now=1_000.0) == 1_300.0
    with pytest.raises(Refused) as refused:
        inputs.moment(1_301.0, None, now=1_000.0)
    assert refused.value.refusal is Refusal.AHEAD
    assert inputs.moment(1e9, 1.0) == 1e9


def test_daylight_saving_time_is_nothing() -> None:
    """Times are Unix seconds: the hour that local clocks repeat is two hours here."""
    rule = RunRule()
    for minute in range(120):
        rule.update(1_729_987_200.0 + 60 * minute, 20.0, 42.6, 3.8)
    assert rule.count == 120


@given(st.lists(anything, max_size=100))
def test_no_input_harms(pairs: list[tuple[float, float]]) -> None:
    """Whatever floats come, in whatever order, is refused by name or leaves finite state."""
    level, rule, chart = Level(start=3, quarantine_seconds=60.0), RunRule(), Chart()
    budget = Budget(0.999)
    for at, value in pairs:
        for take in (
            lambda at, value: level.offer(at, value),
            lambda at, value: rule.update(at, value, 42.6, 3.8),
            lambda at, value: chart.update(value, 42.6, 3.8, at=at),
            lambda at, value: budget.record(at, value, value),
        ):
            try:
                take(at, value)
            except Refused as refused:
                assert refused.refusal in Refusal
    for thing in (level, rule, chart):
        for name, kept in keep(thing).items():
            assert not isinstance(kept, float) or math.isfinite(kept), name
    assert level.sigma >= 0
