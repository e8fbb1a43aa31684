"""The rule as specified, of an engine's own buckets: decided where they can carry it, else refused.

It asks for two things at once: D that is significant, and P99 up by more than 120 ms. Buckets give
both between bounds. Where either certainly does not hold there is no drift, where both certainly
do there is one; between, any answer would be a guess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sidecar import loghist
from sidecar.bucketed import Bucketed, Interval
from sidecar.drift import distance
from sidecar.drift.options import Options
from sidecar.evaluation import Change, Ks


@dataclass(frozen=True, slots=True)
class Specified:
    """``decided`` is False where the buckets leave both answers open; ``verdict`` says then what is
    certain, and drifts is False.
    """

    verdict: Ks
    decided: bool


def apart(now: Interval, then: Interval, guard: float) -> Change:
    """A difference of which no more is known than where each side lies. Its value is the middle,
    where it has an upper end; the lower one, where it has none.
    """
    lower, upper = now.lower - then.upper, now.upper - then.lower
    if upper == math.inf:
        return Change(lower, lower, max(loghist.HIGHEST, lower), guard)
    return Change((lower + upper) / 2, lower, upper, guard)


def judge(hour: Bucketed, days: Bucketed, options: Options) -> Specified | None:
    """Of a whole hour, and the same hour of the days before; None where one of them is empty or
    they share no bounds.
    """
    bounds = set(hour.bounds) & set(days.bounds)
    now, then = hour.on(bounds), days.on(bounds)
    moved, usual = now.quantile(options.ks_quantile), then.quantile(options.ks_quantile)
    if moved is None or usual is None or not bounds:
        return None
    # The cell at the end is for what is all alike; above the last bound it is not.
    found = distance.ks_counts(_cells(now), _cells(then), alpha=options.ks_p)
    if found is None:
        return None
    change = apart(moved, usual, options.ks_delta_seconds)
    is_up, is_not = change.lower >= change.guard, change.upper <= change.guard
    drifts = found.differs and is_up
    verdict = Ks(
        n=found.n,
        m=found.m,
        d=found.d,
        d_upper=found.d_upper,
        p=found.p,
        change=change,
        drifts=drifts,
    )
    alike = found.certain and not found.differs
    return Specified(verdict, decided=drifts or is_not or alike)


def _cells(stretch: Bucketed) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([*stretch.counts, 0], dtype=np.int64)
