"""Progress of open requests from report to report, and which of them stand still.

A stream that is slow now would show in a total of ended requests only when it ends. What each
report adds to the one before is credited to the moment of the report instead. What a stream had
brought before anybody watched is credited to no moment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sidecar.signals import End, Leg, RequestTiming

_MAX_OPEN = 5_000
_FRESH_SECONDS = 3.5  # open requests are reported once a second, the oldest 256 of them
STUCK_SECONDS, STUCK_GAPS = 5.0, 5.0
QUIET_SECONDS, QUIET_WAITS, QUIET_OPEN = 60.0, 5.0, 2
QUIET_LONGEST = 2.0  # times the longest wait of late
_WAIT_WEIGHT = 0.05  # of one request in the usual wait
_FORGET_SECONDS = 3_600.0  # in which the longest wait of late halves


@dataclass(frozen=True, slots=True)
class Progress:
    """What a report adds: token events, and gaps between them with their summed length."""

    token_events: int = 0
    gaps: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """Open streams of a leg that are followed: ``stuck`` of ``followed`` have had no token for
    5 s and for five times their own mean gap. ``longest_seconds`` is the longest such silence.

    ``waiting`` have not begun. A wait may be a queue, a long prefill or an answer that comes whole,
    so they count only where the leg as a whole brings nothing: ``quiet_seconds`` is for how long it
    has had two requests open or more and not one token or good end, and 0 up to 60 s, up to five
    times the usual wait and up to twice ``longest_wait``, which is that of the last hours: short
    chats between them make long answers no rarer.
    """

    followed: int
    stuck: int
    longest_seconds: float
    waiting: int = 0
    quiet_seconds: float = 0.0
    longest_wait: float = 0.0


@dataclass(slots=True)
class _Stream:
    token_events: int
    decode_seconds: float
    silent_seconds: float
    told: float
    seconds: float = 0.0


Key = tuple[Leg, str, float]


class Streams:
    """Follows open requests; bounded. Its clock is a monotonic one."""

    def __init__(self) -> None:
        self._open: dict[Key, _Stream] = {}
        self._since = -math.inf
        self._quiet_since: dict[Leg, float] = {}
        self._usual_wait: dict[Leg, float] = {}
        self._longest_wait: dict[Leg, tuple[float, float]] = {}  # and when it was

    def watch(self, now: float) -> None:
        """From now on every request is told of, those that are open already too."""
        self._since = now

    def forget(self) -> None:
        """The tap is blind: what happens meanwhile is unknown."""
        self._open.clear()
        self._quiet_since.clear()

    def report(self, timing: RequestTiming, now: float) -> Progress:
        """What this report, or this end, adds to what was told of the request before."""
        key = (timing.leg, timing.server, timing.at)
        before = self._open.get(key)
        known = before or _Stream(0, 0.0, 0.0, now)
        events = max(timing.token_events, known.token_events)
        spent = max(_decode_seconds(timing), known.decode_seconds)
        if events > known.token_events or _well_ended(timing):
            self._quiet_since[timing.leg] = now
        if timing.end is not End.OPEN:
            self._open.pop(key, None)
            self._learn_wait(timing, now)
        elif before is None and len(self._open) >= _MAX_OPEN:
            return Progress()  # its end will tell all of it at once
        else:
            silent = timing.seconds - (timing.last_token_seconds or timing.seconds)
            self._open[key] = _Stream(events, spent, silent, now, timing.seconds)
        if before is None and timing.seconds > now - self._since:
            return Progress()  # nobody knows how much of it came since
        fresh = events - known.token_events
        gaps = fresh if known.token_events else max(0, fresh - 1)
        return Progress(fresh, gaps, spent - known.decode_seconds)

    def stall(self, leg: Leg, now: float) -> Stall:
        """How many of the streams that were reported just now stand still."""
        fresh = [
            stream
            for (of, _, _), stream in self._open.items()
            if of is leg and now - stream.told <= _FRESH_SECONDS
        ]
        begun = [stream for stream in fresh if stream.token_events]
        silences = [s.silent_seconds for s in begun if s.silent_seconds > _patience(s)]
        longest = max(silences, default=0.0)
        waiting, quiet = len(fresh) - len(begun), self._quiet(leg, len(fresh), now)
        wait = self._longest(leg, now)
        return Stall(len(begun), len(silences), longest, waiting, quiet, wait)

    def _quiet(self, leg: Leg, open_requests: int, now: float) -> float:
        if open_requests < QUIET_OPEN:
            self._quiet_since.pop(leg, None)
            return 0.0
        quiet = now - self._quiet_since.setdefault(leg, now)
        usual = QUIET_WAITS * self._usual_wait.get(leg, 0.0)
        patience = max(QUIET_SECONDS, usual, QUIET_LONGEST * self._longest(leg, now))
        return quiet if quiet > patience else 0.0

    def _longest(self, leg: Leg, now: float) -> float:
        wait, at = self._longest_wait.get(leg, (0.0, now))
        return float(wait * 0.5 ** ((now - at) / _FORGET_SECONDS))

    def _learn_wait(self, timing: RequestTiming, now: float) -> None:
        if not _well_ended(timing):
            return
        wait = timing.seconds if timing.ttft_seconds is None else timing.ttft_seconds
        usual = self._usual_wait.get(timing.leg, wait)
        self._usual_wait[timing.leg] = usual + _WAIT_WEIGHT * (wait - usual)
        if wait >= self._longest(timing.leg, now):
            self._longest_wait[timing.leg] = (wait, now)

    def waiting(self, now: float) -> Iterator[tuple[str, Leg, str, float]]:
        """What open requests have taken so far: signal, leg, server and seconds, by each request's
        last report.
        """
        for (leg, server, _), stream in self._open.items():
            if now - stream.told <= _FRESH_SECONDS:
                yield "duration", leg, server, stream.seconds
                if not stream.token_events:
                    yield "ttft", leg, server, stream.seconds

    def tidy(self, now: float) -> None:
        """Drops requests that are not reported any more and of whose end nothing was told."""
        gone = [key for key, stream in self._open.items() if now - stream.told > 60.0]
        for key in gone:
            del self._open[key]


def _well_ended(timing: RequestTiming) -> bool:
    return timing.end is End.COMPLETE and (timing.status or 0) // 100 == 2


def _decode_seconds(timing: RequestTiming) -> float:
    """From its first token to its last so far; a gap that is still open is not in it."""
    if timing.ttft_seconds is None or timing.last_token_seconds is None:
        return 0.0
    return max(0.0, timing.last_token_seconds - timing.ttft_seconds)


def _patience(stream: _Stream) -> float:
    gaps = max(1, stream.token_events - 1)
    return max(STUCK_SECONDS, STUCK_GAPS * stream.decode_seconds / gaps)
