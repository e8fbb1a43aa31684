"""Latencies that have drifted from those of the same hour of earlier days.

The analyst evaluates every five minutes; here its verdicts become alarms, and between them a chart
follows what lies above its thresholds, request by request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sidecar.config import Settings
from sidecar.detect.detector import Memory
from sidecar.drift.cusum import Cusum, Design
from sidecar.evaluation import Change, Evaluation, Series, Standing
from sidecar.recorder import Exceedances
from sidecar.signals import Labels
from sidecar.snapshot import Snapshot
from sidecar.units import count, difference, duration, percent
from sidecar.verdicts import Alarm, AlarmState, Evidence, Mark, Rule, Severity, Verdict

DRIFT = Rule(
    "LatencyDrift",
    Severity.TICKET,
    "More requests are slow than in the same hour of earlier days, by the tail test or by the "
    "shape of the slowest tenth, and by more than matters; in two of three evaluations.",
    "Compare versions, mix, concurrency, preemptions and clocks since the change began. When the "
    "new level is the right one: model-probe baseline reset for the series.",
)
SPECIFIED = Rule(
    "LatencyDriftKs",
    Severity.TICKET,
    "The rule as specified: Kolmogorov-Smirnov p < 0.01 of the last clock hour against the same "
    "hour of seven days, and P99 up by more than 120 ms.",
    "As for LatencyDrift. It misses slow tails, and alarms falsely where days differ.",
)
JUMP = Rule(
    "LatencyTailJump",
    Severity.TICKET,
    "Twice as many requests as usual lie above the usual upper quantile, seen request by request "
    "(CUSUM).",
    "The minutes before LatencyDrift can know: look at what changed in the last half hour.",
)
RULES = (DRIFT, SPECIFIED, JUMP)


def from_settings(settings: Settings) -> Drift:
    """The detector; the analyst has the settings."""
    return Drift()


@dataclass(slots=True)
class _Chart:
    threshold: int
    n: int = 0
    exceeding: int = 0
    cusum: Cusum = field(default_factory=Cusum)
    new: bool = True  # the alarms have not been asked yet whether it fires already


@dataclass(frozen=True, slots=True)
class _Said:
    """The verdicts of one evaluation, which holds for five minutes: made once, not every second."""

    of: Evaluation
    labels: Labels
    drift: Verdict
    specified: Verdict

    @classmethod
    def about(cls, one: Evaluation) -> _Said:
        labels = _labels(one.series)
        return cls(one, labels, _drift(labels, one), _specified(labels, one))


class Drift:
    """Judges every series that the analyst has evaluated."""

    name = "drift"
    rules = RULES

    def __init__(self) -> None:
        self._charts: dict[Series, _Chart] = {}
        self._said: dict[Series, _Said] = {}

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """Three verdicts a series; none, not even that nothing is known, before it has a baseline,
        so that what fired before a reset can end.
        """
        evaluated = {one.series for one in snapshot.evaluations}
        self._charts = {s: chart for s, chart in self._charts.items() if s in evaluated}
        self._said = {s: said for s, said in self._said.items() if s in evaluated}
        for one in snapshot.evaluations:
            if one.standing is Standing.WARMING:
                self._charts.pop(one.series, None)
                continue
            said = self._said.get(one.series)
            if said is None or said.of is not one:
                said = self._said[one.series] = _Said.about(one)
            yield said.drift
            yield said.specified
            yield self._jump(said.labels, one, snapshot.exceedances.get(one.series))

    def heed(self, alarms: tuple[Alarm, ...], marks: tuple[Mark, ...]) -> None:
        """A chart that is new, after a reload or a restart, goes on where an alarm says it was: at
        its limit. Else each reload would resolve the alarm, to fire it again.
        """
        firing = {
            alarm.labels
            for alarm in alarms
            if alarm.rule == JUMP.name and alarm.state is AlarmState.FIRING
        }
        for series, chart in self._charts.items():
            if chart.new and firing and tuple(sorted(_labels(series))) in firing:
                chart.cusum = Cusum(Design().limit, alarm=True)
            chart.new = False

    def remember(self) -> Mapping[str, Memory]:
        """Nothing: the book of alarms knows what fires."""
        return {}

    def recall(self, kept: Mapping[str, Memory]) -> None:
        """Nothing, likewise."""

    def _jump(self, labels: Labels, one: Evaluation, seen: Exceedances | None) -> Verdict:
        if one.tail is None or seen is None:
            self._charts.pop(one.series, None)
            return JUMP.judge(labels, None)
        chart = self._charts.get(one.series)
        if chart is None or chart.threshold != seen.threshold or seen.n < chart.n:
            # It is counted from 0 again; what the chart knows of its share still holds.
            # Of a series that is new here, what was counted before is not for this chart.
            chart = self._charts[one.series] = (
                _Chart(seen.threshold, seen.n, seen.exceeding)
                if chart is None
                else _Chart(seen.threshold, cusum=chart.cusum, new=chart.new)
            )
        share = one.tail.expected / one.tail.n
        new, over = seen.n - chart.n, seen.exceeding - chart.exceeding
        chart.n, chart.exceeding = seen.n, seen.exceeding
        if not 0.0 < share < 0.5:
            return JUMP.judge(labels, None)
        alarm = chart.cusum.update(new, over, share, max(1.0, one.tail.phi))
        quantile = f"p{one.tail.quantile * 100:g}"
        text = (
            f"more {_name(one.series)} than usual above its usual {quantile} of "
            f"{duration(one.tail.threshold)}: {percent(seen.exceeding / max(1, seen.n))} of "
            f"{count(seen.n, 'value')}, usually {percent(share)}"
        )
        figures: Evidence = (
            ("threshold_seconds", one.tail.threshold),
            ("exceeding", float(seen.exceeding)),
            ("values", float(seen.n)),
            ("usual_ratio", share),
        )
        return JUMP.judge(labels, alarm, text, figures)


def _labels(series: Series) -> Labels:
    return (("signal", series.signal), ("leg", series.leg), ("server", series.server))


def _name(series: Series) -> str:
    return {"ttft": "TTFT", "itl": "ITL", "duration": "request time"}.get(
        series.signal, series.signal
    )


def _drift(labels: Labels, one: Evaluation) -> Verdict:
    fires = not one.firing.isdisjoint({"tail", "shape"})
    if one.standing is not Standing.JUDGED or one.tail is None:
        return DRIFT.judge(labels, None)
    rules = ", ".join(sorted(one.firing - {"ks"}))
    figures: Evidence = (
        ("rule", rules or "none"),
        *_change(one.tail.change, one.tail.quantile),
        ("exceeding", float(one.tail.exceeding)),
        ("expected", one.tail.expected),
        ("p_value", one.tail.q),
        ("dispersion", one.tail.phi),
        ("days", float(len(one.kept))),
    )
    return DRIFT.judge(labels, fires, one.text, figures)


def _specified(labels: Labels, one: Evaluation) -> Verdict:
    if one.ks is None:
        return SPECIFIED.judge(labels, None)
    text = (
        f"{_name(one.series)} of the last clock hour: D {one.ks.d:.3f}, p {one.ks.p:.2g}, p99 "
        f"{difference(one.ks.change.value)}"
    )
    figures: Evidence = (
        ("d", one.ks.d),
        ("d_upper", one.ks.d_upper),
        ("p_value", one.ks.p),
        *_change(one.ks.change, 0.99),
        ("n", float(one.ks.n)),
    )
    return SPECIFIED.judge(labels, "ks" in one.firing, text, figures)


def _change(change: Change, quantile: float) -> Evidence:
    return (
        (f"p{quantile * 100:g}_change_seconds", change.value),
        ("lower_seconds", change.lower),
        ("upper_seconds", change.upper),
        ("guard_seconds", change.guard),
    )
