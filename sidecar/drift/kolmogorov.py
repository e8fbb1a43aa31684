"""The rule as specified: Kolmogorov-Smirnov p < 0.01, and P99 more than 120 ms above that of the
same hour of seven days. Whole hours of the clock, every request alike, nothing corrected.

On requests that clump, or days that differ, it alarms falsely; on a few per cent of slow ones
hardly ever rightly. Both are measured in ``./run bench detectors``.
"""

from __future__ import annotations

import numpy as np

from sidecar.drift import distance
from sidecar.drift.options import Options
from sidecar.drift.quantiles import between, change
from sidecar.drift.stretch import Stretch
from sidecar.evaluation import Ks

_REACH = 1.96  # standard deviations; the interval takes requests as independent, as the rule does


def judge(current: Stretch, before: Stretch, options: Options) -> Ks | None:
    """Of an hour, and the same hour of the days before in one stretch; None where one is empty.
    Raises ValueError for hours that are weighted: their counts are none.
    """
    if current.spread != current.n or before.spread != before.n:
        raise ValueError("the rule is for whole hours, not weighted ones")
    # Whole numbers, exact as floats below 2**53; so they are added up there.
    hour, days = current.counts.astype(np.int64), before.counts.astype(np.int64)
    found = distance.ks_counts(hour, days, alpha=options.ks_p)
    if found is None:
        return None
    quantile = options.ks_quantile
    now, then = np.cumsum(current.counts), np.cumsum(before.counts)
    moved = change(
        between(now, quantile, current.n, _REACH),
        between(then, quantile, before.n, _REACH),
        options.ks_delta_seconds,
    )
    return Ks(
        n=found.n,
        m=found.m,
        d=found.d,
        d_upper=found.d_upper,
        p=found.p,
        change=moved,
        drifts=found.differs and moved.value > options.ks_delta_seconds,
    )
