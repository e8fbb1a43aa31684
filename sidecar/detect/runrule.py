"""The specified rule: outside mean ± 2.5 σ for three consecutive active minutes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from sidecar.detect import inputs
from sidecar.detect.inputs import Side


def band(mean: float, sigma: float, k: float = 2.5) -> tuple[float, float]:
    """The bounds: Qwen2-7B, 42.6 ± 3.8 tok/s, has a lower one of 33.1; Llama3-8B, 38.2 ± 4.1, of
    27.95.
    """
    return mean - k * sigma, mean + k * sigma


@dataclass(frozen=True, slots=True)
class Run:
    """Where the latest value lies, how many in a row were outside, and whether that is enough."""

    side: Side | None
    count: int
    alarm: bool


@dataclass(slots=True)
class RunRule:
    """Counts consecutive values outside the band; a value on its edge is inside.

    A value on either side counts, as specified; ``only`` restricts it to one. By itself it raises a
    false alarm in 367 days of independent minutes and sees 2, 3 σ after 48, 6.6 of them.

    Idle minutes have no value: they neither count nor break the row, since a slow engine with
    little traffic would otherwise never be judged. Values more than ``gap_seconds`` apart are not
    consecutive any more: three bad minutes of three different hours are not one episode.
    """

    STATE: ClassVar[tuple[str, ...]] = ("count", "last")

    k: float = 2.5
    minutes: int = 3
    gap_seconds: float = 300.0
    only: Side | None = None
    ceiling: float = inputs.CEILING
    count: int = 0
    last: float | None = None

    def update(
        self, at: float, value: float, mean: float, sigma: float, now: float | None = None
    ) -> Run:
        """Judges the value of one active minute. Raises :class:`~sidecar.detect.inputs.Refused`."""
        value = inputs.reading(value, self.ceiling)
        at = inputs.moment(at, self.last, now)
        if not (0 <= sigma < math.inf and abs(mean) < math.inf):
            raise ValueError(f"no baseline: mean {mean}, sigma {sigma}")
        if self.last is None or not 0 < at - self.last <= self.gap_seconds:
            self.count = 0
        self.last = at
        lower, upper = band(mean, sigma, self.k)
        side = Side.LOW if value < lower else Side.HIGH if value > upper else None
        counts = side is not None and self.only in (None, side)
        self.count = self.count + 1 if counts else 0
        return Run(side, self.count, self.count >= self.minutes)
