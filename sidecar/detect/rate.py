"""The token rate against its baseline: the specified rule exactly, and an EWMA chart beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from sidecar.config import RateSettings, Settings
from sidecar.detect import inputs, rate_words
from sidecar.detect.baselines import Baselines
from sidecar.detect.declared import Declared
from sidecar.detect.inputs import Refused, Side
from sidecar.detect.level import Level
from sidecar.detect.minutes import Minute, Minutes, Series
from sidecar.detect.rate_words import labels_of
from sidecar.signals import Labels
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, AlarmState, Mark, Rule, Severity, Verdict

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
        self._firing: set[tuple[str, Labels]] = set()
        self._released: set[Labels] = set()  # whose alarm is about a baseline that is gone
        self._declared = Declared()
        self._now = 0.0

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """The verdicts of the latest minute, again until the next ends or its source is away."""
        self._now = snapshot.at
        if not self._settings.enabled:
            return
        for minute in self._minutes.look(snapshot, clock):
            self._verdicts[minute.series] = self.take(minute)
        for gone in self._verdicts.keys() - self._minutes.live:
            del self._verdicts[gone]
        for verdicts in self._verdicts.values():
            yield from verdicts

    def take(self, minute: Minute) -> tuple[Verdict, ...]:
        """What one minute says; an idle or unusable one says nothing and clears nothing."""
        self._now = minute.at
        labels = labels_of(minute.series)
        judged: tuple[Verdict, ...] = tuple(rule.judge(labels, None) for rule in RULES)
        level = self._baselines.level(minute)
        own = level is not None and level.ready
        by = level if own else self._baselines.busier(minute)
        if by is not None:
            self._released.discard(labels)
            with suppress(Refused):
                judged = self._judge(minute, by, own) or judged
        if not own and self._is_moved(minute, labels):
            with suppress(Refused):
                judged = self._hold(minute) or judged
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
        rho, point = charts.lag.adjusted, None
        if rho is not None:  # without it the chart would alarm at every wave of a healthy series
            point = charts.chart.update(judged, level.mean, level.sigma, rho, size=level.size)
        labels, text = labels_of(minute.series), rate_words.text(minute, rate, level, run.side)
        evidence = rate_words.evidence(minute, rate, level, self._settings.sigmas, point, rho)
        shifted = None if point is None else point.side is Side.LOW
        side = run.side or (Side.LOW if shifted else None)
        if side is not None:
            charts.moved.see(minute, side)
        # After a gap the row starts anew: its first minutes outside do not make it good again.
        firing = self._states.get(labels) is AlarmState.FIRING
        outside = None if firing and run.side is not None and not run.alarm else run.alarm
        held = (outside, shifted, _both(outside, shifted))
        return tuple(
            rule.judge(labels, bad if own else bad or None, text, evidence)
            for rule, bad in zip(RULES, held, strict=True)
        )

    def _is_moved(self, minute: Minute, labels: Labels) -> bool:
        """Whether an alarm fires on a baseline that is not this minute's, and on other evidence."""
        firing = self._states.get(labels) is AlarmState.FIRING and labels not in self._released
        return firing and self._baselines.charts(minute.series).moved.at != minute.at

    def _hold(self, minute: Minute) -> tuple[Verdict, ...]:
        """What levels of fewer at once say, and how old the evidence is where they say nothing."""
        if minute.rate is None:
            return ()
        moved, fewer = self._baselines.charts(minute.series).moved, self._baselines.fewer(minute)
        labels, rate = labels_of(minute.series), inputs.reading(minute.rate)
        outside, shifted = None, None
        if fewer is not None and moved.side is Side.LOW:
            outside, shifted = fewer.judge(minute, rate, self._settings.sigmas)
            if outside:
                moved.see(minute, Side.LOW)
                said = rate_words.shared(minute, rate, fewer)
                shown = rate_words.evidence(minute, rate, fewer.level, self._settings.sigmas)
                return tuple(
                    rule.judge(labels, (rule.name, labels) in self._firing or None, said, shown)
                    for rule in RULES
                )
        if moved.miss():
            said = rate_words.given_up(minute, moved)
            return tuple(replace(rule.judge(labels, False, said), amends=True) for rule in RULES)
        said = rate_words.held(minute, rate, moved)
        held = zip(RULES, (outside, shifted, _both(outside, shifted)), strict=True)
        return tuple(
            replace(rule.judge(labels, bad, said), amends=bad is None) for rule, bad in held
        )

    def heed(self, alarms: tuple[Alarm, ...], marks: tuple[Mark, ...] = ()) -> None:
        """Nothing is learned of a series while it is pending or firing, nor during a mark."""
        self._states = {}
        self._firing = {alarm.key for alarm in alarms if alarm.state is AlarmState.FIRING}
        for alarm in alarms:
            if alarm.rule in _NAMES and _worse(alarm.state, self._states.get(alarm.labels)):
                self._states[alarm.labels] = alarm.state
        self._released &= self._states.keys()
        if self._declared.heed(marks, self._now):
            self._released = set(self._states)
            self._baselines.anew()
            self._verdicts.clear()
        held = {labels: s for labels, s in self._states.items() if labels not in self._released}
        known = {series: labels_of(series) for series in self._baselines.series()}
        self._baselines.follow({s: held[at] for s, at in known.items() if at in held}, self._now)

    def remember(self) -> Mapping[str, Mapping[str, object]]:
        """Baselines and charts, by series and concurrency, and the deploy that was heeded last."""
        return {**self._baselines.remember(), **self._declared.remember()}

    def recall(self, kept: Mapping[str, Mapping[str, object]]) -> None:
        """Baselines of before; each is taken when its series is seen again."""
        self._baselines.recall(kept)
        self._declared.recall(kept)


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Whether both hold: one that does not settles it, one that is unknown leaves it open."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _worse(state: AlarmState, than: AlarmState | None) -> bool:
    order = [AlarmState.INACTIVE, AlarmState.RESOLVED, AlarmState.PENDING, AlarmState.FIRING]
    return than is None or order.index(state) > order.index(than)
