"""What cumulative figures say of the last minute."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sidecar.probed.sched_frames import BOUNDS_NS, Durations

_SECONDS = 60.0
_LEAST_SECONDS = 20.0  # of less nothing is said
_LEAST_WAITS = 100  # for a 99th percentile
_STEP_SECONDS = 1.0
_LEAST_CPU_NS = 10_000_000  # below, a ratio to it says nothing


@dataclass(frozen=True, slots=True)
class _Point:
    at: float
    waits: Durations
    cpu_ns: int


class Minute:
    """Waits for a CPU and CPU time, as noted about once a second."""

    def __init__(self) -> None:
        self._points: deque[_Point] = deque()

    def note(self, at: float, waits: Durations, cpu_ns: int) -> None:
        """Figures as they stand at a time, which does not go back."""
        if self._points and at - self._points[-1].at < _STEP_SECONDS:
            return
        self._points.append(_Point(at, waits, cpu_ns))
        while at - self._points[0].at > _SECONDS:
            self._points.popleft()

    def p99(self) -> tuple[float, float | None] | None:
        """Bounds in seconds of the 99th percentile, the upper one None when it has none; None of
        fewer than 100 waits.
        """
        ends = self._ends()
        if ends is None:
            return None
        pairs = zip(ends[0].waits.counts, ends[1].waits.counts, strict=True)
        counts = [after - before for before, after in pairs]
        total, seen = sum(counts), 0
        if total < _LEAST_WAITS:
            return None
        for i, count in enumerate(counts):
            seen += count
            if seen >= 0.99 * total:
                lower = BOUNDS_NS[i - 1] / 1e9 if i else 0.0
                return lower, BOUNDS_NS[i] / 1e9 if i < len(BOUNDS_NS) else None
        return None

    def waiting_ratio(self) -> float | None:
        """Time waited per CPU time; None of next to no CPU time."""
        ends = self._ends()
        if ends is None or ends[1].cpu_ns - ends[0].cpu_ns < _LEAST_CPU_NS:
            return None
        waited = ends[1].waits.sum_ns - ends[0].waits.sum_ns
        return waited / (ends[1].cpu_ns - ends[0].cpu_ns)

    def _ends(self) -> tuple[_Point, _Point] | None:
        if not self._points or self._points[-1].at - self._points[0].at < _LEAST_SECONDS:
            return None
        return self._points[0], self._points[-1]
