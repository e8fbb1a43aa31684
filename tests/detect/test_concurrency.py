"""Bins of concurrency."""

import pytest

from sidecar.detect.concurrency import half_octave


@pytest.mark.parametrize(
    ("at_once", "expected"),
    [
        *[(0.0, 1), (1.0, 1), (1.99, 1), (2.0, 2), (2.82, 2), (2.83, 3), (4.0, 4), (5.65, 4)],
        *[(5.66, 6), (7.9, 6), (8.0, 8), (11.3, 8), (11.32, 11), (16.0, 16), (1024.0, 1024)],
    ],
)
def test_edges_are_powers_of_the_root_of_two(at_once: float, expected: int) -> None:
    """Each bin bears its lower edge, rounded."""
    assert half_octave(at_once) == expected


def test_powers_of_two_are_edges() -> None:
    """No rounding of a logarithm puts one into the bin below."""
    assert all(half_octave(2.0**k) == 2**k for k in range(1, 40))


def test_what_is_no_number_is_the_lowest() -> None:
    """NaN and negative means do not raise."""
    assert half_octave(float("nan")) == half_octave(-7.0) == 1
