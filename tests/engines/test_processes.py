"""Tests of sidecar.engines.processes, over many random lives of processes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import pytest

from sidecar.engines.increases import Key
from sidecar.engines.processes import Processes
from tests.engines.serving import Counters, Process, crashing, one, several

SEEDS = range(100)


def follow(scrapes: Iterator[Counters], number: int) -> tuple[list[bool], int]:
    """For each scrape whether several are seen, and how many restarts."""
    processes = Processes()
    seen, restarts = [], 0
    for counters in islice(scrapes, number):
        restarts += processes.follow(counters, None)
        seen.append(processes.several)
    return seen, restarts


def turns(order: str, number: int, seed: int) -> Callable[[int], int]:
    """Who answers which scrape."""
    rng = random.Random(seed + 1_000)
    return (lambda i: i % number) if order == "round robin" else (lambda _: rng.randrange(number))


def key(name: str) -> Key:
    return (name, ())


@pytest.mark.parametrize("seed", range(7))
def test_a_long_normal_run_is_one_process(seed: int) -> None:
    """Random loads, idle times included, over more than an hour of scrapes."""
    seen, restarts = follow(one(random.Random(seed)), 1_009)
    assert (any(seen), restarts) == (False, 0)


def test_a_crash_is_one_restart() -> None:
    """Also when the next process overtakes what the dead one had done."""
    for seed in SEEDS:
        rng = random.Random(seed)
        lives = iter((rng.randrange(5, 97), 10_000))
        seen, restarts = follow(crashing(rng, partial(next, lives)), 211)
        assert (any(seen), restarts) == (False, 1), seed


def test_a_crash_loop_is_restarts_and_not_several_processes() -> None:
    """Each life is six to twenty scrapes long, and none of them misses: nothing else tells."""
    for seed in SEEDS:
        rng = random.Random(seed)
        seen, restarts = follow(crashing(rng, partial(rng.randrange, 6, 20)), 211)
        assert not any(seen), seed
        assert restarts > 7


def test_a_crash_loop_with_gaps_is_told_however_short_its_lives() -> None:
    """While an engine starts its endpoint does not answer: who answers next is another."""
    for seed in SEEDS:
        rng = random.Random(seed)
        processes, deaths, restarts = Processes(), 0, 0
        for _ in range(29):
            process = Process(rng)
            for _ in range(rng.randrange(1, 4)):
                process.step()
                restarts += processes.follow(process.scrape(), None)
                assert not processes.several
            processes.gap()
            deaths += 1
        assert restarts > deaths / 3


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("alike", [False, True], ids=["of different ages", "alike"])
@pytest.mark.parametrize("order", ["round robin", "random"])
def test_several_processes_are_seen_within_twenty_scrapes(
    number: int, alike: bool, order: str
) -> None:
    """In nineteen of twenty cases; those that take longer are seen within sixty."""
    late = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        pick = turns(order, number, seed)
        seen, _ = follow(several(rng, number, pick, alike), 60)
        late += not any(seen[:20])
        assert any(seen), seed
    assert late <= 7


def test_several_processes_stay_seen() -> None:
    """The state does not come and go with the order in which they happen to answer."""
    lost = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        seen, _ = follow(several(rng, 2, turns("random", 2, seed)), 97)
        lost += not all(seen[seen.index(True) :])
    assert lost <= 3


def test_processes_that_no_longer_take_turns_are_one_again() -> None:
    """Twenty scrapes of one process clear it."""
    rng = random.Random(3)
    seen, _ = follow(several(rng, 2, lambda i: i % 2 if i < 31 else 0), 97)
    assert any(seen[:31])
    assert not any(seen[60:])


def test_a_process_that_has_done_much_at_once_is_new_all_the_same() -> None:
    """It stands above where a dead one stood (40), and holds far more than that one can have
    gained; one that holds a little more than was there is that one again.
    """
    for last, restarted in ((100, True), (47, False)):
        processes = Processes()
        told = [processes.follow({key("a"): float(v)}, None) for v in (40, 3, 200, last)]
        assert told == [False, True, False, restarted]


def test_who_died_before_a_gap_does_not_come_back() -> None:
    """What stands a little above its last counters afterwards is new."""
    for gap, restarted in ((True, True), (False, False)):
        processes = Processes()
        told = []
        for value in (40, 3, 200, 47):
            if gap and value == 200:
                processes.gap()
            told.append(processes.follow({key("a"): float(value)}, None))
        assert told[-1] is restarted


def started(*times: float) -> tuple[list[bool], list[bool]]:
    """Scrapes of one counter that grows, each from a process started then."""
    processes = Processes()
    seen, restarts = [], []
    for number, time in enumerate(times):
        restarts.append(processes.follow({key("a"): 7.0 + number}, time))
        seen.append(processes.several)
    return seen, restarts


def test_an_older_process_after_a_younger_one_is_another() -> None:
    """By their start times two of them are told at once, whatever their counters say."""
    seen, restarts = started(100, 200, 100, 200, 100)
    assert seen == [False, False, False, False, True]
    assert not any(restarts)


def test_ever_younger_processes_are_restarts() -> None:
    """By their start times a crash loop is never several, however it looks."""
    processes = Processes()
    rng = random.Random(5)
    for number in range(97):
        processes.follow({key("a"): float(rng.randrange(7, 11))}, 100.0 * number)
        assert not processes.several


def test_a_start_time_that_trembles_is_the_same_process() -> None:
    """It is computed from the boot time, which moves by a second when the clock is set."""
    seen, restarts = started(*(100.0 + number % 2 for number in range(47)))
    assert (any(seen), any(restarts)) == (False, False)


def test_counters_that_appear_with_their_first_increment_hide_no_restart() -> None:
    """The new process shows one counter, then the others: the old ones are not forgotten."""
    processes = Processes()
    told = [
        processes.follow({key(name): value for name, value in counters.items()}, None)
        for counters in ({"a": 1_009.0, "b": 503.0}, {"c": 1.0}, {"a": 5.0, "c": 2.0})
    ]
    assert told == [False, False, True]


def test_labels_that_come_and_go_cost_no_memory() -> None:
    """A thousand new series each scrape, as of a scan, are not remembered for ever."""
    processes = Processes()
    for scrape in range(53):
        counters = {("x_total", (("path", f"{scrape}-{i}"),)): 1.0 for i in range(1_009)}
        assert not processes.follow(counters, None)
        assert not processes.several
    assert sum(len(line) for line in processes._lines) < 8 * 3 * 1_009
