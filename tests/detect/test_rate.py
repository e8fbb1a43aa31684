"""Tests of sidecar.detect.rate and its baselines: the specified rule, and what it learns from."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from sidecar.alarms.book import Book
from sidecar.config import RateLevelSettings, RateSettings
from sidecar.detect.level import Level
from sidecar.detect.minutes import Minute, Series
from sidecar.detect.rate import DOWN, OUT_OF_BAND, SHIFTED, Rate
from sidecar.detect.stored import keep
from sidecar.ledger import Tally
from sidecar.signals import Leg
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, AlarmState, Mark, MarkKind, Outcome, Verdict
from tests.detect.scenes import FAIL, PASS, UNKNOWN, blind, snap
from tests.export import made

WIRE = Series("wire", "", "qwen2-7b")
QWEN = RateLevelSettings(model="qwen2-7b", mean=42.6, sigma=3.8)
LLAMA = RateLevelSettings(model="llama3-8b", mean=38.2, sigma=4.1)
NAMES = (OUT_OF_BAND.name, SHIFTED.name)


def of(verdicts: Iterable[Verdict], rule: str = OUT_OF_BAND.name) -> Outcome | None:
    """What is said by a rule."""
    return next((v.outcome for v in verdicts if v.rule == rule), None)


class Service:
    """A series that is judged minute by minute, with the book of alarms that the detector heeds."""

    def __init__(self, rate: Rate | None = None, series: Series = WIRE, **settings: object) -> None:
        self.rate = rate or Rate(RateSettings(**settings))  # type: ignore[arg-type]
        self.series = series
        self.book = Book(max_step_seconds=90.0)
        self.at = made.AT
        self.marks: tuple[Mark, ...] = ()
        self.rng = random.Random(7)
        self.file: dict[str, str] = {}

    def minute(self, rate: float | None, concurrency: int = 8) -> tuple[Verdict, ...]:
        """One more minute; its verdicts."""
        self.at += 60.0
        found = self.rate.take(Minute(self.series, self.at, rate, 9_999.0, concurrency))
        self.book.update(found, self.at, self.at, self.marks)
        self.rate.heed(self.book.alarms(), self.marks)
        return found

    def minutes(
        self, count: int, mean: float, spread: float = 0.0, concurrency: int = 8
    ) -> list[tuple[Verdict, ...]]:
        """So many minutes around a mean."""
        return [
            self.minute(mean * (1 + spread * self.rng.gauss(0, 1)), concurrency)
            for _ in range(count)
        ]

    def level(self, concurrency: int = 8) -> Level:
        """The baseline at a concurrency."""
        found = self.rate._baselines.level(Minute(self.series, self.at, None, 0.0, concurrency))
        assert found is not None
        return found

    def alarms(self) -> dict[str, AlarmState]:
        """The alarms that there are."""
        return {alarm.rule: alarm.state for alarm in self.book.alarms()}

    def restart(self) -> None:
        """Another process, with what this one remembers, by way of a file."""
        known = self.rate.remember().items()
        self.file |= {key: json.dumps(what, allow_nan=False) for key, what in known}
        self.rate = Rate(self.rate._settings)
        self.rate.recall({key: json.loads(text) for key, text in self.file.items()})


@pytest.mark.parametrize(
    ("level", "rate", "fires"),
    [
        (QWEN, 33.0, True),
        (QWEN, 33.2, False),
        (QWEN, 52.0, False),
        (QWEN, 52.2, True),
        (LLAMA, 27.9, True),
        (LLAMA, 28.0, False),
    ],
)
def test_the_specified_table(level: RateLevelSettings, rate: float, fires: bool) -> None:
    """42.6 ± 3.8 → 33.1, 38.2 ± 4.1 → 27.95: three minutes beyond fire, and no other three."""
    service = Service(series=Series("wire", "", level.model), levels=(QWEN, LLAMA))
    found = [of(verdicts) for verdicts in service.minutes(3, rate)]
    assert found == [PASS, PASS, FAIL if fires else PASS]


def test_two_minutes_are_not_three() -> None:
    """A minute within the band in between starts the row anew."""
    service = Service(levels=(QWEN,))
    rates = (33.0, 33.0, 42.0, 33.0, 33.0, 33.0, 42.0)
    found = [of(service.minute(rate)) for rate in rates]
    assert found == [*[PASS] * 5, FAIL, PASS]


def test_idle_minutes_say_nothing_and_clear_nothing() -> None:
    """The service is quiet for five minutes: what fires keeps firing, and a row is not broken."""
    service = Service(levels=(QWEN,))
    assert of(service.minutes(3, 33.0)[-1]) is FAIL
    assert [of(service.minute(None)) for _ in range(5)] == [UNKNOWN] * 5
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.FIRING
    service.minute(42.0)
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.RESOLVED
    found = [of(service.minute(rate)) for rate in (33.0, None, 33.0, None, 33.0)]
    assert found == [PASS, UNKNOWN, PASS, UNKNOWN, FAIL]


def test_the_most_particular_level_counts() -> None:
    """Of this model and this concurrency before of any."""
    table = (
        RateLevelSettings(mean=10.0, sigma=1.0),
        RateLevelSettings(concurrency=8, mean=20.0, sigma=1.0),
        RateLevelSettings(model="qwen2-7b", mean=30.0, sigma=1.0),
        RateLevelSettings(model="qwen2-7b", concurrency=8, mean=40.0, sigma=1.0),
    )
    service, other = Service(levels=table), Service(series=Series("wire", "", "x"), levels=table)
    assert [s.level(n).mean for s in (service, other) for n in (8, 4)] == [40.0, 30.0, 20.0, 10.0]
    assert Service(levels=table[:3]).level(8).mean == 30.0  # a model's before a load's


def test_a_baseline_is_learned_before_anything_is_judged() -> None:
    """Sixty active minutes warm up and are unknown; then a rate like theirs passes."""
    service = Service()
    found = [of(verdicts) for verdicts in service.minutes(61, 42.6, 0.09)]
    assert found == [*[UNKNOWN] * 60, PASS]


def test_load_alone_raises_nothing() -> None:
    """121 → 51 → 22 tok/s a sequence at 1, 8 and 32 at once: unknown while a bin is new, then well.

    Without bins the first step alone is −8 σ.
    """
    service, found = Service(), {}
    for n, rate in ((1, 121.0), (8, 51.0), (32, 22.0)):
        found[n] = [of(v) for v in service.minutes(75, rate, 0.08, concurrency=n)]
        assert found[n] == [*[UNKNOWN] * 60, *[PASS] * 15]
    for n, rate in ((1, 121.0), (8, 51.0), (32, 22.0), (1, 121.0), (32, 22.0)) * 5:
        for verdicts in service.minutes(20, rate, 0.08, concurrency=n):
            assert {v.outcome for v in verdicts} <= {PASS, UNKNOWN}
            assert of(verdicts) is PASS
    assert service.alarms() == {}


def test_a_shift_inside_the_band_is_a_ticket() -> None:
    """−1.5 σ never leaves the band for three minutes; the chart sees it within the half hour."""
    service = Service()
    service.minutes(600, 42.6, 0.05)
    found = service.minutes(30, 42.6 * (1 - 1.5 * 0.05), 0.02)
    assert FAIL not in [of(verdicts) for verdicts in found]
    assert of(found[-1], SHIFTED.name) is FAIL


def test_the_chart_waits_until_it_knows_how_minutes_hang_together() -> None:
    """A configured level is enough for the specified rule, not for the chart: a healthy wave of
    minutes that follow each other would alarm.
    """
    service = Service(levels=(QWEN,))
    wave = [42.6 + 5.0 * math.sin(i / 8) for i in range(120)]
    found = [service.minute(rate) for rate in wave]
    assert {of(verdicts, SHIFTED.name) for verdicts in found} == {UNKNOWN}
    assert {of(verdicts) for verdicts in found} == {PASS}


def test_upwards_is_no_ticket() -> None:
    """Faster is out of the band when it is far, but not worse."""
    service = Service()
    service.minutes(600, 42.6, 0.05)
    found = service.minutes(30, 42.6 * (1 + 1.5 * 0.05), 0.02)
    assert SHIFTED.name not in service.alarms()
    assert of(found[-1], SHIFTED.name) is PASS


def test_an_alarm_freezes_its_baseline() -> None:
    """Three hours of a fault are not learned, and what is well again passes at once."""
    service = Service()
    service.minutes(600, 42.6, 0.05)
    service.minutes(180, 20.0, 0.05)
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.FIRING
    assert service.level().mean == pytest.approx(42.6, rel=0.01)
    assert of(service.minute(42.6)) is PASS
    assert service.level().mean == pytest.approx(42.6, rel=0.01)


def test_the_quarantine_keeps_out_what_came_before_the_alarm() -> None:
    """The two minutes before the third are dropped with it."""
    service = Service()
    service.minutes(200, 42.6, 0.05)
    service.minutes(3, 20.0)
    assert 20.0 not in [value for _, value in service.level().waiting]


def test_another_series_alarm_freezes_nothing() -> None:
    """Two replicas: one is ill, the other one goes on learning."""
    rate = Rate(RateSettings())
    ill, well = (Service(rate, Series("engine", r, "m")) for r in ("r0", "r1"))
    well.book = ill.book
    for _ in range(200):
        ill.minute(42.6 + ill.rng.gauss(0, 2))
        well.minute(42.6 + well.rng.gauss(0, 2))
    entered = well.level().entered
    for _ in range(10):
        ill.minute(20.0)
        well.minute(42.6 + well.rng.gauss(0, 2))
    states = {dict(a.labels)["replica"]: a.state for a in ill.book.alarms() if a.rule == NAMES[0]}
    assert states == {"r0": AlarmState.FIRING}
    assert well.level().entered == entered + 10


def test_another_series_minutes_are_not_this_ones() -> None:
    """How minutes hang together is learned of each series by itself."""
    rate, alone = Rate(RateSettings()), Service(series=Series("engine", "r0", "m"))
    one, other = (Service(rate, Series("engine", r, "m")) for r in ("r0", "r1"))
    for minute in range(300):
        one.minute(42.6 + math.sin(minute))
        alone.minute(42.6 + math.sin(minute))
        other.minute(20.0 + minute % 2)
    lags = [s.rate._baselines.charts(s.series).lag for s in (one, alone, other)]
    assert keep(lags[0]) == keep(lags[1])
    assert lags[2].pairs == lags[0].pairs > 200


def test_labels_are_those_of_the_alarm() -> None:
    """The book sorts labels: by any other order no alarm would be found, and nothing be frozen."""
    service = Service(series=Series("engine", "r0", "m"), levels=(QWEN, replace_model("m")))
    for verdict in service.minutes(3, 20.0)[-1]:
        assert verdict.labels == tuple(sorted(verdict.labels))
    assert service.level().alarm is AlarmState.FIRING


def replace_model(model: str) -> RateLevelSettings:
    """The table of Qwen2-7B for another one."""
    return QWEN.model_copy(update={"model": model})


def mark(service: Service, kind: MarkKind, minutes: float) -> Mark:
    """A stretch of time that is declared now."""
    return Mark(kind, "me", service.at, service.at + 60.0 * minutes)


@pytest.mark.parametrize("kind", [MarkKind.CHAOS, MarkKind.INCIDENT])
def test_a_mark_keeps_the_baseline_clean_and_mutes_nothing(kind: MarkKind) -> None:
    """A declared experiment alarms as ever, and not one of its minutes is learned."""
    service = Service()
    service.minutes(200, 42.6, 0.05)
    before = service.level().entered + len(service.level().waiting)
    service.marks = (mark(service, kind, 5),)
    service.rate.heed((), service.marks)
    found = service.minutes(5, 39.0)  # inside the band
    service.marks = ()
    service.minutes(1, 42.6)
    assert {of(verdicts) for verdicts in found} == {PASS}
    after = service.level().entered + len(service.level().waiting)
    assert after == before + 1
    assert 39.0 not in [value for _, value in service.level().waiting]


def test_a_mark_mutes_nothing() -> None:
    """During it, three minutes outside the band fire."""
    service = Service(levels=(QWEN,))
    service.marks = (mark(service, MarkKind.CHAOS, 60),)
    assert of(service.minutes(3, 33.0)[-1]) is FAIL


def deploy(service: Service, minutes: int = 3, rate: float = 25.0) -> None:
    """A deploy that takes so long, and is over."""
    service.marks = (mark(service, MarkKind.DEPLOY, minutes),)
    service.rate.heed(service.book.alarms(), service.marks)
    service.minutes(minutes, rate, 0.05)
    service.marks = ()
    service.rate.heed(service.book.alarms(), ())


def test_after_a_deploy_the_baseline_starts_anew() -> None:
    """The new version is slower and meant to be: it warms up, and is then what is normal."""
    service = Service()
    service.minutes(300, 42.6, 0.05)
    deploy(service)
    found = [of(verdicts) for verdicts in service.minutes(65, 25.0, 0.05)]
    assert found == [*[UNKNOWN] * 60, *[PASS] * 5]


def test_a_deploy_ends_an_alarm_about_the_baseline_of_before() -> None:
    """It fired since the new model is slower; once there is a new baseline, it resolves."""
    service = Service()
    service.minutes(300, 42.6, 0.05)
    service.minutes(10, 25.0, 0.05)
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.FIRING
    deploy(service)
    service.minutes(62, 25.0, 0.05)
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.RESOLVED


def test_an_alarm_about_the_new_baseline_freezes_it() -> None:
    """The alarm of before is resolved for less than an hour when the new version gets slow."""
    service = Service()
    service.minutes(300, 42.6, 0.05)
    service.minutes(10, 25.0, 0.05)
    deploy(service)
    service.minutes(62, 25.0, 0.05)
    service.minutes(10, 12.0, 0.05)
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.FIRING
    assert service.level().alarm is AlarmState.FIRING


def test_after_a_deploy_the_configured_level_counts_again() -> None:
    """What was learned is of the old version; what is configured is somebody's word."""
    service = Service(levels=(QWEN,))
    service.minutes(2_000, 39.0, 0.05)
    assert service.level().mean < 41.0
    deploy(service)
    assert service.level().mean == 42.6


