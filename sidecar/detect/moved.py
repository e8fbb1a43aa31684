"""A firing alarm on a rate whose load is now where no baseline is known.

A slow engine makes requests pile up, so a fault may itself have moved the load: learning there at
once would call the fault normal. But load that grew for good would leave the alarm on evidence that
nobody will ever renew. So levels of fewer at once judge what they can, nothing is learned while the
alarm fires, and without new evidence it ends, unproven, after an hour of such minutes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from sidecar.detect.inputs import Side
from sidecar.detect.level import Level
from sidecar.detect.minutes import Minute
from sidecar.detect.runrule import band

# The mean that a bin was learned at and the one it is compared with lie up to a quarter octave off
# their bins' middles, each in its own direction.
_BINS = math.sqrt(2)


@dataclass(slots=True)
class Moved:
    """The latest evidence of a series, and for how many active minutes there has been none:
    minutes of a concurrency without a baseline, on which no other one's has a word.
    """

    STATE: ClassVar[tuple[str, ...]] = ("at", "concurrency", "side", "minutes")

    patience: int = 60
    at: float | None = None
    concurrency: int = 0
    side: Side | None = None
    minutes: int = 0

    def see(self, minute: Minute, side: Side) -> None:
        """A minute outside of its baseline: this is what an alarm now rests on."""
        self.at, self.concurrency, self.side, self.minutes = (
            minute.at,
            minute.concurrency,
            side,
            0,
        )

    def miss(self) -> bool:
        """A minute that nothing can judge; whether the evidence is to be given up by it."""
        self.minutes += 1
        return self.minutes >= self.patience


@dataclass(frozen=True, slots=True)
class Fewer:
    """The nearest known level of fewer at once, which has a word on two ends of what may be:

    * As fast as fewer usually are is fast enough: more at once make no sequence faster.
    * A share is not slower than it has to be: more at once make no fewer tokens together.

    Between these load alone may explain the rate, or not. It never begins an alarm: only one that
    fires already is kept or ended by it.
    """

    concurrency: int
    level: Level

    def judge(self, minute: Minute, rate: float, sigmas: float) -> tuple[bool | None, bool | None]:
        """Whether the rate is below the band, and whether it has moved below the mean; None where
        that cannot be said.
        """
        lower, _ = band(self.level.mean, self.level.sigma, sigmas)
        if rate < lower * self.concurrency / (minute.concurrency * _BINS):
            return True, True
        return False if rate >= lower else None, False if rate >= self.level.mean else None
