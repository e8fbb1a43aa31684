"""The table of token rates that a service has when it is well: model × GPU × concurrency.

Mean and σ are the detector's own (:class:`sidecar.detect.level.Level`): weighted towards the
latest day of traffic, winsorised, and without the minutes in which the rate alarmed. So a table
made of a week with an incident in it is not made of the incident.
"""

from __future__ import annotations

from collections.abc import Iterable

from sidecar.config import AlarmSettings, RateSettings, Settings, SloSettings
from sidecar.detect.level import Level
from sidecar.detect.minutes import Series
from sidecar.history.episodes import labels_of
from sidecar.history.learned import Learned, Row, pooled
from sidecar.history.player import Player
from sidecar.history.records import Account, Record
from sidecar.signals import Labels
from sidecar.verdicts import Alarm, AlarmState

MINIMUM = 60
MOST_ROWS = 200  # of the configuration


Key = tuple[Series, int]


class Calibration:
    """Learns from records; ``rows`` are the table, ``short`` the levels with too few minutes."""

    def __init__(self, account: Account, minimum: int = MINIMUM) -> None:
        # Whatever is configured here: a table is made from nothing.
        plain = {"rate": RateSettings(), "slo": SloSettings(), "alarms": AlarmSettings()}
        self._player = Player(Settings().model_copy(update=plain), account)
        self.source = ""
        self._minimum = max(minimum, Level().start)
        self._learned: dict[Key, Learned] = {}
        self.idle = 0

    def learn(self, records: Iterable[Record], source: str = "") -> None:
        """Takes records to their end. Engines' own words are preferred to the wire's where both
        speak (``source`` picks one): the configuration has one level for both.
        """
        states: dict[Labels, AlarmState] = {}
        for minute in self._player.minutes(records):
            states = _states(self._player.alarms())
            if minute.rate is None:
                self.idle += 1
                continue
            key = (minute.series, minute.concurrency)
            learned = self._learned.setdefault(key, Learned())
            learned.offer(minute, minute.rate, _state(states, minute.series))
        for (series, _), learned in self._learned.items():
            learned.close(_state(states, series))
        self._choose(source)

    @property
    def span(self) -> tuple[float, float]:
        """From the first record to the last."""
        return self._player.first or 0.0, self._player.last

    def rows(self, gpu: str = "") -> list[Row]:
        """By model and concurrency, replicas put together; those of enough minutes. ``gpu`` is a
        name for people.
        """
        found = [self._row(gpu, *key) for key in self._groups()]
        return [row for row in found if row.minutes >= self._minimum]

    def short(self) -> list[tuple[str, int, int]]:
        """Model, concurrency and minutes of levels that are not known well enough."""
        found = []
        for model, concurrency in self._groups():
            minutes = sum(one.seen for one in self._of(model, concurrency))
            if sum(one.level.entered for one in self._of(model, concurrency)) < self._minimum:
                found.append((model, concurrency, minutes))
        return found

    def _groups(self) -> list[tuple[str, int]]:
        return sorted({(series.model, at_once) for series, at_once in self._learned})

    def _of(self, model: str, concurrency: int) -> list[Learned]:
        return [
            learned
            for (series, at_once), learned in self._learned.items()
            if (series.model, at_once) == (model, concurrency)
        ]

    def _choose(self, source: str) -> None:
        sources = {series.source for series, _ in self._learned}
        wanted = source or ("engine" if "engine" in sources else "wire")
        self._learned = {k: v for k, v in self._learned.items() if k[0].source == wanted}
        self.source = wanted

    def _row(self, gpu: str, model: str, concurrency: int) -> Row:
        known = [one for one in self._of(model, concurrency) if one.level.entered]
        return pooled(model, gpu, self.source, concurrency, known)


def _states(alarms: Iterable[Alarm]) -> dict[Labels, AlarmState]:
    """By labels, the worst state of an alarm on a rate."""
    order = (AlarmState.INACTIVE, AlarmState.RESOLVED, AlarmState.PENDING, AlarmState.FIRING)
    found: dict[Labels, AlarmState] = {}
    for alarm in alarms:
        known = found.get(alarm.labels, AlarmState.INACTIVE)
        found[alarm.labels] = max(known, alarm.state, key=order.index)
    return found


def _state(states: dict[Labels, AlarmState], series: Series) -> AlarmState:
    return states.get(labels_of(series), AlarmState.INACTIVE)