def test_the_deploy_that_was_heeded_is_remembered() -> None:
    """With the baselines it ended; until there was one there is nothing to remember of any."""
    service = Service()
    service.minutes(3, 42.6)
    assert "marks/deploy" not in service.rate.remember()
    deploy(service)
    assert service.rate.remember()["marks/deploy"] == {"heeded": service.at}


def test_what_a_deploy_ended_does_not_come_back_with_a_restart() -> None:
    """Bins that were not visited since are unknown after it, though the file once had them."""
    service = Service()
    service.minutes(100, 121.0, 0.05, concurrency=1)
    service.minutes(100, 42.6, 0.05)
    service.restart()
    deploy(service)
    service.restart()
    assert of(service.minute(60.0, concurrency=1)) is UNKNOWN


def test_a_restart_changes_no_verdict() -> None:
    """Through JSON and back: baselines, charts, and a row that is two minutes long."""
    one, other = Service(), Service()
    for service in (one, other):
        service.minutes(400, 42.6, 0.06)
        service.minutes(2, 30.0)
    other.restart()
    for service in (one, other):
        assert of(service.minute(30.0)) is FAIL
    for rate in (41.0, 43.0, 36.0, 35.0, 34.0, 42.0):
        assert one.minute(rate) == other.minute(rate)


