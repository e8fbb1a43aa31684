"""Bins of concurrency."""

import pytest

from bench.detectors_watch import Watch
from sidecar.detect.concurrency import half_octave


@pytest.mark.parametrize(
    ("at_once", "expected"),
    [
        *[(0.0, 1), (1.0, 1), (1.6, 1), (1.7, 2), (2.0, 2), (2.3, 2), (3.0, 3), (4.0, 4)],
        *[(5.0, 6), (6.7, 6), (6.8, 8), (7.0, 8), (7.9, 8), (8.0, 8), (9.5, 8), (9.6, 11)],
        *[(16.0, 16), (1024.0, 1024)],
    ],
)
def test_middles_are_powers_of_the_root_of_two(at_once: float, expected: int) -> None:
    """Each bin bears its middle, rounded."""
    assert half_octave(at_once) == expected


def test_powers_of_two_are_middles() -> None:
    """A tenth more or less at once than a full batch stays in its bin."""
    for k in range(1, 40):
        assert {half_octave(share * 2.0**k) for share in (0.9, 1.0, 1.1)} == {2**k}


def test_what_is_no_number_is_the_lowest() -> None:
    """NaN and negative means do not raise."""
    assert half_octave(float("nan")) == half_octave(-7.0) == 1


def test_the_published_rates_are_of_these_bins() -> None:
    """`./run bench detectors` puts minutes into these, but for the rows that show coarser ones."""
    ours = [half_octave(n) for n in range(1, 200)]
    assert [Watch().concurrency(n) for n in range(1, 200)] == ours
    assert len({Watch(1).concurrency(n) for n in range(1, 200)}) < len(set(ours))
