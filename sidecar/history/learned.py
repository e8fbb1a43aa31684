"""What was learned of one load, and how well it is known: rows of a calibrated table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from sidecar.detect.ewma import Lag
from sidecar.detect.inputs import Refused
from sidecar.detect.level import Level
from sidecar.detect.minutes import Minute
from sidecar.detect.runrule import band
from sidecar.verdicts import AlarmState

SIGMAS = 2.5
_Z = 1.96  # 95 %
_FEWEST_PAIRS = 30


@dataclass(frozen=True, slots=True)
class Row:
    """One level. ``minutes`` made it; ``left_out`` were of an alarm. ``mean_off`` and ``sigma_off``
    are half of the 95 % interval of each, ``rho`` the autocorrelation of neighbouring minutes that
    they allow for, ``replicas`` how many were put together.
    """

    model: str
    gpu: str
    source: str
    concurrency: int
    mean: float
    sigma: float
    minutes: int
    left_out: int
    mean_off: float
    sigma_off: float
    rho: float
    replicas: int

    @property
    def lower(self) -> float:
        """Below this for three minutes it alarms."""
        return band(self.mean, self.sigma, SIGMAS)[0]


@dataclass(slots=True)
class Learned:
    """One series at one concurrency."""

    level: Level = field(default_factory=Level)
    lag: Lag = field(default_factory=lambda: Lag(minimum=_FEWEST_PAIRS))
    seen: int = 0

    def offer(self, minute: Minute, rate: float, state: AlarmState) -> None:
        """Takes in one active minute, while the alarm on its series stands so."""
        self.seen += 1
        self.level.follow(state, minute.at)
        try:
            entered = self.level.offer(minute.at, rate)
            for one in entered:
                self.lag.update(one.at, one.residual)
        except Refused:
            return

    def close(self, state: AlarmState) -> None:
        """Lets in what is still in quarantine, unless an alarm is on."""
        self.level.follow(state)
        for one in self.level.settle(math.inf):
            self.lag.update(one.at, one.residual)


def pooled(model: str, gpu: str, source: str, concurrency: int, known: Sequence[Learned]) -> Row:
    """Replicas as one: their variances and the one between them."""
    n = sum(one.level.entered for one in known)
    mean = sum(one.level.entered * one.level.mean for one in known) / n if n else 0.0
    variance = sum(
        one.level.entered * (one.level.sigma**2 + (one.level.mean - mean) ** 2) for one in known
    )
    sigma = math.sqrt(variance / n) if n else 0.0
    parts = [(one.level.entered / n, *_errors(one)) for one in known]
    return Row(
        model,
        gpu,
        source,
        concurrency,
        mean,
        sigma,
        n,
        sum(one.level.dropped for one in known),
        _Z * math.sqrt(sum((share * off) ** 2 for share, off, _ in parts)),
        _Z * math.sqrt(sum((share * off) ** 2 for share, _, off in parts)),
        max((one.lag.rho or 0.0 for one in known), default=0.0),
        len(known),
    )


def _errors(one: Learned) -> tuple[float, float]:
    """Standard errors of mean and σ of an AR(1) series: of n values it knows as much as
    n(1−ρ)/(1+ρ) independent ones of their mean, and n(1−ρ²)/(1+ρ²) of their variance.
    """
    rho, sigma, size = one.lag.rho or 0.0, one.level.sigma, max(1.0, one.level.size)
    of_mean = sigma * math.sqrt((1 + rho) / (1 - rho) / size)
    of_sigma = sigma * math.sqrt((1 + rho**2) / (1 - rho**2) / (2 * size))
    return of_mean, of_sigma