def test_a_series_that_is_not_seen_is_remembered() -> None:
    """An engine that is away for a week comes back to its baseline."""
    service = Service()
    service.minutes(100, 42.6, 0.05)
    service.restart()
    service.restart()
    assert of(service.minute(42.6)) is PASS


def kept(**changes: object) -> dict[str, dict[str, object]]:
    """What a service remembers of its level, changed."""
    service = Service()
    service.minutes(100, 42.6, 0.05)
    name = "rate/wire//qwen2-7b/8"
    return {name: {**service.rate.remember()[name], **changes}}


def test_what_is_kept_has_the_key_it_had() -> None:
    """The file's keys are read by others, too."""
    service = Service()
    service.minutes(3, 42.6)
    assert set(service.rate.remember()) == {"rate/wire//qwen2-7b/8", "charts/wire//qwen2-7b"}
    service.rate = Rate(RateSettings())
    service.rate.recall(kept())
    assert of(service.minute(42.6)) is PASS


@pytest.mark.parametrize(
    "foreign",
    [
        {},
        {"rate/wire//qwen2-7b/8": {}},
        {"rate/wire//qwen2-7b/8": {"mean": 42.6}},
        kept(mean="fast"),
        kept(mean=float("inf")),
        kept(variance=-1.0),
        kept(waiting=None),
        kept(more=1),
        kept(table=[1.0, 2.0]),
        {"charts/wire//qwen2-7b": {"run": 7, "chart": [], "lag": {"at": 1e300}}},
        {"slo/errors": kept()["rate/wire//qwen2-7b/8"]},
    ],
)
def test_broken_and_foreign_memory_is_left_out(foreign: dict[str, dict[str, object]]) -> None:
    """It starts anew and judges nothing by what makes no sense."""
    service = Service()
    service.rate.recall(foreign)
    found = [of(verdicts) for verdicts in service.minutes(61, 42.6, 0.05)]
    assert found == [*[UNKNOWN] * 60, PASS]


