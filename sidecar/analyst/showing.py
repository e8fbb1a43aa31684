"""What is known of every series, as a person asks: the same hour of the last days, and how sure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

import numpy as np

from sidecar.analyst import reading, rows
from sidecar.analyst.adopting import adopt
from sidecar.analyst.bucket_rows import Chosen
from sidecar.analyst.buckets import Buckets
from sidecar.analyst.calendar import DAY, SECONDS, Calendar, ended
from sidecar.analyst.door import opened
from sidecar.analyst.memory import Memory
from sidecar.analyst.pages import Codec
from sidecar.analyst.reading import NOT_RECORDED, Day
from sidecar.bucketed import Bucketed, Interval, merged
from sidecar.drift.quantiles import Between, between
from sidecar.drift.stretch import Stretch, sum_of
from sidecar.evaluation import Series

_REACH = 1.96  # standard deviations of 95 %


@dataclass(frozen=True, slots=True)
class ShownDay:
    """``n`` requests in the hour of that day, weighted; quantiles in seconds with the bounds of a
    95 % interval, of an engine's own buckets only these of the bucket; ``dropped`` says why it does
    not count.
    """

    date: str
    n: float
    p50: Between | Interval | None
    p99: Between | Interval | None
    share: float
    dropped: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A series with its number of stored hours, and the days, the latest first."""

    series: Series
    hours: int
    days: tuple[ShownDay, ...]

    @property
    def kept(self) -> int:
        """Days that are part of the baseline."""
        return sum(not day.dropped for day in self.days)


def look(path: Path, zone: tzinfo, days: int, now: float, chosen: Chosen) -> tuple[Shown, ...]:
    """What the file says of the series that are ``chosen``, for the hour before ``now``. Raises
    Nothing, Unusable.
    """
    memory = Memory(Calendar(zone), Codec(), 0, days)
    with opened(path) as connection:
        connection.execute("BEGIN")  # all that is read is of one moment
        found = rows.load(connection)
        adopt(memory, found, whole=True)
        marks = rows.marks(connection, now - (days + 1) * DAY * SECONDS)
    plans = reading.plan(memory, ended(now), days, marks)
    engines = Buckets(Calendar(zone), days, 0, memory.counted, marks)
    engines.adopt(found.buckets, whole=True)
    wire = tuple(
        Shown(
            series,
            memory.known_hours(series),
            tuple(_shown(reading.day(memory, identity, plan)) for plan in plans),
        )
        for series, identity in sorted(
            memory.series.items(), key=lambda item: rows.name_of(item[0])
        )
        if chosen(series)
    )
    order = sorted(engines.seen, key=rows.name_of)
    return (*wire, *(_engine(engines, one, now) for one in order if chosen(one)))


def _engine(engines: Buckets, series: Series, now: float) -> Shown:
    """What an engine's own buckets say; a slot in which it had no request is not kept."""
    end = ended(now)
    known, left = engines.same(series, end)
    why = dict(left)
    dates = [one.date for one in engines.calendar.same(end, engines.days)]
    shown = (
        _bucketed(date, merged(known.get(date, ())), why.get(date, NOT_RECORDED)) for date in dates
    )
    return Shown(series, engines.known_hours(series), tuple(shown))


def _bucketed(date: str, held: Bucketed | None, why: str) -> ShownDay:
    if held is None:
        return ShownDay(date, 0.0, None, None, 0.0, why)
    return ShownDay(date, float(held.n), held.quantile(0.5), held.quantile(0.99), 1.0, "")


def _shown(day: Day) -> ShownDay:
    whole = sum_of([Stretch.of(part.record, part.weight) for part in day.parts])
    return ShownDay(
        day.date, whole.n, _quantile(whole, 0.5), _quantile(whole, 0.99), day.share, day.dropped
    )


def _quantile(stretch: Stretch, q: float) -> Between | None:
    if not stretch.size:
        return None
    return between(np.cumsum(stretch.counts), q, stretch.size, _REACH)
