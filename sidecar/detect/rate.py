"""The token rate against its baseline: the specified rule exactly, and an EWMA chart beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress

from sidecar.config import RateSettings, Settings
from sidecar.detect.baselines import Baselines
from sidecar.detect.declared import Declared
from sidecar.detect.ewma import Point
from sidecar.detect.inputs import Refused, Side
from sidecar.detect.level import Level
from sidecar.detect.minutes import Minute, Minutes, Series
from sidecar.detect.runrule import band
from sidecar.signals import Labels
from sidecar.state import Snapshot
from sidecar.units import number
from sidecar.verdicts import (
    Alarm,
    AlarmState,
    Evidence,
    Mark,
    Rule,
    Severity,
    Verdict,
)

OUT_OF_BAND = Rule(
    "TokenRateOutOfBand",
    Severity.TICKET,
    "The decode rate of one sequence was outside mean ± 2.5 σ of its baseline, at this "
    "concurrency, for three consecutive minutes. Where a healthy rate comes in waves this alone is "
    "a false alarm on many days: see the error rates.",
    "Below: look for preemptions, thermal throttling, CPU throttling, a neighbour on the card. "
    "Above: the load or the model changed; declare a deploy so that the baseline starts anew.",
    clear_seconds=0.0,
)
SHIFTED = Rule(
    "TokenRateShifted",
    Severity.TICKET,
    "The decode rate has moved below its baseline by less than the band, and stays there "
    "(EWMA chart, λ 0.2, L 4.19).",
    "The same as for TokenRateOutOfBand, with time to look: compare clocks, versions, neighbours.",
    clear_seconds=0.0,
)
DOWN = Rule(
    "TokenRateDown",
    Severity.PAGE,
    "Both hold at once: below the band for three minutes, and below the EWMA chart's limit, which "
    "knows how the rate's minutes hang together.",
    "Look at preemptions and the KV cache, clocks and temperature of the cards, CPU throttling, a "
    "neighbour on the card, and what was deployed.",
    clear_seconds=0.0,
)
RULES = (OUT_OF_BAND, SHIFTED, DOWN)
_NAMES = tuple(rule.name for rule in RULES)


def from_settings(settings: Settings) -> Rate:
    """The detector with the band of the settings."""
    return Rate(settings.rate)


class Rate:
    """Judges each series of minutes, each minute by the baseline of its own concurrency.

    Minutes of a mark are judged and not learned. When a deploy ends, everything is learned anew.
    """

    name = "rate"
    rules = RULES

    def __init__(self, settings: RateSettings) -> None:
        self._settings = settings
        self._minutes = Minutes()
        self._baselines = Baselines(settings)
        self._verdicts: dict[Series, tuple[Verdict, ...]] = {}
        self._states: dict[Labels, AlarmState] = {}
        self._released: set[Labels] = set()  # whose alarm is about a baseline that is gone
        self._declared = Declared()
        self._now = 0.0

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """The verdicts of the latest minute, again until the next ends or its source is away."""
        if not self._settings.enabled:
            return
        self._now = snapshot.at
        for minute in self._minutes.look(snapshot, clock):
            self._verdicts[minute.series] = self.take(minute)
        for gone in self._verdicts.keys() - self._minutes.live:
            del self._verdicts[gone]
        for verdicts in self._verdicts.values():
            yield from verdicts

    def take(self, minute: Minute) -> tuple[Verdict, ...]:
        """What one minute says; an idle or unusable one says nothing and clears nothing."""
        self._now = minute.at
        labels = _labels(minute.series)
        judged: tuple[Verdict, ...] = tuple(rule.judge(labels, None) for rule in RULES)
        level = self._baselines.level(minute)
        if level is None:
            return judged
        by = level if level.ready else self._baselines.busier(minute)
        if by is not None:
            self._released.discard(labels)
            with suppress(Refused):
                judged = self._judge(minute, by, own=level.ready) or judged
        with suppress(Refused):
            self._baselines.learn(minute, level, offered=not self._declared.covers(minute.at))
        return judged

    def _judge(self, minute: Minute, level: Level, own: bool) -> tuple[Verdict, ...]:
        rate, charts = minute.rate, self._baselines.charts(minute.series)
        if rate is None:
            return ()
        # A busier level knows what is too slow, and not what is fast enough.
        judged = rate if own else min(rate, level.mean)
        run = charts.run.update(minute.at, judged, level.mean, level.sigma, minute.at)
        rho, point = charts.lag.upper, None
        if rho is not None:  # without it the chart would alarm at every wave of a healthy series
            point = charts.chart.update(judged, level.mean, level.sigma, rho, size=level.size)
        evidence = _evidence(minute, rate, level, self._settings.sigmas, point, rho)
        labels, text = _labels(minute.series), _text(minute, rate, level, run.side)
        shifted = None if point is None else point.side is Side.LOW
        # After a gap the row starts anew: its first minutes outside do not make it good again.
        firing = self._states.get(labels) is AlarmState.FIRING
        outside = None if firing and run.side is not None and not run.alarm else run.alarm
        held = (outside, shifted, _both(outside, shifted))
        return tuple(
            rule.judge(labels, bad if own else bad or None, text, evidence)
            for rule, bad in zip(RULES, held, strict=True)
        )

    def heed(self, alarms: tuple[Alarm, ...], marks: tuple[Mark, ...] = ()) -> None:
        """Nothing is learned of a series while it is pending or firing, nor during a mark."""
        self._states = {}
        for alarm in alarms:
            if alarm.rule in _NAMES and _worse(alarm.state, self._states.get(alarm.labels)):
                self._states[alarm.labels] = alarm.state
        self._released &= self._states.keys()
        if self._declared.heed(marks, self._now):
            self._released = set(self._states)
            self._baselines.anew()
            self._verdicts.clear()
        held = {labels: s for labels, s in self._states.items() if labels not in self._released}
        known = {series: _labels(series) for series in self._baselines.series()}
        self._baselines.follow({s: held[at] for s, at in known.items() if at in held}, self._now)

    def remember(self) -> Mapping[str, Mapping[str, object]]:
        """Baselines and charts, by series and concurrency."""
        return self._baselines.remember()

    def recall(self, kept: Mapping[str, Mapping[str, object]]) -> None:
        """Baselines of before; each is taken when its series is seen again."""
        self._baselines.recall(kept)


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Whether both hold: one that does not settles it, one that is unknown leaves it open."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _worse(state: AlarmState, than: AlarmState | None) -> bool:
    order = [AlarmState.INACTIVE, AlarmState.RESOLVED, AlarmState.PENDING, AlarmState.FIRING]
    return than is None or order.index(state) > order.index(than)


def _labels(series: Series) -> Labels:
    """In the order in which alarms have theirs."""
    found = (("model", series.model), ("replica", series.replica), ("source", series.source))
    return tuple(pair for pair in found if pair[1])


def _text(minute: Minute, rate: float, level: Level, side: Side | None) -> str:
    where = "inside its band" if side is None else "below its band"
    where = "above its band" if side is Side.HIGH else where
    return (
        f"{number(rate)} tokens/s a sequence at {minute.concurrency} at once, {where} around "
        f"{number(level.mean)}; by the {minute.series.source}"
    )


def _evidence(
    minute: Minute,
    rate: float,
    level: Level,
    sigmas: float,
    point: Point | None,
    rho: float | None,
) -> Evidence:
    lower, upper = band(level.mean, level.sigma, sigmas)
    figures = {
        "rate_tokens_per_second": rate,
        "mean": level.mean,
        "sigma": level.sigma,
        "lower": lower,
        "upper": upper,
        "ewma_z": None if point is None else point.z,
        "autocorrelation": rho,
        "concurrency": float(minute.concurrency),
        "tokens": minute.tokens,
        "baseline_minutes": float(level.entered),
    }
    known = ((name, value) for name, value in figures.items() if value is not None)
    return tuple((name, value) for name, value in known if math.isfinite(value))
