"""The client's figures: close to the exact ones, bounded, and never a made-up zero."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from rig.truth import KINDS, Quantiles, Spread, Summary, Truth, read, write

SUMMARY = Summary(
    requests=3,
    failed=1,
    unfinished=0,
    failures={"refused": 1},
    statuses={"200": 2},
    ttft_seconds=Spread(0.05, 0.07),
    itl_seconds=Spread(None, None),
    tokens=2,
    seconds=1.5,
    idle_ratio=0.99,
    rate=2.0,
    seed=1,
)


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_quantiles_are_within_half_a_percent(share: float) -> None:
    """The histogram's quantile is within 0.5 % of the sorted list's."""
    rng = random.Random(5)
    values = [rng.lognormvariate(-5, 1) for _ in range(9973)]
    seen = Quantiles()
    for value in values:
        seen.add(value)
    exact = sorted(values)[int(share * len(values))]
    assert seen.quantile(share) == pytest.approx(exact, rel=0.005)


def test_nothing_measured_is_none() -> None:
    """Without values there is no quantile."""
    assert Quantiles().quantile(0.5) is None


def test_events_that_arrive_together_have_a_gap_of_zero() -> None:
    """A gap of nothing is reported as 0, not as the histogram's smallest bucket."""
    seen = Quantiles()
    seen.add(0.0)
    assert seen.quantile(0.5) == 0.0


def test_values_beyond_the_range_are_kept_at_its_end() -> None:
    """A gap of a day is counted as the largest that can be told apart."""
    seen = Quantiles()
    seen.add(86400.0)
    assert seen.quantile(0.5) == pytest.approx(2**30 * 1e-6, rel=0.01)


def test_failure_kinds_are_capped() -> None:
    """Kinds beyond the cap fold into `other`, and none is lost."""
    truth = Truth()
    for number in range(2 * KINDS):
        truth.ended(f"status_{number}")
    assert len(truth.failures) == KINDS + 1
    assert truth.failures.total() == truth.requests == 2 * KINDS


def test_summary_survives_its_file(tmp_path: Path) -> None:
    """What is written is read back equal, and replaces the one before."""
    path = tmp_path / "load.json"
    assert read(path) is None
    write(path, SUMMARY)
    write(path, replace(SUMMARY, requests=5))
    assert read(path) == replace(SUMMARY, requests=5)
    assert list(tmp_path.iterdir()) == [path]
