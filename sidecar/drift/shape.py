"""Is the tail further out than it was, wherever in it? A Kolmogorov-Smirnov statistic of the tail.

The greatest standardised difference over the pooled ranks .9 to .999 (Canner, "A simulation study
of one- and two-sample Kolmogorov-Smirnov statistics with a particular weight function", JASA 70,
1975). It sees the top per cent alone move, which exceedances of a P99 cannot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import special

from sidecar.drift.compared import Compared
from sidecar.drift.dispersion import deviations
from sidecar.drift.options import Options
from sidecar.drift.stretch import Floats
from sidecar.evaluation import Shape

_LEAST = 3.6  # requests of the hour expected above the highest rank: .999 of an hour with 3,600
# The ranks are worth so many looks at independent differences: what p is by simulation, for hours
# of 600 to 20,000 requests and baselines of 3 to 30 days; it is never too small from 2 to 5.
_LOOKS = 10.0


def judge(compared: Compared, signal: str, options: Options) -> Shape:
    """The statistic, its p, and the change of the quantile that it points to."""
    value, rank = _statistic(compared, options)
    p = min(1.0, _LOOKS * float(special.stdtr(compared.df, -value)))
    guard = options.guard(signal, compared.usual_seconds(rank))
    return Shape(
        value=value, rank=rank, p=p, q=p, change=compared.change(rank, guard), drifts=False
    )


def _statistic(compared: Compared, options: Options) -> tuple[float, float]:
    """Its value, and the pooled rank at which it is reached."""
    low, high = options.shape_ranks
    n, m = compared.independent, compared.size
    reached = compared.cumulative / compared.n
    both = (n * reached + m * compared.usual) / (n + m)
    high = min(high, 1 - _LEAST / compared.n)
    first, last = (int(both.searchsorted(rank)) for rank in (low, high + 1e-12))
    if first >= last:
        return 0.0, low
    part = slice(first, last)
    ranks = both[part]
    varies = ranks * (1 - ranks) * (1 / n + 1 / m)
    logs = np.log(1 - ranks)
    clumps, phis = _at(logs, compared.clumps), _at(logs, compared.phis)
    expected = np.maximum(1 - compared.usual[part], 0.5 / m)
    values = deviations(1 - reached[part], expected, varies * clumps, varies * (phis - clumps))
    where = int(np.argmax(values))
    return float(values[where]), float(ranks[where])


def _at(logs: Floats, phis: Mapping[float, float]) -> Floats:
    """The dispersion where shares with such logarithms lie above: days that differ disperse large
    counts more than small ones, and that of the highest quantile is too small for lower ones.
    """
    rising = sorted(phis, reverse=True)
    known = [math.log(1 - quantile) for quantile in rising]
    found: Floats = np.interp(logs, known, [phis[q] for q in rising])
    return found
