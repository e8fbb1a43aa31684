"""What counts and censored times of a campaign allow to be said: rates and times with intervals.

The only module of chaos that imports SciPy and NumPy. Intervals are two-sided, 95 %. Nothing is
estimated from nothing: no runs give the interval (0, 1) and no rate; a quantile that the runs did
not reach is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

LEVEL = 0.95
_Z = float(stats.norm.ppf(0.5 + LEVEL / 2))


@dataclass(frozen=True, slots=True)
class Interval:
    """Both bounds; ``upper`` None: the data set none."""

    lower: float
    upper: float | None


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``n``; ``rate`` is None without any, and both intervals are then (0, 1)."""

    hits: int
    n: int
    rate: float | None
    wilson: Interval
    clopper: Interval


@dataclass(frozen=True, slots=True)
class Step:
    """The share that is over after ``at`` seconds, with its pointwise interval; ``risk`` had not
    ended and were still watched just before.
    """

    at: float
    over: float
    lower: float
    upper: float
    risk: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Kaplan and Meier's estimate of how much is over by when, from 0; ``steps`` in order of time,
    one for each time at which something ended, ``censored`` the times at which watching did.
    """

    steps: tuple[Step, ...]
    censored: tuple[float, ...]

    def quantile(self, p: float) -> Quantile:
        """The first time by which a share ``p`` is over. Its interval holds the times at which the
        pointwise one holds ``p`` (Brookmeyer and Crowley, Biometrics 38, 1982, doi:10.2307/2530286,
        on the log-log scale).
        """
        reached = [step.at for step in self.steps if step.over >= p - 1e-12]
        lower = [step.at for step in self.steps if step.upper > p]
        upper = [step.at for step in self.steps if step.lower > p]
        if not self.steps:
            return Quantile(p, None, Interval(0.0, None) if self.censored else None)
        # Greenwood's interval is empty before the first end; exactly, none of n sets this bound.
        unseen = 1 - ((1 - LEVEL) / 2) ** (1 / self.steps[0].risk)
        least = 0.0 if unseen > p else min(lower, default=0.0)
        bounds = Interval(least, min(upper, default=None))
        return Quantile(p, min(reached, default=None), bounds)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile in seconds and its interval; ``seconds`` is None when the data do not reach it,
    whose interval may still have a lower bound.
    """

    p: float
    seconds: float | None
    interval: Interval | None


def share(hits: int, n: int) -> Share:
    """A rate with both intervals; ValueError when the counts cannot be."""
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no count: hits lie between 0 and n")
    rate = hits / n if n else None
    return Share(hits, n, rate, wilson(hits, n), clopper_pearson(hits, n))


def wilson(hits: int, n: int) -> Interval:
    """Wilson's score interval (J. Am. Stat. Assoc. 22, 1927, doi:10.1080/01621459.1927.10502953):
    holds the true rate about 95 % of the time, on the average over rates.
    """
    if n == 0:
        return Interval(0.0, 1.0)
    z2 = _Z * _Z
    middle = (hits + z2 / 2) / (n + z2)
    half = _Z / (n + z2) * math.sqrt(hits * (n - hits) / n + z2 / 4)
    # At the ends the bound is exact, but for rounding.
    lower = 0.0 if hits == 0 else max(0.0, middle - half)
    return Interval(lower, 1.0 if hits == n else min(1.0, middle + half))


def clopper_pearson(hits: int, n: int) -> Interval:
    """The exact interval (Biometrika 26, 1934, doi:10.1093/biomet/26.4.404): never less than 95 %,
    hence wider.
    """
    alpha = 1 - LEVEL
    lower = special.betaincinv(hits, n - hits + 1, alpha / 2) if hits else 0.0
    upper = special.betaincinv(hits + 1, n - hits, 1 - alpha / 2) if hits < n else 1.0
    return Interval(float(lower), float(upper))


