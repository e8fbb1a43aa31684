"""A chart of single requests above t₀, for the fast path: minutes where the tail test takes hours.

Bernoulli CUSUM: Reynolds and Stoumbos, "A CUSUM chart for monitoring a proportion when inspecting
continuously", Journal of Quality Technology 31 (1999).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Design:
    """Looks for a share of ``ratio`` times the usual one, and alarms at a log-likelihood ratio of
    ``limit``. At a usual share of 1 %, 2 and 9 alarm falsely once in 3.5 million requests.
    """

    ratio: float = 2.0
    limit: float = 9.0


@dataclass(slots=True)
class Cusum:
    """Where the chart is. ``alarm`` begins at the limit and lasts until the chart has been back at
    0: in between it is no higher than the limit, so that it comes back after some 2,900 usual
    requests, however long it was bad.
    """

    value: float = 0.0
    alarm: bool = False

    def update(
        self, n: int, exceeding: int, share: float, phi: float = 1.0, design: Design | None = None
    ) -> bool:
        """Takes in a batch whose order is not known; whether the alarm stands.

        Those that exceed are taken to lie evenly in it: clumps within a batch neither raise nor
        spare an alarm. ``share`` is the usual one. Clumped requests tell less each: ``phi`` divides
        what they add, a quasi-likelihood. Raises ValueError for what is no batch, or no share.
        """
        design = design or Design()
        if not 0 <= exceeding <= n:
            raise ValueError(f"no batch: {exceeding} of {n}")
        if not (share > 0 and share * design.ratio < 1 and phi >= 1):
            raise ValueError(f"no chart for a share of {share} and a dispersion of {phi}")
        up = math.log(design.ratio) / phi
        down = -math.log((1 - share * design.ratio) / (1 - share)) / phi
        gap = down * (n - exceeding) / (exceeding + 1)
        peak, last = _walk(self.value, up, gap, exceeding)
        if peak >= design.limit:
            self.alarm = True
        elif last <= 0.0 or self.value <= gap:  # on the way, if not at the end of the batch
            self.alarm = False
        self.value = min(design.limit, last)
        return self.alarm


def _walk(value: float, up: float, gap: float, times: int) -> tuple[float, float]:
    """The highest value on the way, and the last one: a fall by ``gap``, no lower than 0, before,
    between and after so many rises by ``up``.
    """
    if not times:
        return value, max(0.0, value - gap)
    first = max(0.0, value - gap) + up
    final = max(first + (times - 1) * (up - gap), up)  # each rise ends at ``up`` or above
    return max(first, final), max(0.0, final - gap)
