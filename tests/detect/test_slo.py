"""Tests of sidecar.detect.slo: error budgets of objectives, from what was counted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sidecar.config import ObjectiveSettings, SloSettings
from sidecar.detect.availability import Availability
from sidecar.detect.slo import FAST, RULES, SLOW, STEADY, Slo, objectives
from sidecar.ledger import Tally
from sidecar.objectives import Objective, Score
from sidecar.signals import Leg
from sidecar.verdicts import Outcome, Verdict
from tests.detect.scenes import FAIL, PASS, STARTED, UNKNOWN, blind, outcome, port, snap
from tests.export import made

ERRORS = ObjectiveSettings(name="errors", signal="errors", target=0.99)
TTFT = ObjectiveSettings(name="fast", signal="ttft", target=0.99, threshold_seconds=1.0)
UP = ObjectiveSettings(name="up", signal="availability", target=0.99)
HOUR = 3_600.0


class Service:
    """Requests that are judged by one objective, minute by minute."""

    def __init__(self, objective: ObjectiveSettings = ERRORS, started: float = STARTED) -> None:
        self.objective = objective
        self.slo = self.detector()
        self.score = Score()
        self.at, self.clock, self.started = made.AT, 1_000.0, started
        self.found: list[Verdict] = []

    def detector(self) -> Slo:
        """A new one with these settings."""
        return Slo(SloSettings(objectives=(self.objective,)))

    def minutes(self, count: int, total: int = 100, bad: int = 0) -> list[Outcome | None]:
        """So many minutes with so many requests each; what FAST says after each."""
        return [self._minute(total, bad) for _ in range(count)]

    def _minute(self, total: int, bad: int) -> Outcome | None:
        self.at, self.clock = self.at + 60.0, self.clock + 60.0
        self.score = Score(self.score.total + total, self.score.bad + bad)
        return self.look()

    def dark(self, minutes: int) -> list[Outcome | None]:
        """So many minutes without a tap."""
        found = []
        for _ in range(minutes):
            self.at, self.clock = self.at + 60.0, self.clock + 60.0
            # What was counted before is known still; nothing is added while nobody watches.
            scores = {self.objective.name: self.score}
            snapshot = blind(self.at, started=self.started, scores=scores)
            self.found = list(self.slo.judge(snapshot, self.clock))
            found.append(self.says())
        return found

    def look(self) -> Outcome | None:
        """The detector looks now."""
        scores = {self.objective.name: self.score}
        snapshot = snap(self.at, started=self.started, scores=scores)
        self.found = list(self.slo.judge(snapshot, self.clock))
        return self.says()

    def says(self, rule: str = FAST.name) -> Outcome | None:
        """What was said last."""
        return outcome(self.found, rule, objective=self.objective.name)

    def bad(self, seconds: float = HOUR) -> float:
        """What the budget holds as bad."""
        return self.slo._budgets[self.objective.name].over(seconds, self.at).bad

    def total(self, seconds: float = HOUR) -> float:
        """What the budget holds in all."""
        return self.slo._budgets[self.objective.name].over(seconds, self.at).total

    def exchange(self) -> None:
        """A new detector that knows what the old one knew, by way of a file."""
        known = json.loads(json.dumps(self.slo.remember(), allow_nan=False))
        self.slo = self.detector()
        self.slo.recall(known)


def test_a_fast_burn_fires_when_two_percent_of_a_month_are_spent() -> None:
    """All requests of nine minutes fail: 15 % of the hour and all of the last five minutes."""
    service = Service()
    assert set(service.minutes(60)[54:]) == {PASS}
    assert service.minutes(9, bad=100) == [*[PASS] * 8, FAIL]


def test_a_fast_burn_is_over_when_it_is_over() -> None:
    """The short window ends it within five minutes; the hour still holds the failures."""
    service = Service()
    service.minutes(60)
    service.minutes(20, bad=100)
    assert service.minutes(5)[-1] is PASS
    assert service.bad() == 2_000


def test_slow_and_steady_burns_have_their_own_rules() -> None:
    """8 % for six hours is no page of the first kind, one of the second, and a ticket."""
    service = Service()
    service.minutes(6 * 60, bad=8)
    assert [service.says(rule.name) for rule in (FAST, SLOW)] == [PASS, FAIL]
    assert service.says(STEADY.name) is UNKNOWN  # of three days six hours are known
    service.minutes(30 * 60, bad=8)
    assert service.says(STEADY.name) is FAIL


def test_nothing_is_well_before_it_was_watched() -> None:
    """In the first minutes an hour is unknown, whatever the first requests were."""
    assert set(Service().minutes(4)) == {UNKNOWN}


def test_all_that_fails_from_the_start_does_not_wait_for_an_hour() -> None:
    """Even if all that was not watched was good, the hour would exceed."""
    service = Service()
    found = service.minutes(10, bad=100)
    assert found[:7] == [UNKNOWN] * 7
    assert found[-1] is FAIL


def test_no_traffic_is_unknown() -> None:
    """An hour in which nobody asked has spent nothing and proves nothing."""
    assert Service().minutes(90, total=0)[-1] is UNKNOWN


def test_few_requests_are_an_anecdote() -> None:
    """Three of three failed: too few to page, and not well."""
    service = Service()
    service.minutes(60, total=0)
    assert service.minutes(3, total=1, bad=1)[-1] is UNKNOWN


def test_a_blind_tap_leaves_a_hole_and_no_pass() -> None:
    """Ten minutes that nobody watched are neither good nor bad, during them and after. A tenth of
    an hour may be missing: even if all of it was bad, the hour would not exceed.
    """
    service = Service()
    service.minutes(120)
    assert service.dark(10) == [*[PASS] * 6, *[UNKNOWN] * 4]
    assert service.minutes(1) == [UNKNOWN]
    assert service.total() == 49 * 100 + 100


def test_a_burn_goes_on_firing_through_a_hole_it_cannot_see_through() -> None:
    """A blind tap says nothing good of a service that was failing."""
    service = Service()
    service.minutes(60)
    service.minutes(20, bad=100)
    assert PASS not in service.dark(30)


def test_what_was_counted_is_told_once() -> None:
    """Ten looks between two records add nothing."""
    service = Service()
    service.minutes(3, total=100, bad=7)
    for _ in range(9):
        service.clock += 1.0
        service.look()
    assert (service.bad(), service.total()) == (21, 300)


def test_budgets_are_judged_every_ten_seconds() -> None:
    """In between the same verdicts hold: three days of slots are not added up each second."""
    service = Service()
    service.minutes(3)
    before = service.found
    for _ in range(9):
        service.clock += 1.0
        service.look()
        assert all(one is other for one, other in zip(service.found, before, strict=True))
    service.clock += 1.0
    service.look()
    assert service.found[0] is not before[0]


def test_a_reload_does_not_tell_it_again() -> None:
    """The detector is another one; yesterday's failures are not failures of this minute."""
    service = Service()
    service.minutes(30, bad=100)
    service.minutes(60)
    assert service.says() is PASS
    service.exchange()
    assert service.minutes(1) == [PASS]
    assert service.bad() == 0
    assert service.bad(2 * HOUR) == 30 * 100