def kaplan_meier(ended: Sequence[float], censored: Sequence[float] = ()) -> Curve:
    """The curve of times that ended and of those that were watched so long and had not.

    Greenwood's variance, the interval on the log-log scale, which stays within 0 and 1 (Kalbfleisch
    and Prentice 1980). Who is censored just when another ends counts as still watched then. After
    the last of all has ended Greenwood's variance is none; that step keeps the interval from the
    one before up to 1. ValueError for times that are negative or not finite.
    """
    times = np.asarray(ended, dtype=float)
    cut = np.asarray(censored, dtype=float)
    every = np.concatenate([times, cut])
    if every.size and not (np.isfinite(every).all() and (every >= 0).all()):
        raise ValueError("times to an event are finite seconds from 0 on")
    left, spread, before = 1.0, 0.0, 0.0
    steps: list[Step] = []
    for at, deaths in zip(*np.unique(times, return_counts=True), strict=True):
        risk = int((every >= at).sum())
        d = int(deaths)
        left *= 1 - d / risk
        lower, upper = before, 1.0
        if d < risk:
            spread += d / (risk * (risk - d))
            lower, upper = _over(left, spread)
        else:
            left = 0.0
        before = lower
        steps.append(Step(float(at), 1 - left, lower, upper, risk))
    return Curve(tuple(steps), tuple(sorted(float(at) for at in cut)))


def _over(left: float, spread: float) -> tuple[float, float]:
    """The interval of the share that is over, from that of log(-log(share that is left))."""
    width = _Z * math.sqrt(spread) / -math.log(left)
    return 1 - left ** math.exp(-width), 1 - left ** math.exp(width)


def quantile(values: Sequence[float], p: float) -> Quantile:
    """The smallest value that at least a share ``p`` does not exceed, and the exact interval
    between two order statistics (Hahn and Meeker, Statistical Intervals, 1991, section 5.2): free
    of any distribution, at least 95 %. Infinity stands for what never came. Few values set no
    lower bound but 0, and no upper one at all.
    """
    n = len(values)
    if n == 0:
        return Quantile(p, None, None)
    ordered = sorted(values)
    found = ordered[min(n - 1, max(0, math.ceil(p * n - 1e-9) - 1))]
    alpha = 1 - LEVEL
    # P(X_(r) > the quantile) = P(Binomial(n, p) < r); the largest r and least s within alpha / 2.
    below = np.flatnonzero(stats.binom.cdf(np.arange(n), n, p) <= alpha / 2)
    above = np.flatnonzero(stats.binom.sf(np.arange(n), n, p) <= alpha / 2)
    lower = ordered[int(below[-1])] if below.size else 0.0
    upper = ordered[int(above[0])] if above.size else math.inf
    if math.isinf(lower):  # then it lies beyond all that came
        lower = max((value for value in values if math.isfinite(value)), default=0.0)
    bounds = Interval(lower, None if math.isinf(upper) else upper)
    return Quantile(p, None if math.isinf(found) else found, bounds)


def mean_count(count: int, n: float) -> Interval:
    """The exact interval of events per unit when ``count`` were seen in ``n`` units (Garwood,
    Biometrika 28, 1936, doi:10.1093/biomet/28.3-4.437); no units set no upper bound.
    """
    if n <= 0:
        return Interval(0.0, None)
    alpha = 1 - LEVEL
    lower = float(special.gammaincinv(count, alpha / 2)) if count else 0.0
    return Interval(lower / n, float(special.gammaincinv(count + 1, 1 - alpha / 2)) / n)


def difference(first: tuple[int, int], second: tuple[int, int]) -> float | None:
    """The two-sided P value that two rates, (hits, n) each, are one: Fisher's exact test; None when
    one of them has no runs.
    """
    table = np.array([[hits, n - hits] for hits, n in (first, second)])
    if not first[1] or not second[1]:
        return None
    return float(stats.fisher_exact(table).pvalue)
