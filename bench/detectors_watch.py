"""The rules on token rates as ``./run bench detectors`` runs them, and a naive one beside them.

The product's own detector and book of alarms judge every minute, so that what is published is of
the code that ships. Only the cutting of snapshots into minutes is left out: a minute is given, not
counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from bench.detectors_alarms import Alarms
from sidecar.alarms.book import Book
from sidecar.config import RateSettings
from sidecar.detect import minutes
from sidecar.detect.concurrency import half_octave
from sidecar.detect.minutes import Series
from sidecar.detect.rate import DOWN, OUT_OF_BAND, SHIFTED, Rate
from sidecar.detect.runrule import RunRule
from sidecar.verdicts import AlarmState, Outcome

MEAN, SIGMA = 42.6, 3.8  # Qwen2-7B's, of the specification
EITHER, NAIVE = "either ticket", "band, learns at once"
RULES = (OUT_OF_BAND.name, SHIFTED.name, EITHER, DOWN.name, NAIVE)
Minute = tuple[float, int]  # tokens per second of a sequence (NaN: idle), running requests
_WIRE = Series("wire", "", "qwen2-7b")
_TOKENS = 9_999.0


def _book() -> Book:
    return Book(max_step_seconds=1.5 * minutes.MINUTE_SECONDS)


@dataclass(slots=True)
class Watch:
    """The shipped rules on one series: ``bins`` baselines for each doubling of the running requests
    (2: half octaves, as shipped), one in all for 0.
    """

    bins: int = 2
    rate: Rate = field(default_factory=lambda: Rate(RateSettings()))
    alarms: Alarms = field(default_factory=lambda: Alarms(_book()))

    def minute(self, at: float, value: float, running: int) -> frozenset[str]:
        """The rules that fire after a minute; NaN is an idle one."""
        rate = None if math.isnan(value) else value
        found = self.rate.take(
            minutes.Minute(_WIRE, at, rate, _TOKENS, self.concurrency(running)),
        )
        # With no alarm in the book a round without a FAIL changes nothing, and nothing is heeded.
        if self.alarms.book.alarms() or any(v.outcome is Outcome.FAIL for v in found):
            self.alarms.take(found, at)
            self.rate.heed(self.alarms.book.alarms())
        known = self.alarms.book.alarms()
        return frozenset(alarm.rule for alarm in known if alarm.state is AlarmState.FIRING)

    def concurrency(self, running: int) -> int:
        """The bin that so many requests fall into."""
        if self.bins == 2:
            return half_octave(running)
        return int(2 ** round(math.log2(max(1, running)))) if self.bins else 1


@dataclass(slots=True)
class Naive:
    """The specified band on a plain moving average, λ 0.1, which learns every minute at once."""

    mean: float = MEAN
    variance: float = SIGMA**2
    run: RunRule = field(default_factory=RunRule)

    def minute(self, at: float, value: float) -> bool:
        """Whether it alarms after an active minute."""
        alarm = self.run.update(at, value, self.mean, math.sqrt(self.variance)).alarm
        off = value - self.mean
        self.mean += 0.1 * off
        self.variance = 0.9 * (self.variance + 0.1 * off * off)
        return alarm


@dataclass(slots=True)
class Monitor:
    """All the rules on one series; each call gives one flag for each of ``RULES``."""

    watch: Watch
    naive: Naive = field(default_factory=Naive)
    flags: tuple[bool, ...] = (False,) * len(RULES)

    def minute(self, number: int, minute: Minute) -> tuple[bool, ...]:
        """What fires after a minute."""
        value, running = minute
        at = 60.0 * number
        firing = self.watch.minute(at, value, running)
        naive = self.flags[-1] if math.isnan(value) else self.naive.minute(at, value)
        outside, shifted = OUT_OF_BAND.name in firing, SHIFTED.name in firing
        self.flags = (outside, shifted, outside or shifted, DOWN.name in firing, naive)
        return self.flags
