"""Records the latencies of ended requests in slots of five minutes, for the analyst to compare.

Owned by the state's thread, so nothing here is costly: a closed slot is handed over as it is and
encoded elsewhere. At most the open slot is lost with the process.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from sidecar import gaps
from sidecar.bucketed import Bucketed
from sidecar.evaluation import Series
from sidecar.loghist import OVER, cell
from sidecar.record import BLOCK_SECONDS, SLOT_SECONDS, Record, step_of, stratum, zeros
from sidecar.signals import End, Leg, RequestTiming
from sidecar.windows import failed

MAX_SERIES = 300
OTHER = "other"
_CLOCK_SECONDS = 2.0  # that the wall clock may drift from the monotonic one within a slot
_BYTES_A_TOKEN = 4  # of an answer that comes whole: only its order of magnitude counts
# A gap came as the bucket of 6 % that it lies in; all of a bucket count in one cell.
_GAP_CELLS = tuple(cell(gaps.middle_seconds(bucket)) for bucket in range(gaps.BUCKETS))
Key = tuple[str, str, str]
Open = tuple[str, Leg, str, float]  # signal, leg, server, age in seconds


@dataclass(frozen=True, slots=True)
class Slot:
    """What ended from ``start`` to ``end`` (Unix seconds), by series. ``waiting`` are ages of
    requests that are open at its end: they will have taken longer than that. ``steady`` is False
    when the clock was set meanwhile, the slot began with the process or with such a step, or it was
    closed more than a block late. ``buckets`` are what engines themselves counted.
    """

    start: float
    end: float
    steady: bool
    records: Mapping[Series, Record]
    waiting: Mapping[Series, tuple[float, ...]] = field(default_factory=dict)
    buckets: Mapping[Series, Bucketed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exceedances:
    """How many of ``n`` requests lay above the cell of ``threshold`` since it was set."""

    threshold: int
    n: int = 0
    exceeding: int = 0


@dataclass(slots=True)
class _Open:
    record: Record = field(default_factory=Record)
    block: array[int] = field(default_factory=zeros)

    def end_block(self) -> None:
        total = sum(self.block)
        if not total:
            return
        above = list(accumulate(reversed(self.block)))[::-1]
        squares = (k * k / total for k in above)
        self.record.squares = array("d", map(float.__add__, self.record.squares, squares))
        self.record.blocks += 1
        self.block = zeros()


class Recorder:
    """The open slot. ``roll`` closes it; times are Unix seconds and monotonic ones.

    Series beyond ``max_series`` share one a signal and leg, ``other``, and ``folded`` is how many
    durations went there. A series keeps its place while each slot has something of it.
    """

    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max = max_series
        self._open: dict[Key, _Open] = {}
        self._placed: set[Key] = set()
        self._watched: dict[Key, Exceedances] = {}
        self._start: tuple[float, float] | None = None
        self._block_end = self._slot_end = 0.0
        self._whole = False
        self.folded = 0

    def add(self, timing: RequestTiming) -> None:
        """Takes in one ended LLM request. A wrong one (4xx) is answered at once whatever the server
        does, so that a burst of them would look like an improvement: it has no latency.
        """
        bad, leg, server = failed(timing), timing.leg.value, timing.server
        if not bad and (timing.status or 200) >= 400:
            return
        asked = stratum(timing.request_bytes)
        if timing.ttft_seconds is not None:
            self._put(("ttft", leg, server), cell(timing.ttft_seconds), asked)
        elif bad:
            self._put(("ttft", leg, server), OVER, asked)
        elif timing.end is End.CLIENT_GONE:  # it would have taken longer
            self._put(("ttft", leg, server), cell(timing.seconds), asked)
        both = stratum(timing.request_bytes, _answered(timing))
        if bad:
            self._put(("duration", leg, server), OVER, both)
        elif timing.end is End.COMPLETE:
            self._put(("duration", leg, server), cell(timing.seconds), both)
        if timing.gaps:
            self._put_all(("itl", leg, server), 0, [(_GAP_CELLS[b], n) for b, n in timing.gaps])

    def _put(self, key: Key, where: int, kind: int) -> None:
        self._put_all(key, kind, ((where, 1),))

    def _put_all(self, key: Key, kind: int, cells: Sequence[tuple[int, int]]) -> None:
        """Counts durations of one request: how many by cell. It has dozens of gaps."""
        times = sum(count for _, count in cells)
        place = key if key in self._open else self._place(key)
        self.folded += times if place is not key else 0
        into = self._open.get(place)
        if into is None:
            into = self._open[place] = _Open()
        hist, steps, block = into.record.hist.counts, into.record.strata[kind], into.block
        for where, count in cells:
            step = step_of(where)
            hist[where] += count
            steps[step] += count
            block[step] += count
        seen = self._watched.get(place)
        if seen is not None:
            above = sum(count for where, count in cells if where > seen.threshold)
            self._watched[place] = Exceedances(
                seen.threshold, seen.n + times, seen.exceeding + above
            )

    def _place(self, key: Key) -> Key:
        if key not in self._placed and key[2] != OTHER:
            if len(self._placed) >= self._max:
                return key[0], key[1], OTHER
            self._placed.add(key)
        return key

    def watch(self, thresholds: Mapping[Series, int]) -> None:
        """Counts from now on what lies above these cells, and of no other series."""
        before, self._watched = self._watched, {}
        for series, threshold in thresholds.items():
            key = (series.signal, series.leg, series.server)
            known = before.get(key)
            if known is None or known.threshold != threshold:
                known = Exceedances(threshold)
            self._watched[key] = known

    def exceedances(self) -> Mapping[Series, Exceedances]:
        """Of every series that is watched."""
        return {Series(*key): seen for key, seen in self._watched.items()}

    def roll(self, now: float, clock: float, waiting: Iterable[Open] = ()) -> Slot | None:
        """Ends what is due at this moment; the slot that it closed, if it did."""
        if self._start is None:
            self._begin(now, clock, whole=False)
            return None
        start, started = self._start
        stepped = abs((now - start) - (clock - started)) > _CLOCK_SECONDS
        if not stepped and now < self._slot_end:
            if now >= self._block_end:
                self._end_blocks()
                self._block_end = _next(now, BLOCK_SECONDS)
            return None
        self._end_blocks()
        late = now >= self._slot_end + BLOCK_SECONDS
        slot = Slot(
            start=start,
            end=start + (clock - started) if stepped else now,
            steady=self._whole and not stepped and not late,
            records={Series(*key): one.record for key, one in self._open.items()},
            waiting=self._by_series(waiting),
        )
        self._placed = {key for key in self._open if key[2] != OTHER}
        self._open = {}
        self._begin(now, clock, whole=not stepped)
        return slot

    def _begin(self, now: float, clock: float, whole: bool) -> None:
        self._start = (now, clock)
        self._whole = whole
        self._block_end = _next(now, BLOCK_SECONDS)
        self._slot_end = _next(now, SLOT_SECONDS)

    def _end_blocks(self) -> None:
        for one in self._open.values():
            one.end_block()

    def _by_series(self, waiting: Iterable[Open]) -> dict[Series, tuple[float, ...]]:
        found: dict[Key, list[float]] = {}
        for signal, leg, server, age in waiting:
            found.setdefault(self._place((signal, leg.value, server)), []).append(age)
        return {Series(*key): tuple(ages) for key, ages in found.items()}


def _next(now: float, seconds: float) -> float:
    return (now // seconds + 1) * seconds


def _answered(timing: RequestTiming) -> int:
    """Token events, or what comes to them of an answer that came whole."""
    return timing.token_events or timing.response_bytes // _BYTES_A_TOKEN
