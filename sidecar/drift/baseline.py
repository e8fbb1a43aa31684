"""What is usual at this hour: the same hour of the days before, without those that stand out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sidecar.drift import dispersion
from sidecar.drift.dispersion import Prior
from sidecar.drift.mix import Kinds
from sidecar.drift.options import Options
from sidecar.drift.quantiles import cell_of
from sidecar.drift.stretch import Floats, Stretch, sum_of
from sidecar.evaluation import Standing
from sidecar.loghist import OVER

Dropped = tuple[tuple[str, str], ...]
_DEFAULTS = Options()
_DAY_SHARE = 0.25  # of the requests that an hour needs for a quantile, a day of several needs
_NORMAL = 1.4826  # a standard deviation of the normal distribution, in median absolute deviations
FEW = "too few requests"
CONTAMINATED = "more slow requests than on the other days"


@dataclass(frozen=True, slots=True)
class Level:
    """One quantile. ``cell``'s upper bound is t₀, the median of the days' quantiles; a share of
    ``share`` lies above it. ``minimum`` requests let an hour be judged by it.
    """

    quantile: float
    minimum: int
    cell: int
    share: float
    phi_days: float
    phi_blocks: float

    @property
    def phi(self) -> float:
        """The dispersion before it is moderated; at least 1."""
        return max(1.0, self.phi_days, self.phi_blocks)


@dataclass(frozen=True, slots=True)
class Lacking:
    """Why there is no baseline."""

    standing: Standing
    why: str
    kept: tuple[str, ...] = ()
    dropped: Dropped = ()


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Of one series and hour, to be kept as long as that hour is judged.

    ``cumulative`` (CELLS,) counts requests up to and with each cell over the days in ``kept``,
    ``size`` of them independent; ``reached`` (CELLS,) is the same as a share.
    """

    n: float
    size: float
    cumulative: Floats
    reached: Floats
    kinds: Kinds
    levels: tuple[Level, ...]
    kept: tuple[str, ...]
    dropped: Dropped

    @classmethod
    def of(cls, days: Mapping[str, Stretch], options: Options) -> Baseline | Lacking:
        """Of stretches by date, or why they make no baseline. An empty day is none."""
        needed = _DAY_SHARE * min(minimum for _, minimum in options.quantiles)
        usable = {date: day for date, day in sorted(days.items()) if day.n >= needed}
        few: Dropped = tuple((date, FEW) for date in sorted(days) if date not in usable)
        if len(usable) < options.keep_days:
            why = f"{len(usable)} of {options.keep_days} days are known"
            return Lacking(Standing.WARMING, why, tuple(usable), few)
        contaminated = _contaminated(usable, options)
        kept = {date: day for date, day in usable.items() if date not in contaminated}
        dropped = tuple(sorted((*few, *((date, CONTAMINATED) for date in contaminated))))
        pooled = sum_of(list(kept.values()))
        levels = _levels(list(kept.values()), pooled, options)
        if not levels:
            if not _is_over(usable, options):
                return Lacking(
                    Standing.INSUFFICIENT, "the days before have too few", tuple(kept), dropped
                )
            why = "on the days before too many requests failed or took longer than is measured"
            return Lacking(Standing.BEYOND, why, tuple(kept), dropped)
        cumulative = np.cumsum(pooled.counts)
        return cls(
            n=pooled.n,
            size=pooled.size,
            cumulative=cumulative,
            reached=cumulative / cumulative[-1],
            kinds=Kinds.of(pooled, options.known_requests),
            levels=levels,
            kept=tuple(kept),
            dropped=dropped,
        )

    def level(self, n: float) -> Level | None:
        """The highest quantile that so many requests can be judged by."""
        return next((level for level in self.levels if n >= level.minimum), None)


def pool(baselines: Iterable[Baseline], options: Options = _DEFAULTS) -> dict[float, Prior]:
    """The usual dispersion at each quantile, over the series of a round: what each is shrunk to."""
    found: dict[float, list[float]] = defaultdict(list)
    for baseline in baselines:
        for level in baseline.levels:
            found[level.quantile].append(level.phi)
    df = options.keep_days - 1  # of the one with the fewest days
    return {quantile: Prior.of(values, df, options.prior_df) for quantile, values in found.items()}


def _levels(days: list[Stretch], pooled: Stretch, options: Options) -> tuple[Level, ...]:
    found = []
    for quantile, minimum in options.quantiles:
        cell = _threshold(days, quantile, minimum, options)
        if cell is None or cell == OVER:
            continue
        above = float(pooled.counts[cell + 1 :].sum())
        # Where a cell holds all there is none lies above: as a share that is less than one in all.
        share = max(above, 0.5) / pooled.n
        level = Level(
            quantile,
            minimum,
            cell,
            share,
            dispersion.across_days(days, cell, share),
            dispersion.across_blocks(pooled, cell),
        )
        found.append(level)
    return tuple(found)


def _threshold(days: list[Stretch], quantile: float, minimum: int, options: Options) -> int | None:
    """The cell of the median of the days' quantiles; None when too few days know it."""
    cells = [
        cell_of(np.cumsum(day.counts), quantile) for day in days if day.n >= _DAY_SHARE * minimum
    ]
    return sorted(cells)[len(cells) // 2] if len(cells) >= options.keep_days else None


def _is_over(days: Mapping[str, Stretch], options: Options) -> bool:
    found = [_threshold(list(days.values()), q, least, options) for q, least in options.quantiles]
    return OVER in found


def _contaminated(days: Mapping[str, Stretch], options: Options) -> tuple[str, ...]:
    """Dates on which more lay above t₀ than chance and the other days explain, the worst first, as
    many as leave enough days.

    A robust standard deviation of a few days can be anything down to 0, so it is at least that of
    independent requests.
    """
    listed = list(days.values())
    found = (_threshold(listed, q, minimum, options) for q, minimum in options.quantiles)
    cell = next((cell for cell in found if cell is not None and cell != OVER), None)
    if cell is None:
        return ()
    sums = np.array([(day.counts[cell + 1 :].sum(), day.n, day.size) for day in listed])
    share = sums[:, 0] / sums[:, 1]
    middle = float(np.median(share))
    expected = max(middle, 1.0 / float(sums[:, 2].sum()))
    chance = np.sqrt(expected * (1 - expected) / sums[:, 2])
    robust = _NORMAL * float(np.median(np.abs(share - middle)))
    distance = (share - middle) / np.maximum(robust, chance)
    dates, room = list(days), len(days) - options.keep_days
    worst = [int(i) for i in np.argsort(-distance) if distance[i] > options.outlier_sd]
    return tuple(dates[i] for i in worst[: max(0, room)])
