"""The baselines of token rates: a level for each series and concurrency, charts for each series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sidecar.config import RateLevelSettings, RateSettings
from sidecar.detect.ewma import Chart, Lag
from sidecar.detect.inputs import Refused
from sidecar.detect.level import Entered, Level
from sidecar.detect.minutes import Minute, Series
from sidecar.detect.moved import Fewer, Moved
from sidecar.detect.runrule import RunRule
from sidecar.detect.stored import Foreign, Stateful, Thing, keep, recall
from sidecar.verdicts import AlarmState

_LEVELS, _CHARTS = "rate/", "charts/"
_TABLE = "table"  # what a level was configured as
_MOST_LEVELS = 200
_UNUSED_SECONDS = 86_400.0  # after which a level gives way to a new one when there are too many
_CLOCKS_SECONDS = 300.0
Kept = Mapping[str, object]


@dataclass(slots=True)
class Charts:
    """What follows one series from minute to minute, each by the level of its concurrency."""

    run: RunRule
    chart: Chart = field(default_factory=Chart)
    lag: Lag = field(default_factory=Lag)
    moved: Moved = field(default_factory=Moved)


class Baselines:
    """Levels are made when their series is first seen: from what was kept, from the configured
    table, or from nothing. Once ``anew`` was called nothing that was kept before counts.
    """

    def __init__(self, settings: RateSettings) -> None:
        self._settings = settings
        self._levels: dict[tuple[Series, int], Level] = {}
        self._charts: dict[Series, Charts] = {}
        self._kept: dict[str, Kept] = {}

    def level(self, minute: Minute) -> Level | None:
        """The level that a minute is judged by; None when there is no room for one more."""
        key = (minute.series, minute.concurrency)
        if key not in self._levels:
            if len(self._levels) >= _MOST_LEVELS and not self._make_room(minute.at):
                return None
            table = self._configured(*key)
            level = Level() if table is None else Level.known(table.mean, table.sigma)
            self._levels[key] = _recalled(level, table, self._kept.pop(_name(*key), {}))
        return self._levels[key]

    def busier(self, minute: Minute) -> Level | None:
        """The nearest known level of more requests at once. A sequence is no slower with fewer
        beside it, so what is too slow for that one is too slow; nothing else can be said by it.
        """
        known = [
            (concurrency, level)
            for (series, concurrency), level in self._levels.items()
            if series == minute.series and concurrency > minute.concurrency and level.ready
        ]
        return min(known, key=lambda item: item[0])[1] if known else None

    def fewer(self, minute: Minute) -> Fewer | None:
        """The nearest known level of fewer requests at once."""
        known = [
            Fewer(concurrency, level)
            for (series, concurrency), level in self._levels.items()
            if series == minute.series and concurrency < minute.concurrency and level.ready
        ]
        return max(known, key=lambda one: one.concurrency, default=None)

    def charts(self, series: Series) -> Charts:
        """The charts of a series."""
        if series not in self._charts:
            rule = RunRule(k=self._settings.sigmas, minutes=self._settings.minutes)
            self._charts[series] = _recharted(Charts(rule), self._kept.pop(_name(series), {}))
        return self._charts[series]

    def learn(self, minute: Minute, level: Level | None, offered: bool) -> None:
        """Lets in what has waited long enough in all levels of the series, oldest first, and takes
        the minute into its own one's quarantine if it is ``offered``. Raises Refused.
        """
        if level is None:
            return
        entered: list[Entered] = []
        for (series, _), other in self._levels.items():
            if series != minute.series:
                continue
            if other is level and offered and minute.rate is not None:
                entered.extend(other.offer(minute.at, minute.rate, minute.at))
            else:
                entered.extend(other.settle(minute.at))
        lag = self.charts(minute.series).lag
        if lag.at is not None and lag.at > minute.at + _CLOCKS_SECONDS:
            lag.at = None  # a memory of a clock that was wrong
        for one in sorted(entered, key=lambda one: one.at):
            _note(lag, one)

    def follow(self, states: Mapping[Series, AlarmState], now: float) -> None:
        """How the alarms of each series stand; one without is inactive."""
        for (series, _), level in self._levels.items():
            level.follow(states.get(series, AlarmState.INACTIVE), now)

    def series(self) -> Iterable[Series]:
        """All series that have a level."""
        return {series for series, _ in self._levels}

    def anew(self) -> None:
        """Forgets everything that was learned, for good; what is configured stays."""
        self._kept = {key: {} for key in self.remember()}
        self._levels.clear()
        self._charts.clear()

    def remember(self) -> dict[str, Kept]:
        """All levels and charts by key, those too whose series has not been seen since."""
        kept = dict(self._kept)
        for (series, concurrency), level in self._levels.items():
            of = _table(self._configured(series, concurrency))
            kept[_name(series, concurrency)] = {**keep(level), _TABLE: of}
        for series, charts in self._charts.items():
            parts: dict[str, Stateful] = {
                "run": charts.run,
                "chart": charts.chart,
                "lag": charts.lag,
                "moved": charts.moved,
            }
            kept[_name(series)] = {name: keep(part) for name, part in parts.items()}
        return kept

    def recall(self, kept: Mapping[str, Kept]) -> None:
        """What was kept. Read late, it takes the place of what is made of fewer minutes."""
        self._kept |= {
            key: what for key, what in kept.items() if key.startswith((_LEVELS, _CHARTS))
        }
        for key, level in list(self._levels.items()):
            entered = self._kept.get(_name(*key), {}).get("entered")
            if isinstance(entered, int) and entered > level.entered:
                del self._levels[key]
                self._charts.pop(key[0], None)

    def _configured(self, series: Series, concurrency: int) -> RateLevelSettings | None:
        fitting = (
            known
            for known in self._settings.levels
            if known.model in ("", series.model) and known.concurrency in (0, concurrency)
        )
        # The most particular one: of this model and this concurrency before any.
        return max(fitting, key=lambda k: (bool(k.model), bool(k.concurrency)), default=None)

    def _make_room(self, now: float) -> bool:
        key, oldest = min(self._levels.items(), key=lambda item: item[1].last or 0.0)
        if now - (oldest.last or 0.0) < _UNUSED_SECONDS:
            return False
        del self._levels[key]
        return True


def _name(series: Series, concurrency: int | None = None) -> str:
    """The key of a level, or of a series' charts."""
    whose = f"{series.source}/{series.replica}/{series.model}"
    return f"{_CHARTS}{whose}" if concurrency is None else f"{_LEVELS}{whose}/{concurrency}"


def _note(lag: Lag, entered: Entered) -> None:
    try:
        lag.update(entered.at, entered.residual)
    except Refused:
        return  # of a level that was not visited for long: its neighbours have gone by


def _table(table: RateLevelSettings | None) -> list[float] | None:
    return None if table is None else [table.mean, table.sigma]


def _recharted(fresh: Charts, kept: Kept) -> Charts:
    return Charts(
        _again(fresh.run, kept.get("run")),
        _again(fresh.chart, kept.get("chart")),
        _again(fresh.lag, kept.get("lag")),
        _again(fresh.moved, kept.get("moved")),
    )


def _recalled(fresh: Level, table: RateLevelSettings | None, kept: Kept) -> Level:
    """A level from what was kept, unless the table says something else than it did then."""
    if kept.get(_TABLE) != _table(table):
        return fresh
    return _again(fresh, {name: value for name, value in kept.items() if name != _TABLE})


def _again(fresh: Thing, kept: object) -> Thing:
    if not isinstance(kept, Mapping):
        return fresh
    try:
        return recall(fresh, kept)
    except Foreign:
        return fresh
