"""What is usual at this hour by an engine's own buckets, and where the hour is compared with it.

Counts above a bound are exact, so that a test at a bound is a valid one. The level moves to the
bound next above the usual P99: what lies above it is not one in a hundred but what it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sidecar.bucketed import Bucketed, Interval, merged
from sidecar.drift.baseline import CONTAMINATED, FEW, Lacking
from sidecar.drift.options import Options
from sidecar.evaluation import Standing

OTHER_BOUNDS = "its buckets had other bounds"
LEAST = 5.0  # expected exceedances, for a normal distribution to come near
_DAY_SHARE = 0.25  # of the requests that an hour needs for a quantile, a day of several needs
_NORMAL = 1.4826  # a standard deviation of the normal distribution, in median absolute deviations
Slots = Sequence[Bucketed]  # what each slot of five minutes held, those without requests left out
Days = Mapping[str, Bucketed]


@dataclass(frozen=True, slots=True)
class Usual:
    """The hour (``now``) and the kept days (``before``), on the bounds that both have, and where
    their quantiles lie (``here`` and ``usual``). ``bound`` is the one next above that of the days;
    a share of ``share`` of these lies above it.
    """

    now: Bucketed
    before: Bucketed
    quantile: float
    here: Interval
    usual: Interval
    bound: float
    share: float
    phi_days: float
    phi_slots: float
    kept: tuple[str, ...]
    dropped: tuple[tuple[str, str], ...]

    @property
    def df(self) -> int:
        """Degrees of freedom of the days."""
        return len(self.kept) - 1

    @property
    def phi(self) -> float:
        """The dispersion before it is moderated."""
        return max(1.0, self.phi_days, self.phi_slots)


def compare(now: Bucketed, days: Mapping[str, Slots], options: Options) -> Usual | Lacking:
    """Of the hour and the slots of the days by date, or why they cannot be compared."""
    known, dropped = _known(now, days, options)
    if len(known) < options.keep_days:
        why = f"{len(known)} of {options.keep_days} days are known"
        return Lacking(Standing.WARMING, why, tuple(known), dropped)
    bounds = set(now.bounds).intersection(*(day.bounds for day in known.values()))
    known = {date: day.on(bounds) for date, day in known.items()}
    quantile = _quantile(now, known, options)
    if quantile is None:
        why = f"{now.n} requests are too few"
        return Lacking(Standing.INSUFFICIENT, why, tuple(known), dropped)
    bad = _contaminated(known, quantile, options)
    kept = {date: day for date, day in known.items() if date not in bad}
    dropped = tuple(sorted((*dropped, *((date, CONTAMINATED) for date in bad))))
    before = merged(kept.values())
    now = now.on(bounds)
    here, usual = now.quantile(quantile), before.quantile(quantile) if before else None
    if before is None or here is None or usual is None or usual.upper == math.inf:
        why = f"its usual P{100 * quantile:g} is above the last of their bounds, more are needed"
        if not bounds:
            why = "there are none, or none as on the days before"
        return Lacking(Standing.UNRESOLVED, why, tuple(kept), dropped)
    share = max(before.above(usual.upper), 0.5) / before.n
    slots = [one.on(bounds) for date in kept for one in days[date] if one.n]
    return Usual(
        now=now,
        before=before,
        quantile=quantile,
        here=here,
        usual=usual,
        bound=usual.upper,
        share=share,
        phi_days=_dispersion(list(kept.values()), usual.upper, share),
        phi_slots=_dispersion(slots, usual.upper, share),
        kept=tuple(kept),
        dropped=dropped,
    )


def _known(
    now: Bucketed, days: Mapping[str, Slots], options: Options
) -> tuple[dict[str, Bucketed], tuple[tuple[str, str], ...]]:
    """Days with enough requests, those with the bounds of now alone where they are enough."""
    needed = _DAY_SHARE * min(minimum for _, minimum in options.quantiles)
    sums = {date: merged(slots) for date, slots in sorted(days.items())}
    known = {date: day for date, day in sums.items() if day is not None and day.n >= needed}
    dropped = [(date, FEW) for date in sums if date not in known]
    same = {date: day for date, day in known.items() if set(now.bounds) <= set(day.bounds)}
    if len(same) >= options.keep_days:
        dropped += [(date, OTHER_BOUNDS) for date in known if date not in same]
        known = same
    return known, tuple(sorted(dropped))


def _quantile(now: Bucketed, days: Days, options: Options) -> float | None:
    """The highest one that the hour, and enough days, have requests enough for."""
    for quantile, minimum in options.quantiles:
        enough = sum(day.n >= _DAY_SHARE * minimum for day in days.values())
        if now.n >= minimum and enough >= options.keep_days:
            return quantile
    return None


def _contaminated(days: Days, quantile: float, options: Options) -> tuple[str, ...]:
    """Dates on which more lay above the median of the days' bounds than chance and the other days
    explain, the worst first, as many as leave enough days.
    """
    uppers = sorted(found.upper for day in days.values() if (found := day.quantile(quantile)))
    bound = uppers[len(uppers) // 2]
    if bound == math.inf:
        return ()
    n = np.array([day.n for day in days.values()])
    share = np.array([day.above(bound) for day in days.values()]) / n
    middle = float(np.median(share))
    # The bound may be far above the quantile: of the few there, a handful more is no news.
    chance = np.sqrt(np.maximum(middle * (1 - middle) * n, LEAST)) / n
    robust = _NORMAL * float(np.median(np.abs(share - middle)))
    distance = (share - middle) / np.maximum(robust, chance)
    dates, room = list(days), len(days) - options.keep_days
    worst = [int(i) for i in np.argsort(-distance) if distance[i] > options.outlier_sd]
    return tuple(dates[i] for i in worst[: max(0, room)])


def _dispersion(parts: Sequence[Bucketed], bound: float, share: float) -> float:
    """Pearson's, of the counts above a bound; 1 where nothing can be said."""
    if len(parts) < 2:
        return 1.0
    n = np.array([part.n for part in parts], dtype=np.float64)
    above = np.array([part.above(bound) for part in parts])
    squares = (above - n * share) ** 2 / (n * share * (1 - share))
    return float(squares.sum()) / (len(parts) - 1)