def test_a_restart_tells_what_the_new_process_counts() -> None:
    """Its scores start at zero again; what the old one told stays told."""
    service = Service()
    service.minutes(30, total=100, bad=7)
    service.exchange()
    service.started, service.score = service.at + 5.0, Score()
    service.minutes(1, total=100, bad=50)
    assert (service.bad(), service.total()) == (30 * 7 + 50, 31 * 100)


def test_what_was_spent_survives_a_restart() -> None:
    """A burn that fired fires on: nobody waits for an hour to be watched again."""
    service = Service()
    service.minutes(60)
    service.minutes(20, bad=100)
    service.exchange()
    service.started, service.score = service.at, Score()
    assert service.minutes(1, bad=100) == [FAIL]


@pytest.mark.parametrize(
    "changes",
    [{"threshold_seconds": 0.5}, {"leg": Leg.UPSTREAM}, {"signal": "duration"}, {"name": "other"}],
)
def test_another_objective_starts_anew(changes: dict[str, object]) -> None:
    """What was good by another threshold, of another leg or signal, is not what is good now."""
    service = Service(TTFT)
    service.minutes(30, bad=50)
    service.objective = TTFT.model_copy(update=changes)
    service.exchange()
    assert service.total() == 0


def test_another_target_goes_on() -> None:
    """The same requests were good and bad; only how many may be has changed."""
    service = Service(TTFT)
    service.minutes(30, bad=50)
    service.objective = TTFT.model_copy(update={"target": 0.95})
    service.exchange()
    assert service.bad() == 30 * 50


