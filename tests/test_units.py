"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from sidecar.units import ago, difference, duration, number, tick


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00031, "0.31 ms"),
        (0.0042, "4.20 ms"),
        (0.0138, "13.8 ms"),
        (0.206, "206 ms"),
        (0.9999, "1.00 s"),
        (1.237, "1.24 s"),
        (59.99, "1 min 0 s"),
        (83.0, "1 min 23 s"),
        (3_700.0, "1 h 1 min"),
        (200_000.0, "2 d 7 h"),
        (0.0, "0 ms"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    """Three digits and one unit; a dash for what was not measured."""
    assert duration(seconds).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(7.0, "7"), (0.42, "0.42"), (811.7, "812"), (12_400.0, "12,400"), (None, "–")],
)
def test_number(value: float | None, text: str) -> None:
    """Whole numbers stay whole; a dash for what was not measured."""
    assert number(value) == text


def test_difference_has_a_sign() -> None:
    """What a gateway adds is signed, also when it is negative."""
    assert difference(0.192).startswith("+")
    assert difference(-0.001).startswith("\N{MINUS SIGN}")
    assert difference(None) == "–"


@pytest.mark.parametrize(
    ("text", "label"),
    [("40.0 ms", "40 ms"), ("2.50 s", "2.5 s"), ("0.05", "0.05"), ("1,000", "1,000")],
)
def test_tick_has_no_idle_zeros(text: str, label: str) -> None:
    """An axis needs no digits after its round numbers."""
    assert tick(text) == label


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (2.1, "2 s"), (83.2, "1 min 23 s")])
def test_ago_is_in_whole_seconds(seconds: float, text: str) -> None:
    """Ages do not flicker."""
    assert ago(seconds).replace("\N{NO-BREAK SPACE}", " ") == text
