"""Days of measured requests through the real recorder and the real analysis, on a simulated clock.

Each day has the trace's hour twice. What happens in it is drawn anew from what was measured within
two minutes of the trace's time, in pieces of 30 s that keep their order: days are not copies, the
mix changes within the hour as it really did, and requests that waited together still do.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache

import numpy as np

from bench.azure_fixture import Measured
from sidecar.analyst.analysis import Analysis
from sidecar.analyst.file import File
from sidecar.analyst.pages import Codec
from sidecar.analyst.slots import Slots
from sidecar.drift import codec
from sidecar.drift.options import Options
from sidecar.evaluation import Evaluation
from sidecar.record import BLOCK_SECONDS, SLOT_SECONDS
from sidecar.recorder import Recorder
from sidecar.signals import RequestTiming

DAYS, HOURS = 10, 2
DAY_SECONDS, HOUR_SECONDS = 86_400.0, 3_600.0
PIECE_SECONDS, REACH = 30.0, 4  # of the trace; pieces before and after the one that is replaced
_FIRST = 1_767_258_000.0  # 09:00 UTC of a Thursday; any will do
Ended = tuple[float, RequestTiming]  # seconds after the hour began


class Pool:
    """One condition's requests by the piece of the trace in which they arrived."""

    def __init__(self, found: Sequence[Measured]) -> None:
        last = int(max(one.at for one in found) // PIECE_SECONDS)
        self._pieces: list[list[Measured]] = [[] for _ in range(last + 1)]
        for one in found:
            self._pieces[int(one.at // PIECE_SECONDS)].append(one)

    def hour(
        self, rng: np.random.Generator, moved: Mapping[str, float] | None = None
    ) -> Iterator[Ended]:
        """Another hour of the same server, by when requests end. With ``moved`` there is so many
        times as much of each kind, up to twice, with the latencies that it has here.
        """
        if moved is None:
            found = [(at, timing) for at, timing, _ in self._draw(rng)]
        else:  # of two hours, so that twice as much of a kind is not the same requests twice
            both = [*self._draw(rng), *self._draw(rng)]
            lots = rng.random(len(both)).tolist()
            pairs = zip(both, lots, strict=True)
            found = [(at, one) for (at, one, kind), lot in pairs if 2 * lot < moved[kind]]
        return iter(sorted(found, key=lambda ended: ended[0]))

    def _draw(self, rng: np.random.Generator) -> Iterator[tuple[float, RequestTiming, str]]:
        last = len(self._pieces) - 1
        drawn = np.arange(last + 1) + rng.integers(-REACH, REACH + 1, last + 1)
        for number, source in enumerate(np.clip(drawn, 0, last)):
            for one in self._pieces[source]:
                at = one.at - int(source) * PIECE_SECONDS + number * PIECE_SECONDS
                yield at + one.timing.seconds, one.timing, one.kind


@dataclass(slots=True)
class Clock:
    """Unix seconds of the simulation."""

    now: float = _FIRST

    def __call__(self) -> float:
        """What the analyst takes for the time."""
        return self.now


class Sidecar:
    """The recorder and the analysis, with the rules' defaults; no file, no process of its own."""

    def __init__(self, options: Options | None = None) -> None:
        self._clock = Clock()
        self._recorder = Recorder()
        # The same records are read hundreds of times a minute here; decoded once will do.
        decode = lru_cache(maxsize=512)(codec.decode)
        file = File(self._clock)
        slots = Slots(UTC, codec=Codec(decode=decode), file=file, wall=self._clock)
        self._analysis = Analysis(slots, options or Options(), file)
        self._at = _FIRST - HOUR_SECONDS - SLOT_SECONDS
        self._recorder.roll(self._at, self._at)

    def branch(self) -> Sidecar:
        """Another one with the same memory: what it sees from now on is its own."""
        return copy.deepcopy(self)

    def day(
        self,
        number: int,
        pool: Pool,
        rng: np.random.Generator,
        moved: Mapping[str, float] | None = None,
    ) -> Iterator[tuple[int, Evaluation]]:
        """The hours of a day, and every evaluation, with how many slots the day had had by then.
        Nothing happens in the hour before, and nobody looks at the night.
        """
        start = _FIRST + number * DAY_SECONDS
        while self._at < start - HOUR_SECONDS:
            self._roll(self._at + SLOT_SECONDS)
        ended = [
            (start + hour * HOUR_SECONDS + at, timing)
            for hour in range(HOURS)
            for at, timing in pool.hour(rng, moved)
        ]
        ended.sort(key=lambda one: one[0])
        following = 0
        while self._at < start + HOURS * HOUR_SECONDS:
            until = self._at + BLOCK_SECONDS
            while following < len(ended) and ended[following][0] < until:
                self._recorder.add(ended[following][1])
                following += 1
            for one in self._roll(until):
                yield round((until - start) / SLOT_SECONDS), one

    def _roll(self, now: float) -> tuple[Evaluation, ...]:
        """What the analysis says of a slot that ended now; nothing in between and of the night."""
        self._at = self._clock.now = now
        slot = self._recorder.roll(now, now)
        into = (now - _FIRST + HOUR_SECONDS) % DAY_SECONDS
        if slot is None or not 0 < into <= (1 + HOURS) * HOUR_SECONDS:
            return ()
        return self._analysis.take(slot).evaluations
