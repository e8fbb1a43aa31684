"""The log-linear buckets in which the kernel counts inter-token gaps (``probed/wire.bpf.c``).

Sixteen sub-buckets an octave bound the error of a quantile to half a bucket, about 3 %: from
65.5 us (2**16 ns) to 68.7 s (2**36 ns), with one bucket below and one above.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

MIN_EXPONENT = 16
OCTAVES = 20
SUB_BUCKETS = 16
BUCKETS = OCTAVES * SUB_BUCKETS + 2  # 0 is below the range, the last is above it


def index(gap_ns: int) -> int:
    """The bucket of a gap in nanoseconds; the same arithmetic as ``gap_bucket`` in the kernel."""
    exponent = gap_ns.bit_length() - 1
    if exponent < MIN_EXPONENT:
        return 0
    if exponent >= MIN_EXPONENT + OCTAVES:
        return BUCKETS - 1
    sub = (gap_ns >> (exponent - 4)) & (SUB_BUCKETS - 1)
    return 1 + (exponent - MIN_EXPONENT) * SUB_BUCKETS + sub


def _lower(bucket: int) -> float:
    if bucket <= 0:
        return 0.0
    octave, sub = divmod(min(bucket, BUCKETS - 1) - 1, SUB_BUCKETS)
    return float((SUB_BUCKETS + sub) << (MIN_EXPONENT + octave - 4)) / 1e9


# By bucket, in seconds. Asked for each of every request: a look-up costs a hundredth of the rest.
_LOWER = tuple(_lower(bucket) for bucket in range(BUCKETS))
MIDDLES = (*((low + high) / 2 for low, high in pairwise(_LOWER)), _LOWER[-1])


def lower_seconds(bucket: int) -> float:
    """The smallest gap of a bucket, in seconds; 0.0 for the one below the range."""
    return _LOWER[min(max(bucket, 0), BUCKETS - 1)]


def upper_seconds(bucket: int) -> float:
    """The bound above every gap of a bucket, in seconds; +Inf for the one above the range."""
    return float("inf") if bucket >= BUCKETS - 1 else lower_seconds(bucket + 1)


def middle_seconds(bucket: int) -> float:
    """The value a bucket stands for: its middle; the lower bound of the one above the range."""
    return MIDDLES[min(max(bucket, 0), BUCKETS - 1)]


def quantile(counts: Iterable[tuple[int, int]], q: float) -> float | None:
    """The q-quantile in seconds of ``(bucket, count)`` pairs, None when there is no gap."""
    ordered = sorted(counts)
    total = sum(count for _, count in ordered)
    if total == 0:
        return None
    rank, seen = q * (total - 1), 0
    for bucket, count in ordered:
        seen += count
        if seen > rank:
            return middle_seconds(bucket)
    return middle_seconds(ordered[-1][0])
