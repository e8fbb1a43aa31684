"""One round: a slot goes into the memory, and every series is compared with its earlier days."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from sidecar import loghist
from sidecar.alarms.states import StoreState
from sidecar.analyst.file import File
from sidecar.analyst.reading import Day
from sidecar.analyst.slots import Slots
from sidecar.drift import baseline, bucketed_rule, kolmogorov, since, unit, words
from sidecar.drift.baseline import Baseline
from sidecar.drift.evaluating import conclude, evaluate
from sidecar.drift.messages import Report
from sidecar.drift.options import Options
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Stretch, sum_of
from sidecar.evaluation import Evaluation, Ks, Series, Standing
from sidecar.recorder import Slot

KEY = "drift_rounds"  # under which the memory of rounds is kept


class Analysis:
    """Judges all series after each slot. One thread calls it."""

    def __init__(
        self,
        slots: Slots,
        options: Options,
        file: File,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._slots = slots
        self._options = options
        self._file = file
        self._clock = clock
        self.rounds = Round()
        self._known = False  # whether the file could be asked what fires
        self._recall()
        self._latest: tuple[Evaluation, ...] = ()
        self._hours: dict[Series, tuple[float, Ks | None]] = {}
        self._since: dict[Series, float | None] = {}

    def take(self, slot: Slot) -> Report:
        """What comes of a slot. One that cannot be used changes no evaluation."""
        started = self._clock()
        series = (*self._slots.series(), *self._slots.buckets.seen)
        frozen = frozenset(one for one in series if self.rounds.firing(one))
        refused = self._slots.put(slot, frozen)
        self._recall()
        if not refused:
            self._latest = tuple(self._judge(slot))
            self._file.note(KEY, json.dumps(self.rounds.to_json()))
        status = self._slots.status()
        return Report(
            evaluations=self._latest,
            store=status.state.value,
            reason=status.reason,
            series=status.series,
            seconds=self._clock() - started,
            refused=status.counted,
        )

    def _recall(self) -> None:
        """What fires by the file, as soon as that can be read: it may be locked at the start."""
        if not self._known and self._file.state is StoreState.OK:
            self._known = True
            self.rounds = _recalled(self._file.noted(KEY))

    def _judge(self, slot: Slot) -> list[Evaluation]:
        known = self._slots.lately(slot.end)
        before, left = self._before(known, slot.end)
        now = {s: Stretch.of(self._slots.current(s, slot.end).record) for s in known}
        usual = {one: Baseline.of(found, self._options) for one, found in before.items()}
        pool = baseline.pool(one for one in usual.values() if isinstance(one, Baseline))
        found = []
        for series, known_before in usual.items():
            one = evaluate(
                series,
                slot.end,
                now[series],
                slot.waiting.get(series, ()),
                known_before,
                self._options,
                ks=self._specified(series, slot.end),
                pool=pool,
            )
            one = replace(one, dropped=tuple(sorted((*one.dropped, *left[series]))))
            found.append(_of_one_unit(one, now, before))
        wire = [self._dated(one) for one in conclude(found, self.rounds, self._options)]
        both = [*wire, *self._engines(slot, wire)]
        self._forget({one.series for one in both})
        return both

    def _before(
        self, known: tuple[Series, ...], at: float
    ) -> tuple[dict[Series, Mapping[str, Stretch]], dict[Series, list[tuple[str, str]]]]:
        """The same hour of the days before, and which of these are left out: one series after the
        other, as the records of all at once would take as much memory again.
        """
        before: dict[Series, Mapping[str, Stretch]] = {}
        left: dict[Series, list[tuple[str, str]]] = {}
        for series in known:
            days = self._slots.days(series, at)
            before[series] = _stretches(days)
            left[series] = [(day.date, day.dropped) for day in days if day.dropped]
        return before, left

    def _dated(self, one: Evaluation) -> Evaluation:
        """The evaluation with the moment from which on it drifts, kept as long as it fires."""
        if one.tail is None or not (one.firing or one.tail.drifts):
            self._since.pop(one.series, None)
            return one
        if one.series not in self._since:
            above = loghist.cell(one.tail.threshold)
            counts = [
                (start, record.hist.total, record.hist.above(above))
                for start, record in self._slots.trail(one.series, one.at)
            ]
            self._since[one.series] = since.began(counts, one.tail.expected / one.tail.n)
        moment = self._since[one.series]
        if moment is None:
            return one
        said = words.since(moment, self._slots.marks)
        return replace(one, since=moment, text=f"{one.text}; {said}")

    def _engines(self, slot: Slot, wire: list[Evaluation]) -> list[Evaluation]:
        """Of engines' own buckets: no alarm begins there about what the wire judges."""
        covered = frozenset(one.series.signal for one in wire if one.standing is Standing.JUDGED)
        series = self._slots.buckets.hours(slot.end)
        return bucketed_rule.judge(series, slot.end, self.rounds, covered, self._options)

    def _specified(self, series: Series, at: float) -> Ks | None:
        """The rule as specified, once a clock hour: it stands until the next one has ended."""
        window = self._slots.clock_hour(series, at)
        ended, verdict = self._hours.get(series, (0.0, None))
        if ended != window.end:
            days = _whole(self._slots.days(series, window.end))
            verdict = None
            if len(days) >= self._options.keep_days:
                hour = Stretch.of(window.record)
                verdict = kolmogorov.judge(hour, sum_of(list(days.values())), self._options)
            self._hours[series] = (window.end, verdict)
        return verdict

    def _forget(self, known: set[Series]) -> None:
        """What fired on series that are gone, also on those that went while nobody watched."""
        self.rounds.keep(known)
        self._hours = {series: hour for series, hour in self._hours.items() if series in known}
        self._since = {series: since for series, since in self._since.items() if series in known}


def _recalled(text: str) -> Round:
    """The memory of before; damaged is none, and what fires is seen again in ten minutes."""
    if not text:
        return Round()
    try:
        return Round.from_json(json.loads(text))
    except ValueError:
        return Round()


def _of_one_unit(
    one: Evaluation, now: Mapping[Series, Stretch], before: Mapping[Series, Mapping[str, Stretch]]
) -> Evaluation:
    """The evaluation, without a verdict where longer gaps are only fewer ones."""
    requests = replace(one.series, signal="duration")
    judged = one.standing is Standing.JUDGED and one.tail is not None
    slower = judged and one.tail is not None and one.tail.change.value > 0
    if one.series.signal != "itl" or not slower or requests not in now:
        return one
    gaps_before = [before[one.series][day] for day in one.kept]
    requests_before = [before[requests][day] for day in one.kept if day in before[requests]]
    if not requests_before:
        return one
    fewer = unit.ratio(now[one.series], now[requests], sum_of(gaps_before), sum_of(requests_before))
    if fewer is None:
        return one
    return replace(one, standing=Standing.UNIT, fewer=fewer, tail=None, shape=None)


def _stretches(days: tuple[Day, ...]) -> dict[str, Stretch]:
    return {
        day.date: sum_of([Stretch.of(part.record, part.weight) for part in day.parts])
        for day in days
        if not day.dropped
    }


def _whole(days: tuple[Day, ...]) -> Mapping[str, Stretch]:
    """Days whose hour is there as it was counted: the specified rule knows no weights."""
    whole = (day for day in days if not day.dropped and all(p.weight == 1.0 for p in day.parts))
    return _stretches(tuple(whole))
