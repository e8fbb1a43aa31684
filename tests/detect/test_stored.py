"""Tests of sidecar.detect.stored: every detector goes on after a restart as if there was none."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.detect.burn import Budget
from sidecar.detect.ewma import Chart, Lag
from sidecar.detect.level import Level
from sidecar.detect.runrule import RunRule
from sidecar.detect.stored import Foreign, Stateful, Thing, keep, recall
from sidecar.verdicts import AlarmState

values = st.lists(st.floats(0, 1e6), max_size=200)
states = st.sampled_from(AlarmState)


def again(thing: Thing, fresh: Thing) -> Thing:
    """Through text, as a file or a database keeps it."""
    return recall(fresh, json.loads(json.dumps(keep(thing), allow_nan=False)))


@given(values, values, st.floats(0, 1))
def test_chart(before: list[float], after: list[float], rho: float) -> None:
    """A chart gives the same z before and after."""
    chart = Chart()
    for i, value in enumerate(before):
        chart.update(value, 42.6, 3.8, rho, at=float(i))
    other = again(chart, Chart())
    assert other == chart
    for value in after:
        assert other.update(value, 42.6, 3.8, rho) == chart.update(value, 42.6, 3.8, rho)


@given(values, values)
def test_run_rule(before: list[float], after: list[float]) -> None:
    """A row that was two minutes long is two minutes long."""
    rule = RunRule()
    for i, value in enumerate(before):
        rule.update(60.0 * i, value, 42.6, 3.8)
    other = again(rule, RunRule())
    for i, value in enumerate(after, start=len(before)):
        once = other.update(60.0 * i, value, 42.6, 3.8)
        assert once == rule.update(60.0 * i, value, 42.6, 3.8)


@settings(max_examples=50)
@given(values, states, values, states)
def test_level(
    before: list[float], state: AlarmState, after: list[float], then: AlarmState
) -> None:
    """A baseline keeps its quarantine and how its alarm stood."""
    level = Level()
    for i, value in enumerate(before):
        level.offer(60.0 * i, value)
    level.follow(state)
    other = again(level, Level())
    assert other == level
    for i, value in enumerate(after, start=len(before)):
        assert other.offer(60.0 * i, value) == level.offer(60.0 * i, value)
        other.follow(then)
        level.follow(then)
    assert other == level


@given(values)
def test_lag(residuals: list[float]) -> None:
    """An autocorrelation is kept with its pairs."""
    lag = Lag()
    for i, residual in enumerate(residuals):
        lag.update(60.0 * i, residual)
    assert again(lag, Lag()) == lag


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 4_000), st.integers(0, 9), st.integers(0, 9))))
def test_budget(records: list[tuple[int, int, int]]) -> None:
    """A budget keeps what was spent, and its holes."""
    budget, at = Budget(0.999), 0.0
    for wait, bad, good in records:
        at += wait
        budget.record(at, bad, bad + good)
    other = again(budget, Budget(0.999))
    assert other == budget
    assert other.over(21_600.0, at) == budget.over(21_600.0, at)


def test_settings_are_not_state() -> None:
    """A band that was changed while we were away is the new one."""
    rule = RunRule(k=2.5)
    rule.update(0.0, 20.0, 42.6, 3.8)
    other = again(rule, RunRule(k=4.0))
    assert (other.k, other.count) == (4.0, 1)


@pytest.mark.parametrize(
    ("fresh", "damage"),
    [
        (Chart(), {"average": math.nan}),
        (Chart(), {"average": "high"}),
        (Chart(), {"average": None}),
        (Chart(), {"extra": 1.0}),
        (RunRule(), {"count": 1.5}),
        (Level(), {"waiting": [[0.0, math.inf]]}),
        (Level(), {"waiting": [[0.0]]}),
        (Level(), {"alarm": "unheard of"}),
        (Level(), {"weight": -1.0}),
        (Level(), {"variance": -1.0}),
        (Budget(0.999), {"fine": {"seconds": 60.0, "slots": 360, "bad": [], "total": [1.0]}}),
        (Budget(0.999), {"fine": {"seconds": 7.0, "slots": 3}}),
    ],
)
def test_damaged_state_is_refused(fresh: Stateful, damage: dict[str, object]) -> None:
    """Nothing of a state that cannot be is taken."""
    with pytest.raises(Foreign):
        recall(fresh, {**keep(fresh), **damage})


def test_the_state_of_something_else_is_refused() -> None:
    """A baseline is no chart."""
    with pytest.raises(Foreign, match="not the state of a Chart"):
        recall(Chart(), keep(Level()))
