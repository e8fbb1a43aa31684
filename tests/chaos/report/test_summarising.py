"""What counts in a rate, what is set aside, and what is never pooled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.report.document import by_fault, plain
from chaos.report.summarising import notes, summarise
from chaos.report.summary import Figures, Summary
from chaos.results import Flaw, Results
from chaos.statistics import Interval
from chaos.vocabulary import (
    Detected,
    Ending,
    Healing,
    Kind,
    Layer,
    Outcome,
    Run,
)
from tests.chaos.report.made import EFFECT, WATCHED, campaign, place, run, stuck, without_proof


def only(runs: list[Run]) -> Figures:
    """The figures of runs of one fault."""
    [found] = summarise(runs).faults
    return found


def unseen_injections() -> list[Run]:
    """Ten values in a cache that nobody reads, ten lines in the kernel's log, ten real faults of
    which the engine came back from nine.
    """
    told = {"fault": "xid", "layer": Layer.REPORTED}
    cache = [
        without_proof(n, **told, method="cache", reason="the target did not see it")
        for n in range(1, 11)
    ]
    log = [
        run(n, **told, method="kmsg", detected=(Detected("Xid", EFFECT + 1.0),))
        for n in range(11, 21)
    ]
    took = (8, 21, 30, 12, 15, 9, 40, 27, 33)
    real = [run(20 + n, places=(place("users", float(s)),)) for n, s in enumerate(took, 1)]
    return [*cache, *log, *real, stuck(30)]


def test_layers_are_never_pooled() -> None:
    """Three ways of injecting are three answers, not 29 of 30."""
    cache, log, real = summarise(unseen_injections()).faults
    assert (cache.proven, cache.not_injected, cache.recovery) == (0, 10, None)
    assert {aside.reason for aside in cache.aside} == {"the target did not see it"}
    assert (log.proven, log.recovery, log.recover) == (10, None, None)
    assert (log.detection.share.hits, log.detection.share.n) == (10, 10)
    assert real.recovery is not None
    assert (real.recovery.hits, real.recovery.n, real.recovery.rate) == (9, 10, 0.9)


def test_the_tenth_is_shown() -> None:
    """The one that did not recover is in the curve as censored, and in no mean as nothing."""
    real = summarise(unseen_injections()).faults[2]
    assert real.recover is not None
    assert (real.recover.ended, real.recover.censored) == (9, 1)
    assert real.recover.curve.censored == (pytest.approx(WATCHED - EFFECT),)
    assert real.recover.median.seconds == pytest.approx(21.0)  # half of ten are back then
    assert real.recover.p95.seconds is None


def test_two_layers_of_one_fault_have_no_common_figure() -> None:
    """Asked for a fault by its name alone, the error says where both are."""
    runs = [run(1), run(2, layer=Layer.API)]
    with pytest.raises(ValueError, match="gpu_oom was caused in several ways"):
        by_fault(summarise(runs))
    assert by_fault(summarise([run(1)]))["gpu_oom"]["runs"] == 1


def killed_helper() -> list[Run]:
    """Five runs: two went well, the third lost its injector and was reverted late, of the fourth
    the target was replaced, the fifth was refused.
    """
    late = stuck(3, healing=Healing(Ending.HEALED, "reverted late (by 18 s)"))
    gone = run(
        4,
        outcome=Outcome.INCONCLUSIVE,
        reason="target gone",
        healing=Healing(Ending.MOOT, "the process is another one"),
    )
    refused = without_proof(5, reason="refused: /no/such/path", healing=None)
    return [run(1), run(2), late, gone, refused]


def test_a_late_undo_is_no_recovery() -> None:
    """Two of three, with the two others listed as not counted, never five of five."""
    found = only(killed_helper())
    assert found.recovery is not None
    assert (found.recovery.hits, found.recovery.n) == (2, 3)
    assert [(aside.number, aside.reason) for aside in found.aside] == [
        (4, "target gone"),
        (5, "refused: /no/such/path"),
    ]
    assert dict(found.endings) == {"healed": 3, "moot": 1}


def test_a_moot_undo_leaves_nothing() -> None:
    """The end of a target is no failure of the undo."""
    assert summarise(killed_helper()).left == ()


def test_what_is_left_behind_is_named() -> None:
    """From a failed undo and from what a run says itself, of shams and controls too."""
    failed = run(1, healing=Healing(Ending.FAILED, "the rule is still there"))
    sham = without_proof(2, kind=Kind.SHAM, left_behind="a file in /run")
    found = summarise([failed, sham, run(3)]).left
    assert [(left.id, left.text) for left in found] == [
        ("run-1", "the rule is still there"),
        ("run-2", "a file in /run"),
    ]


def test_shams_and_controls_are_in_no_rate() -> None:
    """Whatever their outcome was."""
    runs = [run(1), *(stuck(n, kind=kind) for n, kind in ((2, Kind.SHAM), (3, Kind.CONTROL)))]
    found = only(runs).recovery
    assert found is not None
    assert (found.hits, found.n) == (1, 1)


def test_a_control_that_counted_is_wrong() -> None:
    """It was aimed past the target: a proof of effect there is none."""
    runs = [without_proof(1, kind=Kind.CONTROL), run(2, kind=Kind.CONTROL)]
    found = summarise(runs).controls
    assert (found.n, found.not_injected) == (2, 1)
    assert [aside.number for aside in found.wrong] == [2]


def test_alarms_of_shams_are_false_alarms() -> None:
    """Ten minutes watched and two alarms in one run: 12 an hour; one from before is none."""
    alarms = (Detected("TtftHigh", -1.0), Detected("TtftHigh", 2.0), Detected("EngineDown", 3.0))
    shams = [without_proof(n, kind=Kind.SHAM) for n in range(1, 10)]
    found = summarise([*shams, without_proof(10, kind=Kind.SHAM, detected=alarms)]).shams
    assert (found.alarmed.hits, found.alarmed.n, found.alarms) == (1, 10, 2)
    assert found.per_hour == pytest.approx(12.0)
    assert dict(found.rules) == {"TtftHigh": 1, "EngineDown": 1}


def test_detection_counts_from_the_effect_on() -> None:
    """An alarm from before it is none of it; the first after it is."""
    early = Detected("Other", EFFECT - 0.05)
    runs = [
        run(1, detected=(early, Detected("GpuMemory", EFFECT + 2.0), Detected("Late", 9.0))),
        run(2, detected=(early,)),
        run(3, detected=(Detected("Late", EFFECT + 4.0),)),
    ]
    found = only(runs).detection
    assert (found.share.hits, found.share.n) == (2, 3)
    assert found.median.seconds == pytest.approx(4.0)
    assert dict(found.rules) == {"Late": 2, "GpuMemory": 1}


def test_most_undetected_means_no_median() -> None:
    """The median of those that were would be a fine one of a blind sidecar."""
    runs = [run(1, detected=(Detected("GpuMemory", 1.0),)), run(2), run(3)]
    found = plain(summarise(runs))["faults"]
    assert isinstance(found, list)
    assert found[0]["detected"] == 1
    assert found[0]["detect_median_seconds"] is None


def test_users_and_engine_are_apart() -> None:
    """The interruption is the users', the engine's has keys of its own, each with its period."""
    places = (place("engine", 2.0), replace(place("users", 8.0), period=0.5))
    [found] = plain(summarise([run(n, places=places) for n in range(9)]))["faults"]  # type: ignore[misc]
    assert found["interruption_median_seconds"] == 4.0  # type: ignore[has-type]
    assert found["interruption_period_seconds"] == 0.5  # type: ignore[has-type]
    assert found["engine_interruption_median_seconds"] == 1.0  # type: ignore[has-type]
    assert found["recover_median_seconds"] == pytest.approx(2.0)  # type: ignore[has-type]


def test_an_interruption_that_lasts_is_censored() -> None:
    """It was seen for a minute, and was longer."""
    found = only([run(1), stuck(2), stuck(3)]).places[0].interruption
    assert (found.ended, found.censored) == (1, 2)
    assert found.median.seconds is None


def test_a_recovery_without_a_time_is_counted_and_told() -> None:
    """It is in the rate, and its time is nobody's guess."""
    found = only([run(1), run(2, places=())])
    assert found.recovery is not None
    assert found.recover is not None
    assert (found.recovery.hits, found.recover.ended, found.unseen) == (2, 1, 1)


