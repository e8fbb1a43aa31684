"""The baseline of a rate: what it usually is and how much it spreads, kept clean of faults.

A plain moving average learns a fault within minutes and calls it normal: with λ 0.1 it saw a fall
of 5 σ in 3 % of trials. This one learns slowly, late, and in quiet times alone.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from sidecar.detect import inputs
from sidecar.verdicts import AlarmState

_MAD = 1.4826  # σ of a normal distribution over its median absolute deviation
_WAITING = 1_024
_OPEN = (AlarmState.INACTIVE, AlarmState.RESOLVED)


@cache
def winsorised(clip: float) -> float:
    """The variance of N(0, 1) with tails laid on ±c: 2Φ − 1 − 2cφ + 2c²(1 − Φ), 0.9776 of 2.5."""
    c = min(clip, 30.0)
    return trimmed(c) * (1 - _tails(c)) + c * c * _tails(c)


@cache
def trimmed(clip: float) -> float:
    """The variance of N(0, 1) without its tails beyond ±c: 1 − 2cφ / (2Φ − 1), 0.9113 of 2.5."""
    c = min(clip, 30.0)
    density = math.exp(-c * c / 2) / math.sqrt(2 * math.pi)
    return 1 - 2 * c * density / (1 - _tails(c))


def _tails(c: float) -> float:
    return math.erfc(c / math.sqrt(2))


@dataclass(frozen=True, slots=True)
class Entered:
    """A value that became part of the baseline, by how many σ it lay off, and when it was."""

    at: float
    residual: float


@dataclass(slots=True)
class Level:
    """An exponentially weighted mean and σ of active minutes (values, not time).

    * Weight halves in ``half_life`` values; an idle night forgets nothing.
    * Values are winsorised at ``clip`` σ (Tukey, "The future of data analysis", Annals of
      Mathematical Statistics 33, 1962), and what that takes from the variance is given back.
    * A value enters when it is ``quarantine_seconds`` old: a fault is noticed before it is learned.
      While an alarm is pending nothing enters; when it fires, what waits is dropped.
    * The first ``start`` values are taken together, without those more than ``clip`` robust σ (MAD)
      from their median. Until then nothing can be judged, so nothing waits.
    * ``sigma`` is at least ``floor`` of the mean: a fall of 5 % is no incident however steady the
      rate was (field case 35 B).

    ``ready`` needs ``minimum`` values: σ is known to 1/√(2n), 9 % of 60, which moves the band's
    edge by a quarter σ; ``./run bench detectors`` has the first day's alarms.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        *("mean", "variance", "weight", "entered", "dropped", "waiting", "last", "alarm"),
    )

    half_life: float = 1440.0
    start: int = 60
    minimum: int = 60
    quarantine_seconds: float = 3600.0
    clip: float = 2.5
    floor: float = 0.05
    ceiling: float = inputs.CEILING
    mean: float = 0.0
    variance: float = 0.0  # of winsorised values
    weight: float = 0.0
    entered: int = 0
    dropped: int = 0
    waiting: list[tuple[float, float]] = field(default_factory=list)
    last: float | None = None
    alarm: AlarmState = AlarmState.INACTIVE

    def __post_init__(self) -> None:
        figures = (self.mean, self.variance, self.weight, self.entered, self.dropped)
        if min(figures) < 0 or min(self.half_life, self.clip) <= 0 or self.start < 2:
            raise ValueError("a level cannot be like that")

    @classmethod
    def known(cls, mean: float, sigma: float, entered: int = 1440) -> Level:
        """One that starts from a calibrated table, as if ``entered`` values had made it. Its σ is
        what somebody decided on, and has no floor.
        """
        if not (0 < sigma < math.inf and 0 <= mean < math.inf and entered > 0):
            raise ValueError(f"no baseline: mean {mean}, sigma {sigma} of {entered} values")
        level = cls(mean=mean, entered=entered, floor=0.0)
        level.variance = sigma**2 * winsorised(level.clip)
        level.minimum = min(level.minimum, entered)
        level.weight = (1 - level._kept**entered) / (1 - level._kept)
        return level

    @property
    def sigma(self) -> float:
        """The standard deviation, winsorising undone, at least ``floor`` of the mean."""
        return max(math.sqrt(self.variance / winsorised(self.clip)), self.floor * self.mean)

    @property
    def size(self) -> float:
        """How many equal values would know the mean as well: (Σw)²/Σw², 4,155 when settled."""
        kept = self._kept
        return self.weight * (1 + kept) / (2 - self.weight * (1 - kept))

    @property
    def ready(self) -> bool:
        """Whether there is a baseline to judge by."""
        return self.weight > 0 and self.entered >= self.minimum and self.sigma > 0

    def offer(self, at: float, value: float, now: float | None = None) -> tuple[Entered, ...]:
        """Takes the value of one active minute into quarantine; what entered in its place.

        Raises :class:`~sidecar.detect.inputs.Refused` and is then as it was.
        """
        value = inputs.reading(value, self.ceiling)
        at = inputs.moment(at, self.last, now)
        if inputs.believed(self.last, now) is None:
            self.waiting.clear()  # their times are of a clock that was wrong
        self.last = at
        if self.alarm is AlarmState.FIRING or len(self.waiting) >= _WAITING:
            self.dropped += 1
        else:
            self.waiting.append((at, value))
        return self.settle(at) if self.weight else self._begin()

    def settle(self, at: float) -> tuple[Entered, ...]:
        """Lets in what has waited long enough by ``at``; for moments without a value of its own."""
        if self.alarm not in _OPEN or not self.weight:
            return ()
        due = 0
        while due < len(self.waiting) and self.waiting[due][0] <= at - self.quarantine_seconds:
            due += 1
        entered = tuple(self._enter(*waited) for waited in self.waiting[:due])
        del self.waiting[:due]
        return entered

    def follow(self, alarm: AlarmState, at: float | None = None) -> None:
        """Says how the alarm on this baseline stands, as often as one likes. With the time, what is
        older than the quarantine when it fires is kept: first values of a load seen now and then.
        """
        self.alarm = alarm
        if alarm is AlarmState.FIRING:
            latest = -math.inf if at is None else at - self.quarantine_seconds
            kept = [waited for waited in self.waiting if waited[0] <= latest]
            self.dropped += len(self.waiting) - len(kept)
            self.waiting = kept

    def rebase(self) -> None:
        """Starts anew, after a deploy or on an operator's word."""
        self.mean = self.variance = self.weight = 0.0
        self.entered = 0
        self.waiting.clear()

    @property
    def _kept(self) -> float:
        return float(0.5 ** (1 / self.half_life))

    def _enter(self, at: float, value: float) -> Entered:
        sigma = self.sigma
        residual = (value - self.mean) / sigma if sigma else 0.0
        bound = self.clip * sigma if sigma else math.inf
        off = min(bound, max(-bound, value - self.mean))
        self.weight = self.weight * self._kept + 1
        before = self.mean
        self.mean += off / self.weight
        self.variance += (off * (before + off - self.mean) - self.variance) / self.weight
        self.entered += 1
        return Entered(at, residual)

    def _begin(self) -> tuple[Entered, ...]:
        """The robust start, once enough values are there."""
        if self.alarm not in _OPEN or len(self.waiting) < self.start:
            return ()
        values = [value for _, value in self.waiting]
        middle = statistics.median(values)
        # More than half of the values may be equal: then there is nothing to trim by.
        spread = _MAD * statistics.median(abs(value - middle) for value in values)
        bound = self.clip * spread if spread else math.inf
        clean = [value for value in values if abs(value - middle) <= bound]
        # Kept as of winsorised values, which is what later ones are.
        factor = winsorised(self.clip) / trimmed(self.clip) if spread else 1.0
        self.mean, self.variance = statistics.fmean(clean), factor * statistics.variance(clean)
        self.weight, self.entered = float(len(values)), len(values)
        sigma = self.sigma or 1.0
        entered = tuple(Entered(at, (value - self.mean) / sigma) for at, value in self.waiting)
        self.waiting.clear()
        return entered
