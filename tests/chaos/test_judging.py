"""When a service counts as well again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.faults import chosen
from chaos.judging import (
    IN_A_ROW,
    STEADY,
    Usual,
    interruption,
    outcome,
    recovered,
    steady,
    success,
    watched,
)
from chaos.ordering import Order
from chaos.vocabulary import Ending, Kind, Outcome, Probe, Run
from tests.chaos.test_campaign import run_of

USUAL = Usual(ttft=0.5, whole=1.0)


def good(sent: float, whole: float = 0.1) -> Probe:
    return Probe(sent, sent + whole, None, 0.05, 8)


def bad(sent: float, lasted: float = 0.01, failure: str = "refused") -> Probe:
    return Probe(sent, sent + lasted, failure, None)


def every(start: float, count: int, period: float = 0.2) -> list[Probe]:
    return [good(start + at * period) for at in range(count)]


def test_usual_is_learned_from_whole_answers_alone() -> None:
    """A refusal takes no time, and must not make the usual latency short."""
    usual = Usual.of([good(0, 0.4), good(1, 0.6), bad(2, 0.001)])
    assert usual.whole == pytest.approx(1.2)
    assert usual.ttft == pytest.approx(0.55)  # 0.05 and the floor


def test_no_whole_answer_is_no_steady_state() -> None:
    """Nothing can be judged against nothing."""
    with pytest.raises(ValueError, match="no whole answer"):
        Usual.of([bad(0)])


def test_steady_wants_a_row_of_whole_answers() -> None:
    """One failure among the last ones is not steady, nor are too few."""
    assert steady(every(0, STEADY), None)
    assert not steady(every(0, STEADY - 1), None)
    assert not steady([*every(0, STEADY - 1), bad(5)], None)
    assert not steady([*every(0, STEADY - 1), good(5, 3.0)], USUAL)


def test_success_is_the_first_whole_answer_after_the_first_failure() -> None:
    """What was answered before anything failed shows no recovery."""
    probes = [good(1.0), bad(1.2), bad(1.4), good(1.6), good(1.8)]
    assert success(probes, effect=0.9) == pytest.approx(1.7)


def test_an_answer_that_was_under_way_when_it_began_is_no_success() -> None:
    """It was asked for before the effect."""
    assert success([good(0.95, 2.0)], effect=1.0) is None


def test_recovered_wants_answers_in_a_row_after_the_last_failure() -> None:
    """Four good ones, a failure and four good ones are no recovery."""
    probes = [bad(1.0), *every(1.2, IN_A_ROW - 1), bad(2.2), *every(2.4, IN_A_ROW - 1)]
    assert recovered(probes, 0.9, USUAL) is None
    assert recovered([*probes, good(3.4)], 0.9, USUAL) == pytest.approx(2.5)


def test_slow_answers_are_no_recovery() -> None:
    """A service that crawls is not well, though nothing fails."""
    slow = [good(1 + at, 2.0) for at in range(IN_A_ROW)]
    assert recovered(slow, 0.5, USUAL) is None
    assert recovered([*slow, *every(9, IN_A_ROW)], 0.5, USUAL) == pytest.approx(9.1)


def test_answers_in_a_row_are_counted_by_when_they_were_sent() -> None:
    """A request that hangs from the start of the fault and fails late breaks no later row."""
    probes = [bad(1.0, 3.0, "timeout"), *every(2.0, IN_A_ROW)]
    assert recovered(probes, 0.9, USUAL) == pytest.approx(2.1)


def test_interruption_is_from_a_failures_sending_to_the_next_success() -> None:
    """The gap is what a user would have waited."""
    probes = [good(0.8), bad(1.0), bad(1.2), good(1.4), good(1.6)]
    assert interruption(probes, 0.0) == pytest.approx(0.4)


def test_a_request_that_hung_is_interrupted_from_its_sending() -> None:
    """Though it failed only three seconds later."""
    probes = [bad(1.0, 3.0), bad(1.2, 2.8), good(4.2)]
    assert interruption(probes, 0.0) == pytest.approx(3.2)


def test_interruptions_add_up() -> None:
    """A success in between ends one."""
    probes = [bad(1.0), good(1.2), bad(2.0), good(2.2)]
    assert interruption(probes, 0.0) == pytest.approx(0.4)


def test_a_service_that_never_comes_back_is_interrupted_to_the_end() -> None:
    """To the end of its last failure."""
    assert interruption([bad(1.0), bad(2.0, 0.5)], 0.0) == pytest.approx(1.5)


def test_without_an_effect_nothing_recovers() -> None:
    """A run whose fault never took hold has no recovery, however good its answers."""
    found = watched("engine", every(0, 20), None, USUAL, 0.2)
    assert (found.success, found.recovered, found.interruption) == (None, None, 0.0)


probe = st.builds(
    lambda sent, whole, failed: bad(sent, whole) if failed else good(sent, whole),
    st.floats(0, 50),
    st.floats(0.001, 5),
    st.booleans(),
)


@given(st.lists(probe, max_size=40), st.floats(0, 50))
def test_what_is_recovered_stays_so_to_the_end(probes: list[Probe], effect: float) -> None:
    """What was sent from then on kept to the usual, and was enough to confirm it."""
    at = recovered(probes, effect, USUAL)
    if at is None:
        return
    bad_ones = [p.sent for p in probes if p.sent >= effect and not USUAL.kept(p)]
    since = max(bad_ones, default=effect)
    row = [p for p in probes if p.sent >= since and USUAL.kept(p)]
    assert len(row) >= IN_A_ROW
    assert at >= effect
    assert at in {p.ended for p in row}


@given(st.lists(probe, max_size=40), st.floats(0, 50))
def test_an_interruption_is_no_longer_than_the_watch(probes: list[Probe], effect: float) -> None:
    """Whatever overlaps, it is counted once."""
    found = interruption(probes, effect)
    last = max((p.ended for p in probes), default=effect)
    assert 0.0 <= found <= max(0.0, last - effect) + 1e-9


def told(
    kind: Kind = Kind.FAULT, effect: float | None = 1.0, ending: Ending = Ending.HEALED
) -> Run:
    order = Order("c-0001", 1, *chosen("gpu_oom"), kind, 7)
    return replace(run_of(order, healing=ending), effect=effect)


@pytest.mark.parametrize(
    ("run", "late", "stopped", "wrong", "expected"),
    [
        (told(), [], False, "", Outcome.RECOVERED),
        (told(), ["users"], False, "", Outcome.NOT_RECOVERED),
        (told(), [], True, "", Outcome.RECOVERED),
        (told(), ["engine"], True, "", Outcome.INCONCLUSIVE),
        (told(), [], False, "its lease ran out", Outcome.INCONCLUSIVE),
        (told(ending=Ending.FAILED), [], False, "its lease ran out", Outcome.NOT_RECOVERED),
        (told(effect=None), [], False, "", Outcome.NOT_INJECTED),
        (told(effect=None), [], True, "", Outcome.INCONCLUSIVE),
        (told(Kind.SHAM, None), [], False, "", Outcome.NOT_INJECTED),
        (told(Kind.SHAM, None), [], True, "", Outcome.INCONCLUSIVE),
    ],
)
def test_an_outcome_is_the_worst_that_is_known(
    run: Run, late: list[str], stopped: bool, wrong: str, expected: Outcome
) -> None:
    """A place that was not well since the fault was over has not recovered, however well before."""
    assert outcome(run, late, stopped, wrong)[0] is expected
