"""Requests one after another, and when the chart of those above t₀ alarms.

A part of ``./run bench detectors``. One request a second, of which 1 % lie above t₀ while nothing
is wrong; they are counted, as the sidecar does it, every five seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sidecar.drift.cusum import Cusum

_USUAL, _BATCH, _DAY, _HORIZON = 0.01, 5, 86_400, 4 * 3_600


@dataclass(frozen=True, slots=True)
class Requests:
    """A day of independent requests, or up to four hours after the share of slow ones rose to
    ``share``. ``clump`` slow ones come at once, as often as makes the same share.
    """

    share: float = _USUAL
    clump: int = 1
    unit: str = "days"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """A day that nothing is wrong on begins with the chart at 0, as does a fault."""
        rng, null = np.random.default_rng(seed), self.share == _USUAL
        seconds = _DAY if null else _HORIZON
        slow = rng.random(seconds // self.clump) < self.share
        counts = np.repeat(slow, self.clump).reshape(-1, _BATCH).sum(axis=1)
        name = f"{self.share:.0%} above the usual P99"
        if self.clump > 1:
            name += f", {self.clump} at once"
        for rule, phi in (("LatencyTailJump", float(self.clump)), ("without φ", 1.0)):
            if self.clump > 1 or rule == "LatencyTailJump":
                at = _alarm(counts, phi)
                minutes = None if null or at is None else at * _BATCH / 60
                yield name, rule, at is not None, minutes


def _alarm(counts: np.typing.NDArray[np.int64], phi: float) -> int | None:
    """After how many batches."""
    chart = Cusum()
    for number, count in enumerate(counts.tolist(), 1):
        if chart.update(_BATCH, count, _USUAL, phi):
            return number
    return None


NULLS = (Requests(), Requests(clump=5))
RISES = tuple(Requests(share, unit="faults") for share in (0.02, 0.05, 0.10))
