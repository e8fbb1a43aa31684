"""Plots: lines where something was measured and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.export.page.plot import GROWN, YOUNG, Series, ceiling, path, plot, span_of
from sidecar.units import duration

NOW = 1_000.0


def draw(*points: tuple[float, float | None]) -> str:
    """The path of points on an axis to 10."""
    return path(points, NOW, 10.0)


def test_line_joins_neighbours() -> None:
    """Two seconds in a row are one stroke, from left to right."""
    assert draw((NOW - 1, 5.0), (NOW, 10.0)) == "M299.0 50.0L300.0 0.0"


def test_none_breaks_the_line() -> None:
    """A second in which nothing was measured is a gap, not a bridge and not a 0."""
    assert draw((NOW - 2, 5.0), (NOW - 1, None), (NOW, 5.0)).count("M") == 2


def test_silence_breaks_the_line() -> None:
    """So is a time without any snapshot."""
    assert draw((NOW - 60, 5.0), (NOW, 5.0)).count("M") == 2


def test_lone_point_is_a_dot() -> None:
    """A single measurement is drawn: a stroke just long enough to be seen."""
    assert draw((NOW, 5.0)) == "M299.3 50.0h1.4"


def test_what_is_out_of_view_is_not_drawn() -> None:
    """Points older than five minutes, or of the future, are left out."""
    assert draw((NOW - 301, 5.0), (NOW + 1, 5.0)) == ""


def test_axis_starts_at_zero_and_has_round_ticks() -> None:
    """The lowest tick is 0 and the others are readable."""
    series = (Series("p50", "x", ((NOW, 0.0147),)),)
    drawn = plot("k", "Title", series, NOW, duration, top=0.0312)
    assert [t.replace("\N{NO-BREAK SPACE}", " ") for t in drawn.ticks] == ["40 ms", "20 ms", "0"]


def test_nothing_measured_is_said() -> None:
    """A plot without a point has no line and says why."""
    drawn = plot("k", "Title", (Series("p50", "x", ((NOW, None),)),), NOW, duration, empty="Why.")
    assert drawn.lines == ()
    assert drawn.description == "Why."


def test_description_tells_the_latest_values() -> None:
    """Who cannot see the line is told where it ends, a dash where nothing was measured."""
    series = (
        Series("p50", "x", ((NOW, 0.2),)),
        Series("p99", "x", ((NOW - 1, 0.3), (NOW, None))),
    )
    drawn = plot("k", "Title", series, NOW, duration)
    assert drawn.description.replace("\N{NO-BREAK SPACE}", " ") == "p50 200 ms, p99 –."


@pytest.mark.parametrize(("value", "end"), [(0.0, 1.0), (0.0312, 0.04), (1.0, 1.0), (812, 1000)])
def test_ceiling_examples(value: float, end: float) -> None:
    """The axis ends at a round number."""
    assert ceiling(value) == pytest.approx(end)


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_ceiling_holds_its_value_tightly(value: float) -> None:
    """Nothing is cut off, and at least 49 % of the height is used."""
    assert value <= ceiling(value) * (1 + 1e-9)
    assert ceiling(value) <= value * 2.05


def test_a_young_sidecar_fills_its_plots() -> None:
    """In the first 100 seconds the axis is 100 seconds long, then five minutes."""
    assert span_of(99) is YOUNG
    assert span_of(101) is GROWN
    assert path(((NOW - 50, 5.0), (NOW - 49, 5.0)), NOW, 10.0, YOUNG) == "M150.0 50.0L153.0 50.0"
