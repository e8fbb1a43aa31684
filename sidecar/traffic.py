"""Adds up request timings of the wire: totals for Prometheus, sliding windows for the page.

Memory is bounded: windows are one slot a second, servers are capped and the rest folds into
``other``. Only ended requests count; what is open is shown as such. Time here is monotonic, so a
step of the wall clock changes no rate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sidecar import ended, paths, recorder
from sidecar.ended import DURATION, EVENTS, ITL, REQUESTS, TTFT, Ended
from sidecar.ledger import Tally
from sidecar.legs import overhead
from sidecar.legs.minute import JoinWindow
from sidecar.legs.overhead import Overhead
from sidecar.objectives import Objective, Scores
from sidecar.signals import (
    End,
    Histogram,
    Kind,
    Leg,
    Metric,
    OpenRequests,
    RequestTiming,
    Sample,
)
from sidecar.streams import Stall, Streams
from sidecar.windows import LegWindow, Slot, failed, summarise

__all__ = ["DURATION", "EVENTS", "ITL", "METRICS", "REQUESTS", "TTFT", "Traffic"]

LARGEST_GAP = Metric(
    "modelprobe_wire_largest_gap_seconds",
    Kind.GAUGE,
    "Largest gap between token events among the requests that ended in the last minute.",
    ("leg",),
)
OPEN = Metric(
    "modelprobe_wire_open_requests",
    Kind.GAUGE,
    "Requests that have not ended; no sample while the tap is blind.",
    ("leg",),
)
METRICS = (*ended.METRICS, LARGEST_GAP, OPEN, *overhead.METRICS)

WINDOW_SECONDS = 60
_OPEN_FRESH_SECONDS = 3.5  # what is open is reported once a second


class Traffic:
    """All requests of the wire. Owned by one thread; its clock is a monotonic one."""

    def __init__(
        self,
        max_servers: int = 50,
        history_seconds: int = 300,
        objectives: tuple[Objective, ...] = (),
        max_series: int = recorder.MAX_SERIES,
    ) -> None:
        self._ended = Ended(max_servers)
        self._slots: dict[Leg, deque[Slot]] = {leg: deque(maxlen=history_seconds) for leg in Leg}
        self._total: dict[Leg, Slot] = {}
        self._recent_ttft: dict[Leg, deque[float]] = {leg: deque(maxlen=20_000) for leg in Leg}
        self._streams = Streams()
        self._overhead = Overhead()
        self.scores = Scores(objectives)
        self.recorder = recorder.Recorder(max_series)
        self._open: dict[Leg, tuple[float, OpenRequests]] = {}
        self._tallies: dict[Leg, Tally] = {}
        self._watching_since: float | None = None

    @property
    def folded(self) -> int:
        """How often a cap folded something into ``other``."""
        return self._ended.folded + self.recorder.folded

    def watch(self, now: float) -> None:
        """The tap sees: what it does not report from now on did not happen."""
        if self._watching_since is None:
            self._watching_since = now
            self._streams.watch(now)

    def lose(self) -> None:
        """The tap is blind: what is open, and what happens meanwhile, is unknown."""
        self._watching_since = None
        self._open.clear()
        self._streams.forget()
        self._overhead.lose()

    def set_open(self, found: OpenRequests, now: float) -> None:
        """What the kernel's table holds of a leg."""
        self._open[found.leg] = (now, found)

    def legs(self) -> tuple[Leg, ...]:
        """The legs that the tap has spoken of."""
        return tuple(leg for leg in Leg if leg in self._open)

    def add(self, timing: RequestTiming, now: float) -> None:
        """Counts one ended request, or the progress of an open one."""
        generates = paths.generates(timing.path, timing.streamed)
        if generates:
            self._add_progress(timing, now)
            self.scores.add(timing)
        if len(self._open) == len(Leg):  # with one leg watched nothing could be joined
            self._overhead.add(timing, now, generates)
        if timing.end is End.OPEN:
            return
        self._ended.add(timing, generates)
        if generates:
            self._add_generation(timing, now)
            self.recorder.add(timing)

    def _add_progress(self, timing: RequestTiming, now: float) -> None:
        """Credits token events and gaps to the second in which they were reported."""
        progress = self._streams.report(timing, now)
        if not progress.token_events:
            return
        self._slot(timing.leg, int(now)).token_events += progress.token_events
        tally = self._tallies.get(timing.leg, Tally())
        self._tallies[timing.leg] = replace(
            tally,
            token_events=tally.token_events + progress.token_events,
            gaps=tally.gaps + progress.gaps,
            decode_seconds=tally.decode_seconds + progress.seconds,
        )

    def _add_generation(self, timing: RequestTiming, now: float) -> None:
        self._slot(timing.leg, int(now)).add(timing)
        self._tally(timing)
        total = self._total.setdefault(timing.leg, Slot(0))
        total.add(timing)
        total.ttft.clear()
        total.token_events += timing.token_events
        if timing.ttft_seconds is not None:
            self._recent_ttft[timing.leg].append(timing.ttft_seconds)

    def _tally(self, timing: RequestTiming) -> None:
        tally = self._tallies.get(timing.leg, Tally())
        whole = timing.end is End.COMPLETE and (timing.status or 0) // 100 == 2
        self._tallies[timing.leg] = replace(
            tally,
            ended=tally.ended + 1,
            answered=tally.answered + whole,
            failed=tally.failed + failed(timing),
            server_errors=tally.server_errors + ((timing.status or 0) // 100 == 5),
            cancelled=tally.cancelled + (timing.end is End.CLIENT_GONE),
        )

    def stalls(self, now: float) -> Mapping[Leg, Stall] | None:
        """Which open streams stand still, by leg; None while the tap is blind."""
        if self._watching_since is None:
            return None
        self._streams.tidy(now)
        return {leg: self._streams.stall(leg, now) for leg in self.legs()}

    def settle(self, now: float) -> JoinWindow | None:
        """Joins what can be by now; the last minute of that, None while not both legs are seen."""
        self._overhead.settle(now)
        return self._overhead.window(now)

    def roll(self, wall: float, now: float) -> recorder.Slot | None:
        """The slot of latencies that ended by now (``wall`` is Unix time), if one did."""
        return self.recorder.roll(wall, now, self._streams.waiting(now))

    def tallies(self) -> Mapping[Leg, Tally] | None:
        """What was counted since the start, by leg; None while the tap is blind."""
        if self._watching_since is None:
            return None
        return {leg: self._tallies.get(leg, Tally()) for leg in self.legs()}

    def _slot(self, leg: Leg, second: int) -> Slot:
        slots = self._slots[leg]
        if not slots or slots[-1].second < second:
            slots.append(Slot(second))
        return slots[-1]

    def window(self, leg: Leg, now: float, seconds: int = WINDOW_SECONDS) -> LegWindow:
        """What ended in the last seconds, and what is open now."""
        since = int(now) - seconds
        slots = [slot for slot in self._slots[leg] if slot.second > since]
        watched = now - self._watching_since if self._watching_since is not None else 0.0
        return summarise(leg, slots, min(float(seconds), watched), self._open_now(leg, now))

    def total(self, leg: Leg, now: float, seconds: float) -> LegWindow:
        """What ended since the start; TTFT quantiles are of the last 20,000 requests."""
        slot = self._total.get(leg)
        open_now = self._open_now(leg, now)
        ttft = list(self._recent_ttft[leg])
        return summarise(leg, [slot] if slot else [], seconds, open_now, ttft)

    def _open_now(self, leg: Leg, now: float) -> OpenRequests | None:
        heard, found = self._open.get(leg, (0.0, None))
        return found if found is not None and now - heard <= _OPEN_FRESH_SECONDS else None

    def signals(
        self, windows: Iterable[LegWindow], joins: JoinWindow | None = None
    ) -> Iterable[Sample | Histogram]:
        """Everything of :data:`METRICS` that has been measured; the windows are the last minute."""
        yield from self._ended.series()
        yield from self._overhead.signals(joins)
        for window in windows:
            labels = (("leg", window.leg.value),)
            if window.open_requests is not None:
                yield Sample(OPEN.name, float(window.open_requests), labels)
            if window.largest_gap is not None and self._watching_since is not None:
                yield Sample(LARGEST_GAP.name, window.largest_gap, labels)
