"""Tests of what `./run bench detectors` runs: that it is what ships, and what comes of it."""

import random
from dataclasses import replace

import pytest

from bench import detectors_devices, detectors_presence, detectors_quiet
from bench.detectors_devices import Hangs, Reread
from bench.detectors_families import Scenario
from bench.detectors_presence import Scene
from bench.detectors_rate import at_load
from bench.detectors_scrapes import Scrapes, Target
from bench.detectors_watch import Watch
from sidecar.alarms.book import Book
from sidecar.collectors.engine import EngineCollector
from sidecar.config import RateSettings, TargetSettings
from sidecar.detect.rate import OUT_OF_BAND, Rate
from sidecar.ledger import Tally
from sidecar.signals import Absence, Leg
from sidecar.snapshot import Snapshot
from sidecar.verdicts import AlarmState
from sidecar.worker import Worker
from tests.detect.scenes import snap
from tests.export import made

SEEDS = (3, 11, 20_240_601)
MINUTES, SHIFT, FAULT, TOKENS = 310, 150, 290, 1_201


def day(seed: int) -> list[tuple[float, int]]:
    """Rates at 8 requests at once, then 32, a tenth of the minutes idle, at last a fall to half."""
    rng, found = random.Random(seed), []
    for minute in range(MINUTES):
        rate, running = at_load(rng, 3.0 if minute < SHIFT else 5.0)
        rate = rate / 2 if minute >= FAULT else rate
        found.append((float("nan") if rng.random() < 0.1 else rate, running))
    return found


def seen(at: float, tally: Tally, running: int) -> Snapshot:
    """What the wire has counted, and how many are open."""
    windows = tuple(replace(made.quiet(leg), open_requests=running) for leg in Leg)
    return snap(at, tallies=dict.fromkeys(Leg, tally), windows=windows)


def by_snapshots(minutes: list[tuple[float, int]]) -> list[frozenset[str]]:
    """The rules that fire after each minute, when snapshots of every 5 s are judged."""
    rate, book, tally, found = Rate(RateSettings()), Book(), Tally(), []
    rate_of = [0.0, *(value for value, _ in minutes)]
    for step in range(12 * len(minutes) + 1):
        clock, number = 5.0 * step, (step + 11) // 12
        value, running = rate_of[number], minutes[max(0, number - 1)][1]
        if value == value and step % 12 == 0 and step:
            tally = replace(
                tally,
                gaps=tally.gaps + TOKENS,
                decode_seconds=tally.decode_seconds + TOKENS / value,
            )
        at = made.AT + clock
        book.update(rate.judge(seen(at, tally, running), clock), at, clock)
        rate.heed(book.alarms())
        if step % 12 == 0 and step:
            firing = (a.rule for a in book.alarms() if a.state is AlarmState.FIRING)
            found.append(frozenset(firing))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_published_rates_are_of_what_ships(seed: int) -> None:
    """Given minutes fire what snapshots fire that are cut into the same ones, minute by minute."""
    minutes, watch = day(seed), Watch()
    ends = (made.AT + 60.0 * (number + 1) for number in range(MINUTES))
    given = [watch.minute(at, *minute) for at, minute in zip(ends, minutes, strict=True)]
    assert given == by_snapshots(minutes), f"seed {seed}"
    assert OUT_OF_BAND.name in given[-1]


def test_backing_off_is_the_workers() -> None:
    """After each failure in a row the model waits as long as the worker does."""
    collector = EngineCollector(TargetSettings(name="r0", url="http://10.0.0.7:8000"))
    worker = Worker(collector, None, random.Random(7))  # type: ignore[arg-type]  # never started
    scrapes = Scrapes("engine:r0", lambda _: (Absence.REFUSED, 0.0), random.Random(7))
    for failures in range(1, 9):
        began = scrapes.begins
        scrapes.advance(began)
        assert scrapes.begins - began == pytest.approx(worker._backoff(failures))


@pytest.mark.parametrize("seed", SEEDS)
def test_seconds_that_are_passed_over_change_nothing(seed: int) -> None:
    """An hour of failing scrapes raises the same alarms in the same seconds."""
    found = []
    for passes in (True, False):
        rng = random.Random(seed)
        scene = Scene(Target(rng, share=0.2), rng)
        fired = []
        for second in range(3_600):
            scene._settled &= passes
            fired.append([alarm.key for alarm in scene.second(float(second))])
        found.append(fired)
    assert found[0] == found[1], f"seed {seed}"
    assert any(found[0]), f"seed {seed}"


FAULTS: tuple[tuple[Scenario, float], ...] = (
    *((one, 150.0) for one in detectors_presence.SCENARIOS if one.unit == "faults"),
    *((one, 30.0) for one in detectors_devices.SCENARIOS if one.unit == "faults"),
)


@pytest.mark.parametrize(("fault", "seconds"), FAULTS)
def test_what_is_gone_is_noticed(fault: Scenario, seconds: float) -> None:
    """Every rule that a fault is for tells of it in time, in three trials."""
    for seed in SEEDS:
        for name, rule, alarm, delay in fault.trial(seed):
            assert alarm, (name, rule, seed)
            assert delay is not None
            assert 60 * delay <= seconds, (name, rule, seed)


def test_a_dead_leg_is_noticed() -> None:
    """Within two minutes where a chat begins every 4 s, whatever the engine counts."""
    for scenario in detectors_quiet.SCENARIOS:
        if scenario.unit == "faults" and "a chat in 4 s" in scenario.name:
            [(_, _, alarm, delay), *_] = scenario.trial(SEEDS[0])
            assert alarm
            assert delay is not None
            assert delay <= 2, scenario.name


SHORT = ("null, port closed for 0.2-2 s, 4 times an hour", "null, 12 pauses of 2-8 s an hour")
HARMLESS: tuple[Scenario, ...] = (
    *(one for one in detectors_presence.SCENARIOS if one.name in SHORT),
    *(one for one in detectors_devices.SCENARIOS if one in (Hangs(1, 3), Reread())),
    *(one for one in detectors_quiet.SCENARIOS if one.name == "null, a chat in 4 s"),
)


@pytest.mark.parametrize("scenario", HARMLESS)
def test_what_is_soon_over_pages_nobody(scenario: Scenario) -> None:
    """A day of short pauses, reloads, slow calls, new readers; hours of chats."""
    assert not any(alarm for _, _, alarm, _ in scenario.trial(SEEDS[0])), f"seed {SEEDS[0]}"


def test_harmless_scenarios_are_there() -> None:
    """None of them was renamed away."""
    assert len(HARMLESS) == 5
