"""The EWMA control chart, which sees small lasting shifts, and the autocorrelation it has to know.

Roberts, "Control chart tests based on geometric moving averages", Technometrics 1 (1959); Lucas and
Saccucci, "Exponentially weighted moving average control schemes", Technometrics 32 (1990).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from sidecar.detect import inputs
from sidecar.detect.inputs import Side

MAX_RHO = 0.9  # beyond it a series wanders: no chart of its level means anything
_CAP = 10.0  # of one standardised value: a single wild one is forgotten within minutes
# An estimated ρ makes more false alarms where it is too small than it spares where it is too large:
# their logarithm falls by L²(1−λ) for each unit of ρ, 14, and ρ̂ spreads by 1/√n. 14/2n makes up.
_MARGIN = 7.0
_NOISE = 2.0  # by how many standard errors an estimate lies below zero by chance


@dataclass(frozen=True, slots=True)
class Point:
    """Where the chart is: ``z`` in standard deviations of the average, ``side`` where it is beyond
    the limit, None within.
    """

    z: float
    side: Side | None


def correction(lam: float, rho: float) -> float:
    """By how much the average spreads more when neighbours correlate by ``rho``.

    √((1 + ρ(1−λ)) / (1 − ρ(1−λ))): the asymptotic σ_z of an AR(1) process over that of independent
    values (Schmid, "On EWMA charts for time series", Frontiers in SQC 5, 1997).
    """
    carried = rho * (1 - lam)
    return math.sqrt((1 + carried) / (1 - carried))


@dataclass(slots=True)
class Chart:
    """E = λu + (1−λ)E of u = (x − mean) / σ, and z = E / σ_z with σ_z = √(λ / (2−λ)).

    With a constant baseline this is the published chart; standardising first lets every value be
    judged by the baseline of its own concurrency. The default, λ 0.2 and L 4.19, raises one false
    alarm in 30 days of minutes and sees 1, 2, 3 σ after 31.7, 6.1, 3.4 (:mod:`sidecar.detect.arl`).

    σ_z is the asymptotic one: its limits are what the published run lengths are for, and a chart
    that runs for weeks starts once. ``exact`` takes σ_z√(1 − (1−λ)^2t) instead, which is narrower
    for the first dozen values: for charts that start anew often and may start in a fault.

    An alarm changes nothing: the chart goes on, and leaves the alarm when the values do. Values are
    rates or durations and never negative. Charts are independent: two may be fed the same points.
    """

    STATE: ClassVar[tuple[str, ...]] = ("average", "rest", "last")

    lam: float = 0.2
    limit: float = 4.19
    exact: bool = False
    ceiling: float = inputs.CEILING
    average: float = 0.0
    rest: float = 1.0  # (1−λ)^2t
    last: float | None = None

    def __post_init__(self) -> None:
        if not (0 < self.lam <= 1 and self.limit > 0):
            raise ValueError(f"no chart has λ {self.lam} and L {self.limit}")

    def update(
        self,
        x: float,
        mean: float,
        sigma: float,
        rho: float = 0.0,
        *,
        size: float = math.inf,
        at: float | None = None,
    ) -> Point:
        """Takes in one value and says where the chart is now.

        ``rho`` is the autocorrelation of neighbouring values, clipped to ±0.9; ``size`` how
        many values made the baseline, whose own error widens the limits: var z = λ/(2−λ)·c² +
        (1+ρ)/((1−ρ)·size). ``at``, if given, has to move on. Raises
        :class:`~sidecar.detect.inputs.Refused`, and ValueError of a baseline that is none.
        """
        x = inputs.reading(x, self.ceiling)
        if at is not None:
            at = inputs.moment(at, self.last)
        if not (0 < sigma < math.inf and abs(mean) < math.inf):
            raise ValueError(f"no baseline: mean {mean}, sigma {sigma}")
        self.last = self.last if at is None else at
        u = min(_CAP, max(-_CAP, (x - mean) / sigma))
        self.average += self.lam * (u - self.average)
        self.rest *= (1 - self.lam) ** 2
        rho = min(MAX_RHO, max(-MAX_RHO, rho))
        variance = self.lam / (2 - self.lam) * (1 - self.rest if self.exact else 1.0)
        variance *= correction(self.lam, rho) ** 2
        variance += (1 + rho) / (1 - rho) / size  # the mean's own
        z = self.average / math.sqrt(variance)
        if abs(z) <= self.limit:
            return Point(z, None)
        return Point(z, Side.HIGH if z > 0 else Side.LOW)

    def restart(self) -> None:
        """Forgets the average, for a new baseline."""
        self.average, self.rest = 0.0, 1.0


@dataclass(slots=True)
class Lag:
    """The autocorrelation of neighbouring values, from standardised residuals of a clean series.

    ρ = Σ u_t·u_(t−1) / Σ (u_t² + u_(t−1)²)/2, exponentially forgotten, over pairs one ``step``
    apart; a gap makes no pair. Residuals are clipped at ±2.5, so that one wild value is one value.
    They are taken around the baseline's mean, not their own: an error of the mean raises ρ, which
    makes a chart slower, never noisier.

    Feed it what has left quarantine (:class:`sidecar.detect.level.Level`): a fault's own values
    correlate almost perfectly and would blind the chart to it. Residuals older than the last one
    are passed over: the first ones of a new concurrency come late and together. Below ``minimum``
    pairs ρ is None.
    """

    STATE: ClassVar[tuple[str, ...]] = ("square", "product", "weight", "pairs", "residual", "at")

    half_life: float = 1440.0
    minimum: int = 120
    step: float = 60.0
    square: float = 0.0
    product: float = 0.0
    weight: float = 0.0
    pairs: int = 0
    residual: float = 0.0
    at: float | None = None

    def update(self, at: float, residual: float) -> None:
        """Takes in the residual of one moment; raises :class:`~sidecar.detect.inputs.Refused`."""
        inputs.reading(abs(residual))
        inputs.moment(at, None)
        if self.at is not None and at <= self.at:
            return
        residual = min(2.5, max(-2.5, residual))
        if self.at is not None and at - self.at <= 1.5 * self.step:
            kept = 0.5 ** (1 / self.half_life)
            self.product = kept * self.product + residual * self.residual
            self.square = kept * self.square + (residual**2 + self.residual**2) / 2
            self.weight = kept * self.weight + 1
            self.pairs += 1
        self.at, self.residual = at, residual

    @property
    def rho(self) -> float | None:
        """The estimate, clipped to [0, 0.9]; None while too few pairs are known."""
        found = self._estimate
        return None if found is None else min(MAX_RHO, max(0.0, found))

    @property
    def adjusted(self) -> float | None:
        """ρ as a chart should be given it: with it the chart raises as many false alarms, on
        average over estimates, as with the true one.

        Of independent values the estimate is negative half of the time. Were that taken for zero,
        ρ would be 0.011 after a day and the chart later at every fault; so what noise alone makes,
        two standard errors, stays, and values that really alternate make it no narrower than that.
        """
        found = self._estimate
        if found is None:
            return None
        lowest = -_NOISE / math.sqrt(self.weight)
        return min(MAX_RHO, max(lowest, found) + _MARGIN / self.weight)

    @property
    def _estimate(self) -> float | None:
        if self.pairs < self.minimum or self.square <= 0:
            return None
        return self.product / self.square