def kept(**changes: object) -> dict[str, dict[str, object]]:
    """What is remembered of half an hour, changed."""
    service = Service()
    service.minutes(30, bad=50)
    [(name, known)] = service.slo.remember().items()
    return {name: {**known, **changes}}


@pytest.mark.parametrize(
    "foreign",
    [
        {},
        {"slo/errors": {}},
        kept(fine=None),
        kept(fine={"seconds": 60.0, "slots": 2, "bad": [0, 0], "total": [0, 0], "watched": [1, 1]}),
        kept(last=float("nan")),
        kept(objective=0.5),
        {"rate/x": next(iter(kept().values()))},
    ],
)
def test_broken_and_foreign_memory_is_left_out(foreign: dict[str, dict[str, object]]) -> None:
    """It starts anew, and goes on."""
    service = Service()
    service.slo.recall(foreign)
    assert service.total() == 0
    assert service.minutes(1) == [UNKNOWN]


@pytest.mark.parametrize("told", [None, [], [1], ["x", 0, 0], {"started": 1}, [1, 2, 3, 4]])
def test_broken_memory_of_what_was_told_is_left_out(told: object) -> None:
    """The budget is kept; what this process has counted is told."""
    service = Service()
    service.slo.recall(kept(told=told))
    service.at += 1_800.0
    service.minutes(1, bad=3)
    assert service.bad() == 30 * 50 + 3


def test_memory_that_comes_late_fills_the_budget() -> None:
    """The file was locked for ten minutes: the burn of before counts."""
    old, fresh = Service(), Service()
    old.minutes(30, bad=50)
    fresh.at = old.at
    fresh.minutes(10)
    fresh.slo.recall(json.loads(json.dumps(old.slo.remember())))
    assert fresh.bad() == 30 * 50


def test_memory_that_is_too_old_does_not_push_out_what_was_seen_since() -> None:
    """After two hours in memory alone those are worth more than what was before them."""
    old, fresh = Service(), Service()
    old.minutes(30, bad=50)
    fresh.at = old.at
    fresh.minutes(120, bad=1)
    fresh.slo.recall(json.loads(json.dumps(old.slo.remember())))
    assert fresh.bad() == 60


def test_a_clock_set_back_loses_nothing() -> None:
    """What is counted meanwhile is told when time has moved on; nothing fails."""
    service = Service()
    service.minutes(30, total=100, bad=1)
    service.at -= 150.0
    service.minutes(4, total=100, bad=1)
    assert (service.bad(), service.total()) == (34, 3_400)


def test_the_text_and_the_evidence_are_for_a_pager() -> None:
    """How many were bad over how long, against what, and how fast it burns."""
    service = Service()
    service.minutes(60)
    service.minutes(20, bad=100)
    [verdict] = [v for v in service.found if v.rule == FAST.name]
    assert verdict.text.replace("\N{NO-BREAK SPACE}", " ") == (
        "errors: 33 % bad in 1 h 0 min against an objective of 99 %: the budget burns at 33.3×"
    )
    evidence = dict(verdict.evidence)
    assert evidence["bad"] == 2_000
    assert evidence["limit"] == 14.4
    assert verdict.labels == (("objective", "errors"),)


