"""Evaluations of engines' own buckets take the way of the others: alarms, metrics, page."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sidecar.bucketed import Bucketed
from sidecar.collectors.analyst import METRICS, AnalystCollector
from sidecar.config import Settings, TargetSettings
from sidecar.detect.drift import DRIFT, JUMP, RULES, SPECIFIED, Drift
from sidecar.detect.retired import retired
from sidecar.drift import messages
from sidecar.drift.messages import Report
from sidecar.drift.rounds import Round
from sidecar.evaluation import ENGINE, Evaluation, Series, Standing
from sidecar.export import api
from sidecar.export.page.drift import table
from sidecar.recorder import Slot
from sidecar.signals import Sample
from sidecar.snapshot import Snapshot
from sidecar.state import State
from sidecar.verdicts import Alarm, AlarmState, Outcome, Severity
from tests.detect.scenes import FAIL, PASS, UNKNOWN, judge, outcome, snap
from tests.drift.engines import TGI_DURATION, VLLM_TTFT, hour, judged, known, lognormal

SERIES = Series("ttft", ENGINE, "r0/Qwen/Qwen3-0.6B")
LABELS = {"signal": "ttft", "leg": ENGINE, "server": SERIES.server}
SETTINGS = Settings(engines=(TargetSettings(name="r0", url="http://127.0.0.1:8000"),))
NAMES = frozenset(rule.name for rule in RULES)


def evaluated(
    factor: float, covered: bool = False, bounds: tuple[float, ...] = VLLM_TTFT
) -> Evaluation:
    """After two rounds of an hour that took so many times as long."""
    rng, rounds = np.random.default_rng(5), Round()
    hours = known(hour(factor * lognormal(rng, median=0.3), bounds), rng, bounds, median=0.3)
    signals = frozenset({"ttft"} if covered else ())
    return [judged(hours, rounds, signals, SERIES) for _ in range(2)][-1]


DRIFTS, COARSE, COVERED = evaluated(4), evaluated(1), evaluated(4, covered=True)


@pytest.mark.parametrize(
    ("one", "drift", "specified"),
    [(DRIFTS, FAIL, FAIL), (COARSE, UNKNOWN, UNKNOWN), (COVERED, UNKNOWN, UNKNOWN)],
)
def test_what_is_refused_is_neither_good_nor_bad(
    one: Evaluation, drift: Outcome, specified: Outcome
) -> None:
    """And no request is seen one by one, so that no chart follows them."""
    found = judge(Drift(), snap(evaluations=(one,)), 1.0)
    assert outcome(found, DRIFT.name, **LABELS) is drift
    assert outcome(found, SPECIFIED.name, **LABELS) is specified
    assert outcome(found, JUMP.name, **LABELS) is UNKNOWN


def state_with(*evaluations: Evaluation) -> Snapshot:
    state = State(0.0)
    state.apply("analyst", evaluations, 1.0)
    return state.snapshot((), 2.0)


def test_no_threshold_is_watched_where_no_request_is_seen() -> None:
    """The recorder would count nothing for ever."""
    assert state_with(DRIFTS).exceedances == {}


def test_a_round_of_them_travels() -> None:
    """Finite numbers only, whatever has no upper end."""
    beyond = evaluated(4, bounds=TGI_DURATION)
    assert beyond.tail is not None
    assert "or more" in beyond.text
    found = Report((DRIFTS, COARSE, COVERED, beyond))
    assert messages.decode_report(messages.encode_report(found)) == found
    text = json.dumps(api.state(state_with(beyond), "1", 3.0), allow_nan=False)
    assert '"unresolved"' in text


def test_a_slot_of_buckets_travels() -> None:
    """As it was counted."""
    held = {SERIES: Bucketed((0.1, 0.5), (1, 2, 3), 4.25), DRIFTS.series: Bucketed((), (7,), 0.5)}
    slot = Slot(0.0, 300.0, True, {}, {}, held)
    assert messages.decode_slot(messages.encode_slot(slot)) == slot


class Told:
    """An analyst that has said this."""

    dropped = 0

    def __init__(self, *evaluations: Evaluation) -> None:
        self._report = Report(evaluations)

    def exchange(self) -> Report:
        return self._report


def test_they_are_exported_by_their_leg() -> None:
    """With the standing that holds, all of them by declared names."""
    collector = AnalystCollector(Told(COARSE, COVERED))  # type: ignore[arg-type]
    samples = [one for one in collector.collect(0.0) if isinstance(one, Sample)]
    held = {dict(s.labels)["standing"] for s in samples if s.value and "standing" in dict(s.labels)}
    assert held == {"unresolved", "covered"}
    assert {s.metric for s in samples} <= {metric.name for metric in METRICS}
    assert all(dict(s.labels).get("leg", ENGINE) == ENGINE for s in samples)


def test_three_hundred_series_fit_within_the_cap() -> None:
    """No metric has more label sets than are let through, so that none is silently missing."""
    many = (replace(DRIFTS, series=replace(SERIES, server=f"r{i}")) for i in range(300))
    state = State(0.0)
    state.apply("analyst", AnalystCollector(Told(*many)).collect(0.0), 1.0)  # type: ignore[arg-type]
    assert state.snapshot((), 2.0).capped == 0


def test_the_page_shows_an_interval_and_no_middle() -> None:
    """Which would be taken for a measurement."""
    for one, words in (
        (DRIFTS, "drifting"),
        (COARSE, "buckets too coarse"),
        (COVERED, "judged on the wire"),
    ):
        (line,) = table(state_with(one)).lines
        assert (line.verdict, line.now) == (words, "p99")
        assert "(" not in line.change
    (line,) = table(state_with(evaluated(4, bounds=TGI_DURATION))).lines
    assert line.change.endswith("or more")


def alarm(server: str) -> Alarm:
    labels = tuple({**LABELS, "server": server}.items())
    return Alarm(DRIFT.name, labels, AlarmState.FIRING, Severity.TICKET, since=1.0)


@pytest.mark.parametrize(
    ("server", "known", "gone"),
    [
        (SERIES.server, (), False),  # after a restart, before the first round
        ("other", (), False),
        (SERIES.server, (DRIFTS,), False),
        ("r0/another", (DRIFTS,), True),  # not seen for a day
        ("r7/m", (), True),  # not in the settings any more
    ],
)
def test_an_alarm_ends_when_its_engine_is_gone(
    server: str, known: tuple[Evaluation, ...], gone: bool
) -> None:
    """Not because no port is of its leg."""
    found = retired([alarm(server)], [], snap(evaluations=known), SETTINGS, NAMES)
    assert [verdict.outcome for verdict in found] == [PASS] * gone


def test_a_wire_series_is_retired_as_before() -> None:
    """By its server, or its leg's port."""
    labels = (("signal", "ttft"), ("leg", "downstream"), ("server", "gone:80"))
    one = Alarm(DRIFT.name, labels, AlarmState.FIRING, Severity.TICKET, since=1.0)
    assert list(retired([one], [], snap(evaluations=(DRIFTS,)), SETTINGS, NAMES))


def test_an_alarm_whose_baseline_was_reset_ends() -> None:
    """There is nothing to compare with for days, and no verdict of its series meanwhile."""
    warming = Evaluation(SERIES, 1.0, Standing.WARMING)
    verdicts = judge(Drift(), snap(evaluations=(warming,)), 1.0)
    assert verdicts == []
    for evaluations, ended in (((warming,), 1), ((DRIFTS,), 0)):
        scene = snap(evaluations=evaluations)
        found = retired([alarm(SERIES.server)], verdicts, scene, SETTINGS, NAMES)
        assert [verdict.outcome for verdict in found] == [PASS] * ended


def test_an_alarm_goes_on_while_the_baseline_cannot_be_read() -> None:
    """A file that is locked at the start says nothing about what is in it."""
    warming = Evaluation(SERIES, 1.0, Standing.WARMING)
    for state, ended in (("locked", 0), ("ok", 1)):
        said = Sample("modelprobe_drift_store_state", 1.0, (("state", state),))
        scene = snap(evaluations=(warming,), samples=(said,))
        assert len(list(retired([alarm(SERIES.server)], [], scene, SETTINGS, NAMES))) == ended