def test_a_new_table_counts_more_than_what_was_learned_from_the_old_one() -> None:
    """Somebody calibrated again: the numbers in the settings are the ones that judge."""
    service = Service(levels=(QWEN,))
    service.minutes(100, 42.6, 0.05)
    service.rate._settings = RateSettings(levels=(replace_mean(60.0),))
    service.restart()
    assert service.level().mean == 60.0


def test_the_same_table_goes_on_from_what_was_learned() -> None:
    """A restart does not throw a week of minutes away."""
    service = Service(levels=(QWEN,))
    service.minutes(500, 41.0, 0.05)
    mean = service.level().mean
    assert mean != 42.6
    service.restart()
    assert service.level().mean == mean


def replace_mean(mean: float) -> RateLevelSettings:
    """The table of Qwen2-7B with another mean."""
    return QWEN.model_copy(update={"mean": mean})


def test_memory_that_comes_late_replaces_what_cannot_judge_yet() -> None:
    """The file was locked by the sidecar before us: ten minutes later its baselines are ours."""
    old = Service()
    old.minutes(100, 42.6, 0.05)
    fresh = Service()
    fresh.at = old.at
    fresh.minutes(10, 42.6, 0.05)
    fresh.rate.recall(json.loads(json.dumps(old.rate.remember())))
    assert of(fresh.minute(42.6)) is PASS