def test_no_runs_are_no_zeros() -> None:
    """Nothing is claimed of nothing."""
    found = summarise([])
    assert (found.faults, found.first, found.shams.per_hour) == ((), None, None)
    assert found.shams.alarmed.wilson == Interval(0.0, 1.0)


def test_all_unproven_gives_no_rate() -> None:
    """The interval is all there is, and the figures are null."""
    [found] = plain(summarise([without_proof(n) for n in range(5)]))["faults"]  # type: ignore[misc]
    assert found["runs"] == 0  # type: ignore[has-type]
    assert found["not_injected"] == 5  # type: ignore[has-type]
    assert found["recovered_ratio"] is None  # type: ignore[has-type]
    assert (found["wilson_lower"], found["wilson_upper"]) == (0.0, 1.0)  # type: ignore[has-type]
    assert found["recover_median_seconds"] is None  # type: ignore[has-type]


def test_the_order_of_runs_changes_nothing() -> None:
    """Nor does which file came first."""
    runs = campaign(60)
    assert summarise(reversed(runs)) == summarise(runs)


def test_flaws_of_the_file_are_notes() -> None:
    """Who reads the figures sees that lines are missing."""
    found = notes(Results((), (Flaw(3, "cut off while it was written", torn=True),), 2))
    assert found[0] == "line 3 is left out: cut off while it was written"
    assert "2 lines were replaced" in found[1]
    kept: Summary = summarise([], found)
    assert kept.notes == found
