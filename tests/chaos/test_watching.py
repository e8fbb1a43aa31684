"""What is usual, and when a service is steady."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from chaos.judging import STEADY
from chaos.probing import Place, Prober
from chaos.vocabulary import Probe
from chaos.watching import Watching


@dataclass
class Told:
    """Stands for a ``Prober`` that has seen what it is told to have seen."""

    now: float = 0.0
    place: Place = field(default_factory=lambda: Place("engine", "http://x", 0.2))
    probes: list[Probe] = field(default_factory=list)
    open: dict[int, float] = field(default_factory=dict)

    def answered(self, count: int, whole: float, failure: str | None = None) -> None:
        for _ in range(count):
            self.now += 0.2
            ttft = whole / 2 if failure is None else None
            self.probes.append(Probe(self.now - whole, self.now, failure, ttft, 8))

    def since(self, at: float) -> list[Probe]:
        return [probe for probe in self.probes if probe.ended >= at]

    def forget(self, before: float) -> None:
        self.probes = self.since(before)


def watching(told: Told) -> Watching:
    return Watching([cast(Prober, told)], lambda: told.now)


def recovers_with(watch: Watching, told: Told, whole: float) -> bool:
    """Whether answers of that length are well after a fault that begins now."""
    start = told.now
    told.now += whole
    told.answered(STEADY, whole)
    return not watch.unwell(start, 0.0, told.now)


def test_answers_that_waited_for_the_end_of_a_fault_are_not_usual() -> None:
    """They came whole, late, and just before the row that shows the service to be steady."""
    told = Told()
    watch = watching(told)
    told.answered(STEADY, 0.1)
    watch.learn()
    told.answered(15, 3.0)
    told.answered(STEADY, 0.1)
    assert not watch.unsteady()
    watch.learn()
    assert not recovers_with(watch, told, 3.0)


def test_a_service_that_each_fault_leaves_slower_is_not_steady() -> None:
    """Twice as slow is still in time; twice of that, learned anew each time, would be too."""
    told = Told()
    watch = watching(told)
    slow = 0.5
    for _ in range(4):
        told.answered(STEADY, slow)
        if watch.unsteady():
            break
        watch.learn()
        slow *= 1.9
    assert slow < 2.5


def test_a_service_that_has_begun_to_hang_is_not_steady() -> None:
    """Its last ten answers were good: those that came."""
    told = Told()
    watch = watching(told)
    told.answered(STEADY, 0.1)
    assert not watch.unsteady()
    told.open[1] = told.now
    told.now += 2.0
    assert watch.unsteady() == ["engine"]


def test_a_run_is_judged_by_what_was_seen_at_one_moment() -> None:
    """A request that is open for too long a moment after the last look does not undo what that
    found, neither in the verdict nor in the time to recover.
    """
    told = Told()
    watch = watching(told)
    told.answered(STEADY, 0.1)
    watch.learn()
    start = told.now
    told.answered(STEADY, 0.1)
    told.open[1] = told.now
    seen, told.now = told.now + 0.5, told.now + 9.0
    assert watch.unwell(start, 0.0, seen) == []
    assert watch.places(start, 0.0, seen)[0].recovered is not None
    assert watch.unwell(start, 0.0, told.now) == ["engine"]


def test_a_failure_since_then_is_told_with_its_place() -> None:
    """Before the fault it is none of the fault's."""
    told = Told()
    watch = watching(told)
    told.answered(STEADY, 0.1)
    since = told.now
    assert watch.failed(since + 0.01) == ""
    told.answered(1, 0.1, "status_500")
    assert watch.failed(since + 0.01) == "engine"


def test_answers_of_earlier_runs_are_forgotten() -> None:
    """Ten thousand runs take no more memory than one."""
    told = Told()
    watch = watching(told)
    for _ in range(50):
        told.answered(40, 0.1)
        assert not watch.unsteady()
        watch.learn()
    assert len(told.probes) <= 60.0 / told.place.period + 1