def test_memory_that_comes_late_does_not_replace_what_knows_more() -> None:
    """A level of many minutes stays; one of the same table that has learned for longer is taken."""
    old, fresh = Service(levels=(QWEN,)), Service(levels=(QWEN,))
    old.minutes(500, 41.0, 0.05)
    fresh.at = old.at
    fresh.minutes(10, 42.6, 0.05)
    mean = old.level().mean
    late = json.loads(json.dumps(old.rate.remember()))
    fresh.rate.recall(late)
    assert fresh.level().mean == mean
    fresh.minutes(100, 42.6, 0.05)
    ahead = fresh.level().mean
    fresh.rate.recall(late)
    assert fresh.level().mean == ahead != mean


def test_levels_are_bounded() -> None:
    """Of too many models the later ones are unknown, until an old one has been away for a day."""
    rate = Rate(RateSettings(levels=(QWEN.model_copy(update={"model": ""}),)))
    services = [Service(rate, Series("wire", "", f"m{i}")) for i in range(201)]
    found = [of(service.minute(42.6)) for service in services]
    assert found == [*[PASS] * 200, UNKNOWN]
    last = services[-1]
    last.at += 86_400.0
    assert of(last.minute(42.6)) is PASS
    assert len(rate._baselines._levels) == 200


@pytest.mark.parametrize("rate", [math.nan, math.inf, -1.0, 1e12])
def test_no_rate_at_all_says_nothing_and_is_not_learned(rate: float) -> None:
    """Not a number, negative, beyond range: neither good nor bad, and no part of a mean."""
    service = Service()
    service.minutes(100, 42.6, 0.05)
    before = keep(service.level())
    assert {v.outcome for v in service.minute(rate)} == {UNKNOWN}
    assert {**keep(service.level()), "waiting": 0, "mean": 0} == {**before, "waiting": 0, "mean": 0}


