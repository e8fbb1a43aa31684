"""Plays records to the detectors and the book of alarms, on a clock that follows the records.

The same objects that a sidecar runs, asked less often: after each minute of a rate; of requests
once in ten seconds, and each second where a burst of failures may be or an objective counts
seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sidecar.alarms.book import Book
from sidecar.config import Settings
from sidecar.detect import errors, rate, slo
from sidecar.detect.minutes import MINUTE_SECONDS, Minute, Series
from sidecar.history.blocks import Block, blocks, fails
from sidecar.history.episodes import Episodes
from sidecar.history.records import Account, Counted, Record, Served
from sidecar.history.tracks import Answers, Drawn
from sidecar.history.wire import Wire
from sidecar.signals import Leg
from sidecar.verdicts import Alarm, Outcome, Verdict
from sidecar.windows import quantile

_COARSE, _FINE = 10.0, 1.0
_STALE = 2.5 * MINUTE_SECONDS  # a rate older than this says nothing about now
_UNWATCHED = 150.0  # as budgets have it
_MOST_DRAWN = 200
_BURST = frozenset((errors.BURST.name,))


class Player:
    """One pass over records. Afterwards ``episodes`` are what alarmed, ``rate`` and ``slo`` the
    detectors with all that they learned, ``drawn`` and ``answers`` what there was to see.

    ``single`` says that requests were seen one by one, so that bursts could be told.
    """

    def __init__(self, settings: Settings, account: Account) -> None:
        self.account = account
        self.rate = rate.from_settings(settings)
        self.slo = slo.from_settings(settings)
        self.wire = Wire(settings.slo, account)
        self.episodes = Episodes()
        self.drawn: dict[Series, Drawn] = {}
        self.answers: dict[Leg, Answers] = {}
        self.first: float | None = None
        self.last = 0.0
        self.single = False
        self._errors = errors.from_settings(settings)
        self._book = Book(max_step_seconds=1.5 * MINUTE_SECONDS)
        self._disabled = frozenset(settings.alarms.disabled)
        self._availability = any(o.signal == "availability" for o in settings.slo.objectives)
        self._verdicts: dict[Series, tuple[float, tuple[Verdict, ...]]] = {}
        self._looked: float | None = None  # at the wire
        self._rates = settings.rate.enabled

    def alarms(self) -> tuple[Alarm, ...]:
        """As they stand after the last record."""
        return self._book.alarms()

    def play(self, records: Iterable[Record]) -> None:
        """Takes ordered records to their end; to be called once."""
        for _ in self.minutes(records):
            pass

    def minutes(self, records: Iterable[Record]) -> Iterator[Minute]:
        """The same, and hands on each minute of a rate after it was judged."""
        for block in blocks(records):
            self.single = self.single or any(isinstance(r, Served) for r in block.records)
            self._play(block)
            self._draw(block)
            yield from (record for record in block.records if isinstance(record, Minute))

    def _play(self, block: Block) -> None:
        at = 0
        for tick in self._ticks(block):
            while at < len(block.records) and block.records[at].at <= tick:
                self._take(block.records[at])
                at += 1
            self._judge(tick)

    def _ticks(self, block: Block) -> list[float]:
        ticks = {r.at for r in block.records if not isinstance(r, Served)}
        if self.single:
            fine = block.hot or self._availability or self.episodes.firing(_BURST)
            step = _FINE if fine else _COARSE
            ticks.update(block.start + n * step for n in range(1, round(MINUTE_SECONDS / step) + 1))
        return sorted(ticks)

    def _take(self, record: Record) -> None:
        if self.first is None:
            self.first = record.at
        self.last = max(self.last, record.at)
        if isinstance(record, Minute):
            verdicts = self.rate.take(record) if self._rates else ()
            self._verdicts[record.series] = (record.at, verdicts)
            self._trace(record, verdicts)
            return
        if self._looked is None:  # what is counted from here on is growth
            self.wire.watch(record.leg, record.at)
            list(self._of_wire(record.at - _COARSE))
        if isinstance(record, Counted):
            self.wire.count(record)
        else:
            self.wire.serve(record)

    def _judge(self, at: float) -> None:
        list(self.rate.judge(self.wire.nothing(at), self._clock(at)))  # tells it the time
        recent = [v for told, v in self._verdicts.values() if at - told <= _STALE]
        verdicts = [verdict for verdicts in recent for verdict in verdicts]
        if self.wire.legs:
            verdicts.extend(self._of_wire(at))
        judged = (verdict for verdict in verdicts if verdict.rule not in self._disabled)
        self.episodes.note(self._book.update(judged, at, self._clock(at)))
        self.rate.heed(self._book.alarms(), ())

    def _clock(self, at: float) -> float:
        """A monotonic clock, which began a minute before the first record."""
        return at - (at if self.first is None else self.first) + MINUTE_SECONDS

    def _of_wire(self, at: float) -> Iterator[Verdict]:
        if self._looked is not None and at - self._looked > _UNWATCHED:
            blind = self.wire.snapshot(at - _COARSE, blind=True)
            for judge in (self.slo.judge, self._errors.judge):
                list(judge(blind, self._clock(at) - _COARSE))
        self._looked = at
        snapshot = self.wire.snapshot(at)
        yield from self.slo.judge(snapshot, self._clock(at))
        for verdict in self._errors.judge(snapshot, self._clock(at)):
            if self.wire.statuses and (self.single or verdict.rule not in _BURST):
                yield verdict

    def _trace(self, minute: Minute, verdicts: tuple[Verdict, ...]) -> None:
        """Keeps what there is to draw of a series."""
        if minute.series not in self.drawn and len(self.drawn) >= _MOST_DRAWN:
            return
        drawn = self.drawn.setdefault(minute.series, Drawn())
        drawn.minutes += 1
        drawn.apart += drawn.last is not None and minute.at - drawn.last > 1.5 * MINUTE_SECONDS
        drawn.last = minute.at
        if minute.rate is None:
            drawn.idle += 1
            return
        drawn.rate.add(minute.at, minute.rate)
        evidence = dict(verdicts[0].evidence) if verdicts else {}
        drawn.judged += bool(verdicts) and verdicts[0].outcome is not Outcome.UNKNOWN
        for track, name in ((drawn.mean, "mean"), (drawn.lower, "lower")):
            value = evidence.get(name)
            if isinstance(value, float):
                track.add(minute.at, value)

    def _draw(self, block: Block) -> None:
        """Keeps what there is to draw of each leg in a minute."""
        for record in block.records:
            if isinstance(record, Counted):
                self._answered(record.leg, record.at, record.ended, record.failed)
        for leg in self.wire.legs if self.single else ():
            served = [r for r in block.records if isinstance(r, Served) and r.leg is leg]
            bad = sum(fails(one) for one in served)
            answers = self._answered(leg, block.start, float(len(served)), float(bad))
            for track, values in (
                (answers.ttft, [one.ttft for one in served if one.ttft is not None]),
                (answers.duration, [one.duration for one in served if one.duration is not None]),
            ):
                slow = quantile(values, 0.95)
                if slow is not None:
                    track.add(block.start, slow)

    def _answered(self, leg: Leg, at: float, ended: float, bad: float) -> Answers:
        answers = self.answers.setdefault(leg, Answers())
        answers.requests.add(at, ended)
        if ended:
            answers.failed.add(at, bad / ended)
        answers.count += ended
        answers.bad += bad
        return answers