def test_three_verdicts_an_objective() -> None:
    """Each rule says something of each objective at every look."""
    slo = Slo(SloSettings(objectives=(ERRORS, TTFT, UP)))
    found = list(slo.judge(snap(), 1.0))
    assert len(found) == 9
    assert {verdict.rule for verdict in found} == {rule.name for rule in RULES}


def test_objectives_as_those_who_count_want_them() -> None:
    """Name, signal, target, threshold and leg; no threshold is 0."""
    assert objectives(SloSettings(objectives=(ERRORS, TTFT))) == (
        Objective("errors", "errors", 0.99, 0.0, Leg.DOWNSTREAM),
        Objective("fast", "ttft", 0.99, 1.0, Leg.DOWNSTREAM),
    )


LISTENS, DEAF = (port(8080, up, Leg.DOWNSTREAM) for up in (True, False))
IDLE, WELL = Tally(), Tally(ended=40, answered=40)
FAILING, LEAVING = Tally(ended=40, failed=40), Tally(ended=40, cancelled=40)


@pytest.mark.parametrize(
    ("samples", "tally", "counted"),
    [
        ((LISTENS,), WELL, (1, 0)),
        ((LISTENS,), IDLE, (1, 0)),
        ((LISTENS,), FAILING, (1, 1)),
        ((LISTENS,), replace(FAILING, failed=39), (1, 0)),
        ((LISTENS,), LEAVING, (1, 0)),
        ((LISTENS,), replace(LEAVING, cancelled=39, failed=1), (1, 1)),
        ((DEAF,), WELL, (1, 1)),
        ((DEAF,), IDLE, (1, 1)),
        ((LISTENS, port(8081, up=False, leg=Leg.DOWNSTREAM)), IDLE, (1, 0)),
        ((port(8080, up=False, leg=Leg.UPSTREAM),), WELL, (1, 0)),
        ((), WELL, (1, 0)),
        ((), FAILING, (1, 1)),
        ((), IDLE, (0, 0)),
        ((LISTENS,), None, (0, 0)),
        ((DEAF,), None, (1, 1)),
        ((), None, (0, 0)),
    ],
)
def test_available_seconds(
    samples: tuple[object, ...], tally: Tally | None, counted: tuple[int, int]
) -> None:
    """Down: nobody listens, or everything fails. Unknown: no tap, or nobody asks and nobody says
    who listens. Who listens is enough only to know that it is down.
    """
    available = Availability((UP,))
    tallies = (None if tally is None else {Leg.DOWNSTREAM: t} for t in (Tally(), tally))
    for clock, found in enumerate(tallies):
        before = available.score("up")
        available.watch(snap(samples=samples, tallies=found), float(clock))
    now = available.score("up")
    assert (now.total - before.total, now.bad - before.bad) == counted


class Availably(Service):
    """A gateway that listens or does not, second by second."""

    def seconds(self, count: int, up: bool, tap: bool = True) -> Outcome | None:
        """So many seconds; what FAST says afterwards."""
        for _ in range(count):
            self.at, self.clock = self.at + 1.0, self.clock + 1.0
            scene = snap if tap else blind
            snapshot = scene(self.at, started=self.started, samples=(LISTENS if up else DEAF,))
            self.found = list(self.slo.judge(snapshot, self.clock))
        return self.says()


def test_an_objective_of_availability_is_spent_by_the_second() -> None:
    """Nine minutes without a listener are 15 % of an hour: a page."""
    service = Availably(UP)
    assert service.seconds(3_600, up=True) is PASS
    assert service.seconds(540, up=False) is FAIL
    assert service.bad() == pytest.approx(540, abs=10)


def test_a_gateway_that_is_gone_is_counted_without_a_tap_too() -> None:
    """That nobody listens is certain; that somebody does is not that requests are answered."""
    service = Availably(UP)
    service.seconds(3_600, up=True)
    assert service.seconds(600, up=False, tap=False) is FAIL
    service = Availably(UP)
    service.seconds(3_600, up=True)
    assert service.seconds(600, up=True, tap=False) is UNKNOWN
    assert service.total() == pytest.approx(3_000, abs=70)
