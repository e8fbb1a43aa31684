"""Tests of sidecar.detect.drift: evaluations become alarms, and the chart between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidecar.detect.drift import DRIFT, JUMP, SPECIFIED, Drift
from sidecar.evaluation import Change, Evaluation, Ks, Series, Standing, Tail
from sidecar.recorder import Exceedances
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, AlarmState
from tests.detect.scenes import FAIL, PASS, UNKNOWN, judge, outcome, snap
from tests.export import made

SERIES = Series("ttft", "downstream", "127.0.0.1:8000")
LABELS = {"signal": "ttft", "leg": "downstream", "server": "127.0.0.1:8000"}
CHANGE = Change(0.21, 0.15, 0.27, 0.12)
TAIL = Tail(
    quantile=0.99,
    seconds=1.21,
    threshold=1.0,
    n=4_000,
    exceeding=120,
    expected=40.0,
    phi=1.0,
    z=9.0,
    p=1e-9,
    q=1e-8,
    change=CHANGE,
    drifts=True,
)
KS = Ks(4_000, 28_000, 0.02, 0.021, 0.2, CHANGE, drifts=False)
WELL = Evaluation(SERIES, made.AT, Standing.JUDGED, n=4_000, tail=TAIL, ks=KS, text="it is so")


def told(*evaluations: Evaluation, **changes: object) -> Snapshot:
    """A snapshot with these evaluations."""
    return snap(evaluations=evaluations, **changes)


@pytest.mark.parametrize(
    ("firing", "drift", "specified"),
    [
        ((), PASS, PASS),
        (("tail",), FAIL, PASS),
        (("shape",), FAIL, PASS),
        (("ks",), PASS, FAIL),
        (("ks", "tail"), FAIL, FAIL),
    ],
)
def test_each_rule_alarms_by_its_name(
    firing: tuple[str, ...], drift: object, specified: object
) -> None:
    """What fires in the analyst's round is an alarm, of either rule by its own name."""
    found = judge(Drift(), told(replace(WELL, firing=frozenset(firing))), 1.0)
    assert outcome(found, DRIFT.name, **LABELS) is drift
    assert outcome(found, SPECIFIED.name, **LABELS) is specified


@pytest.mark.parametrize(
    "standing", [s for s in Standing if s not in (Standing.JUDGED, Standing.WARMING)]
)
def test_what_cannot_be_judged_is_unknown(standing: Standing) -> None:
    """Also where the series still fires: no data resolves nothing."""
    one = Evaluation(SERIES, made.AT, standing, firing=frozenset({"tail"}))
    found = judge(Drift(), told(one), 1.0)
    assert [outcome(found, r.name, **LABELS) for r in (DRIFT, SPECIFIED, JUMP)] == [UNKNOWN] * 3


def test_the_evidence_holds_every_number_of_the_decision() -> None:
    """Whoever is called reads how much, how sure, and against how many days."""
    one = replace(WELL, firing=frozenset({"tail"}), kept=("a", "b", "c"))
    [verdict] = [v for v in judge(Drift(), told(one), 1.0) if v.rule == DRIFT.name]
    evidence = dict(verdict.evidence)
    assert verdict.text == "it is so"
    assert (evidence["rule"], evidence["p99_change_seconds"], evidence["days"]) == ("tail", 0.21, 3)


def charted(*counts: tuple[int, int], threshold: int = 700) -> list[object]:
    """What the chart says after each (n, exceeding) since the threshold was set."""
    detector = Drift()
    return [
        outcome(
            judge(
                detector,
                told(WELL, exceedances={SERIES: Exceedances(threshold, n, over)}),
                float(second),
            ),
            JUMP.name,
            **LABELS,
        )
        for second, (n, over) in enumerate(counts)
    ]


def test_a_burst_above_the_usual_quantile_is_seen_within_a_few_hundred_requests() -> None:
    """A tenth of the requests above what one in a hundred exceeds."""
    steps = [(20 * i, 2 * i) for i in range(20)]
    found = charted((0, 0), *steps)
    assert found[0] is PASS
    assert FAIL in found
    assert found.index(FAIL) <= 12


def test_the_usual_share_never_alarms() -> None:
    """One in a hundred is what a P99 is."""
    assert set(charted(*[(100 * i, i) for i in range(200)])) == {PASS}


def test_what_is_not_followed_is_unknown() -> None:
    """Nothing is counted before the first evaluation, nor where the tap is blind."""
    assert outcome(judge(Drift(), told(WELL), 1.0), JUMP.name, **LABELS) is UNKNOWN


def test_a_new_threshold_keeps_what_the_chart_knows() -> None:
    """The analyst moves it every five minutes; a burst across that moment is one burst."""
    detector = Drift()

    def look(threshold: int, n: int, over: int) -> object:
        seen = {SERIES: Exceedances(threshold, n, over)}
        return outcome(judge(detector, told(WELL, exceedances=seen), 1.0), JUMP.name, **LABELS)

    assert look(700, 0, 0) is PASS
    assert look(700, 60, 8) is PASS
    assert look(701, 60, 8) is FAIL


def test_a_chart_that_is_new_leaves_alone_what_was_counted_before() -> None:
    """After a reload, or when the analyst is back: the burst of two hours ago is no news."""
    assert charted((2_000, 400), (2_100, 401)) == [PASS, PASS]


def test_a_count_that_began_anew_is_no_bug() -> None:
    """The threshold was let go of and came back between two rounds."""
    assert charted((500, 5), (20, 0), (40, 1)) == [PASS] * 3


def test_verdicts_of_an_evaluation_are_made_once() -> None:
    """It holds for five minutes, and three hundred sentences a second are not for free; the next
    evaluation is another.
    """
    detector = Drift()
    first = [v for v in judge(detector, told(WELL), 1.0) if v.rule != JUMP.name]
    again = [v for v in judge(detector, told(WELL), 2.0) if v.rule != JUMP.name]
    assert all(a is b for a, b in zip(first, again, strict=True))
    fires = replace(WELL, firing=frozenset({"tail"}))
    assert outcome(judge(detector, told(fires), 3.0), DRIFT.name, **LABELS) is FAIL


def test_a_reload_does_not_resolve_a_jump() -> None:
    """The new detector has new charts; the book of alarms tells it which of them fire. One that has
    come back to 0 stays there, though the alarm needs some seconds to be resolved.
    """
    fires = Alarm(JUMP.name, tuple(sorted(LABELS.items())), AlarmState.FIRING, JUMP.severity, 1.0)
    detector = Drift()

    def look(n: int, over: int) -> object:
        seen = {SERIES: Exceedances(700, n, over)}
        found = judge(detector, told(WELL, exceedances=seen), 1.0)
        detector.heed((fires,), ())
        return outcome(found, JUMP.name, **LABELS)

    assert look(2_000, 400) is PASS  # for one round, which resolves nothing
    assert look(2_020, 400) is FAIL
    assert look(7_000, 440) is PASS
    assert look(7_020, 440) is PASS
