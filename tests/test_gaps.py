"""Tests of sidecar.gaps."""

import random

from hypothesis import given
from hypothesis import strategies as st

from sidecar import gaps


@given(st.integers(min_value=0, max_value=2**40))
def test_every_gap_lies_in_its_bucket(gap_ns: int) -> None:
    """A gap is at least its bucket's lower bound and below the upper one."""
    bucket = gaps.index(gap_ns)
    assert gaps.lower_seconds(bucket) * 1e9 <= gap_ns < gaps.upper_seconds(bucket) * 1e9


def test_bounds_are_contiguous_and_fine() -> None:
    """Each bucket starts where the one before ends and is at most 1/16 of its value wide."""
    for bucket in range(1, gaps.BUCKETS - 1):
        lower, upper = gaps.lower_seconds(bucket), gaps.upper_seconds(bucket)
        assert upper == gaps.lower_seconds(bucket + 1)
        assert (upper - lower) / lower <= 1 / 16 + 1e-9


def test_quantile_is_within_half_a_bucket_of_sorting() -> None:
    """The quantiles of 4,999 gaps differ from the sorted ones by at most 1/32."""
    rng = random.Random(7)
    values = sorted(int(rng.lognormvariate(16.1, 0.7)) for _ in range(4_999))
    counts: dict[int, int] = {}
    for value in values:
        counts[gaps.index(value)] = counts.get(gaps.index(value), 0) + 1
    for q in (0.01, 0.5, 0.9, 0.99):
        true = values[int(q * (len(values) - 1))] / 1e9
        estimate = gaps.quantile(counts.items(), q)
        assert estimate is not None
        assert abs(estimate - true) / true <= 1 / 32 + 1e-9


def test_no_gap_has_no_quantile() -> None:
    """A quantile of nothing is None, not zero."""
    assert gaps.quantile([], 0.5) is None
    assert gaps.quantile([(3, 0)], 0.5) is None


def test_beyond_range_is_given_as_the_bound() -> None:
    """Gaps above 68.7 s count in the last bucket, which stands for its lower bound."""
    bucket = gaps.index(200 * 10**9)
    assert bucket == gaps.BUCKETS - 1
    assert gaps.middle_seconds(bucket) == 2**36 / 1e9
