"""An hour beside its baseline, on the same cells: what the tests of the tail have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from sidecar.drift import dispersion, mix
from sidecar.drift.baseline import Baseline, Level
from sidecar.drift.dispersion import Prior
from sidecar.drift.mix import Mix
from sidecar.drift.quantiles import between, change, seconds_of
from sidecar.drift.stretch import Floats, Stretch
from sidecar.evaluation import Change
from sidecar.loghist import cell

_ALONE = Prior()
_SURE = 0.975  # each side of an interval of 95 %


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Of the hour: ``cumulative`` (CELLS,) counts up to and with each cell, ``n`` in all, which
    tell as much as ``independent`` requests. Of the baseline at the mix of now: ``usual`` (CELLS,),
    the share up to and with each cell, and ``share``, that above t₀; from ``size`` independent
    requests. ``phis`` are the moderated dispersions by quantile, ``clumps`` what of each is there
    within a day.
    """

    level: Level
    cumulative: Floats
    n: float
    independent: float
    usual: Floats
    share: float
    size: float
    phis: Mapping[float, float]
    clumps: Mapping[float, float]
    df: float

    @classmethod
    def of(
        cls,
        current: Stretch,
        found: Mix,
        waiting: Sequence[float],
        baseline: Baseline,
        level: Level,
        pool: Mapping[float, Prior],
    ) -> Compared:
        """Requests that wait (their ages, in seconds) are in it once they are above t₀: then they
        are slow for certain, and count with the least that they will have taken.
        """
        late = [where for where in map(cell, waiting) if where > level.cell]
        counts = found.counts
        if late:
            counts = counts + np.bincount(late, minlength=len(counts))
        cumulative, df = np.cumsum(counts), len(baseline.kept) - 1
        n, usual = float(cumulative[-1]), baseline.reached
        if found.ratio is not None:  # a ratio may rise faster than a survival falls
            usual = np.maximum.accumulate(np.maximum(0.0, 1 - (1 - usual) * found.ratio))
        return cls(
            level=level,
            cumulative=cumulative,
            n=n,
            independent=n * current.n / current.spread,
            usual=usual,
            share=min(0.5, level.share * found.at(level.cell)),
            size=_size(found, baseline, level),
            phis={one.quantile: _moderated(one, df, pool) for one in baseline.levels},
            clumps={one.quantile: max(1.0, one.phi_blocks) for one in baseline.levels},
            df=df + pool.get(level.quantile, _ALONE).df,
        )

    @property
    def phi(self) -> float:
        """The dispersion of what exceeds t₀."""
        return self.phis[self.level.quantile]

    @property
    def clump(self) -> float:
        """What of it is there within a day."""
        return self.clumps[self.level.quantile]

    def change(self, quantile: float, guard: float) -> Change:
        """How much later the hour reaches a quantile than the baseline at the mix of now, with an
        interval √φ times as wide as that of independent requests.
        """
        reach = _deviations(self.df) * math.sqrt(self.phi)
        now = between(self.cumulative, quantile, self.independent, reach)
        return change(now, between(self.usual, quantile, self.size, reach), guard)

    def usual_seconds(self, quantile: float) -> float:
        """The baseline's quantile at the mix of now."""
        return seconds_of(self.usual, quantile)


@lru_cache(maxsize=64)
def _deviations(df: float) -> float:
    return float(special.stdtrit(df, _SURE))


def _size(found: Mix, baseline: Baseline, level: Level) -> float:
    if found.ratio is None:
        return baseline.size
    return min(baseline.size, mix.size(found.weights, baseline.kinds, level.cell))


def _moderated(level: Level, df: float, pool: Mapping[float, Prior]) -> float:
    prior = pool.get(level.quantile, _ALONE)
    return dispersion.moderated(level.phi_days, level.phi_blocks, df, prior)