def test_a_clock_ten_years_ahead_blinds_nobody_for_ten_years() -> None:
    """It is set right, and the next minutes are judged and learned again."""
    service = Service()
    service.minutes(200, 42.6, 0.05)
    service.at += 10 * 365 * 86_400.0
    service.minutes(90, 42.6, 0.05)
    service.at = made.AT + 200 * 60.0
    found = service.minutes(200, 42.6, 0.05)
    assert {of(verdicts) for verdicts in found} == {PASS}
    assert len(service.level().waiting) == pytest.approx(60, abs=2)
    lag = service.rate._baselines.charts(WIRE).lag
    assert lag.at is not None
    assert lag.at < service.at


def test_a_clock_set_back_by_a_minute_costs_minutes_and_nothing_else() -> None:
    """Unknown until time has moved on; then as before."""
    service = Service(levels=(QWEN,))
    service.minutes(5, 42.0)
    service.at -= 120.0
    assert [of(v) for v in service.minutes(3, 42.0)] == [UNKNOWN, UNKNOWN, PASS]


def test_the_text_says_how_fast_at_what_load_by_whom() -> None:
    """And the evidence has the band and the baseline, all of it finite."""
    service = Service(levels=(QWEN,))
    verdict = service.minutes(3, 33.0)[-1][0]
    assert verdict.text == (
        "33 tokens/s a sequence at 8 at once, below its band around 42.6; by the wire"
    )
    evidence = dict(verdict.evidence)
    assert evidence["lower"] == pytest.approx(33.1)
    assert evidence["upper"] == pytest.approx(52.1)
    assert "ewma_z" not in evidence


# Field cases of group F, by what the detector is given: snapshots of a tap and of an engine.


class Wire:
    """A tap that counts what so many sequences get, minute by minute."""

    def __init__(self, rate: Rate | None = None) -> None:
        self.rate = rate or Rate(RateSettings())
        self.tally = Tally()
        self.at, self.clock = made.AT, 1_000.0
        self.rng = random.Random(3)
        self.look()

    def look(self, open_requests: int = 8) -> list[Verdict]:
        """A snapshot of now, judged."""
        window = made.window(Leg.UPSTREAM, open_requests=open_requests)
        tallies = {Leg.UPSTREAM: self.tally}
        return self._judge(snap(self.at, tallies=tallies, windows=(window,)))

    def dark(self) -> list[Verdict]:
        """A second without a tap."""
        self.clock += 1.0
        return self._judge(blind(self.at))

    def _judge(self, snapshot: Snapshot) -> list[Verdict]:
        return list(self.rate.judge(snapshot, self.clock))

    def minute(self, total: float, running: int, waiting: int = 0) -> list[Verdict]:
        """A minute in which ``running`` sequences get ``total`` tokens a second together."""
        more = Tally(gaps=round(60 * total), decode_seconds=60.0 * running)
        gaps, seconds = self.tally.gaps + more.gaps, self.tally.decode_seconds + 60.0 * running
        self.tally = replace(self.tally, gaps=gaps, decode_seconds=seconds)
        self.at += 60.0
        self.clock += 60.0
        return self.look(running + waiting)

    def usual(self, total: float, running: int, spread: float = 0.09) -> None:
        """Ten hours of it."""
        for _ in range(600):
            self.minute(total * (1 + spread * self.rng.gauss(0, 1)), running)


