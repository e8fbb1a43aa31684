"""Do more requests exceed the usual quantile than clumping, chance and the mix explain?

One-sided: fewer never alarm. It sees a few per cent of slow requests that a test of whole
distributions does not, and is blind to what happens above t₀ (:mod:`sidecar.drift.shape` is not).
"""

from __future__ import annotations

import numpy as np
from scipy import special

from sidecar import loghist
from sidecar.drift.compared import Compared
from sidecar.drift.dispersion import deviations
from sidecar.drift.quantiles import seconds_of
from sidecar.evaluation import Tail

_LEAST_CLUMPS = 5.0  # expected ones, for a normal distribution to come near


def judge(compared: Compared, guard: float) -> Tail:
    """With z = (k − np) / √(φ p(1−p)(n + n²/M)), and p from Student's t.

    That is z where blocks within a day vary as days do; days that differ more vary by factors (see
    :func:`sidecar.drift.dispersion.deviations`), and z is less. The variance is at least that of
    five clumps of φ requests: of fewer, one by chance would be many standard deviations.
    """
    level, n, share, phi = compared.level, compared.n, compared.share, compared.phi
    exceeding = n - float(compared.cumulative[level.cell])
    requests, whole = (_variance(compared, one) for one in (compared.clump, phi))
    z = float(deviations(*np.array([exceeding, n * share, requests, whole - requests])))
    p = float(special.stdtr(compared.df, -z))
    change = compared.change(level.quantile, guard)
    return Tail(
        quantile=level.quantile,
        seconds=seconds_of(compared.cumulative, level.quantile),
        threshold=loghist.upper(level.cell),
        n=round(n),
        exceeding=round(exceeding),
        expected=n * share,
        phi=phi,
        z=z,
        p=p,
        q=p,
        change=change,
        drifts=False,
    )


def _variance(compared: Compared, phi: float) -> float:
    n, share = compared.n, compared.share
    independent = share * (1 - share) * n * n * (1 / compared.independent + 1 / compared.size)
    return phi * max(independent, _LEAST_CLUMPS * phi)


def less(z: float, df: float) -> float:
    """The p-value of fewer exceedances than expected: what improvement is stated by."""
    return float(special.stdtr(df, z))