def test_field_case_34_b_the_storm_alarms() -> None:
    """240 tok/s of 8, then 55 of 7 with one that waits: alarm and page in its third minute."""
    wire = Wire()
    wire.usual(240.0, 8)
    found = [wire.minute(240.0, 8) for _ in range(4)]
    found += [wire.minute(55.0, 7, waiting=1) for _ in range(3)]
    for rule in (OUT_OF_BAND.name, DOWN.name):
        assert [of(verdicts, rule) for verdicts in found] == [*[PASS] * 6, FAIL]


@pytest.mark.parametrize("spread", [0.001, 0.02, 0.09])
def test_field_case_35_b_five_percent_are_no_alarm(spread: float) -> None:
    """68.55 → 64.97 tok/s over eleven points, however steady the card was before."""
    bursts = (68.55, 67.43, 67.15, 66.88, 66.29, 65.74, 65.42, 65.23, 65.24, 65.23, 64.97)
    wire = Wire()
    wire.usual(68.55, 1, spread)
    found = [wire.minute(rate, 1) for rate in (*bursts, *[64.97] * 30)]
    for rule in (OUT_OF_BAND.name, DOWN.name):
        assert {of(verdicts, rule) for verdicts in found} == {PASS}


def test_field_case_36_b_a_fall_by_half_is_a_page() -> None:
    """31.95 → 14.65 tok/s, whatever the cause; a restart ends it."""
    wire = Wire()
    wire.usual(31.95, 1)
    found = [wire.minute(14.65, 1) for _ in range(3)]
    assert [of(verdicts) for verdicts in found] == [PASS, PASS, FAIL]
    assert of(found[-1], DOWN.name) is FAIL
    after = wire.minute(31.95, 1)
    assert of(after) is of(after, DOWN.name) is PASS


def test_a_blind_tap_is_unknown_at_once() -> None:
    """The verdict of the last minute is not repeated for a source that is away."""
    wire = Wire(Rate(RateSettings(levels=(QWEN.model_copy(update={"model": ""}),))))
    assert of(wire.minute(42.0 * 8, 8)) is PASS
    assert of(wire.look()) is PASS
    assert wire.dark() == []
    wire.clock += 1.0
    assert wire.look() == []  # nor for one that has just come back


def test_a_verdict_is_repeated_until_the_next_minute() -> None:
    """The book counts seconds: a minute's verdict holds while it lasts."""
    wire = Wire(Rate(RateSettings(levels=(QWEN.model_copy(update={"model": ""}),))))
    for _ in range(3):
        wire.minute(20.0 * 8, 8)
    wire.clock += 30.0
    assert of(wire.look()) is FAIL


def test_switched_off_it_says_nothing() -> None:
    """`rate.enabled: false`."""
    wire = Wire(Rate(RateSettings(enabled=False)))
    assert wire.minute(240.0, 8) == wire.minute(240.0, 8) == []


def test_alarms_of_others_are_not_heeded() -> None:
    """Another rule with the same labels freezes nothing."""
    service = Service()
    service.minutes(100, 42.6, 0.05)
    [labels] = {v.labels for v in service.minute(42.6)}
    page = made.AT
    service.rate.heed((Alarm("Other", labels, AlarmState.FIRING, OUT_OF_BAND.severity, page),), ())
    assert service.level().alarm is AlarmState.INACTIVE
