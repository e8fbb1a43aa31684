"""Tests of sidecar.watch: from snapshots to alarms, over restarts, reloads and bad disks."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sidecar import watch as module
from sidecar.alarms import marks
from sidecar.alarms import status as store_status
from sidecar.alarms.standing import Transition
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.config import (
    AlarmSettings,
    ObjectiveSettings,
    RateLevelSettings,
    RateSettings,
    Settings,
    SloSettings,
    TargetSettings,
    WirePort,
    WireSettings,
)
from sidecar.detect import DETECTORS, rules
from sidecar.export.notify.status import STATE as OUTPUTS
from sidecar.ledger import Tally
from sidecar.objectives import Score
from sidecar.signals import Absence, CollectorState, CollectorStatus, Leg, Sample
from sidecar.snapshot import Snapshot
from sidecar.streams import Stall
from sidecar.testing import wait_for
from sidecar.verdicts import Alarm, AlarmState, MarkKind, Rule, Severity, Verdict
from sidecar.watch import Watch
from tests.detect.scenes import blind, engine, port, snap, status
from tests.export import made

PENDING, FIRING, RESOLVED = AlarmState.PENDING, AlarmState.FIRING, AlarmState.RESOLVED
REPLICAS = tuple(TargetSettings(name=f"r{i}", url=f"http://10.0.0.{i}:8081") for i in range(2))
PORTS = WireSettings(ports=(WirePort(port=8080, leg=Leg.DOWNSTREAM),))
DOWN = Leg.DOWNSTREAM


def settings(**sections: object) -> Settings:
    """Two engines and a watched port, unless the sections say otherwise."""
    return Settings(**{"engines": REPLICAS, "wire": PORTS, **sections})  # type: ignore[arg-type]


def kept(path: Path, **more: object) -> dict[str, object]:
    """The section that keeps alarms in a file."""
    return {"alarms": AlarmSettings(database=path, **more)}  # type: ignore[arg-type]


class Rounds:
    """A watch that judges a second after the other; every start is at another monotonic time."""

    def __init__(self, chosen: Settings | None = None, at: float = made.AT, **more: object) -> None:
        self.watch = Watch(chosen or settings(), **more)  # type: ignore[arg-type]
        self.at, self.clock = at, 50.0

    def judge(self, *scenes: Snapshot, seconds: float = 1.0) -> Snapshot:
        """These, a second apart; the last one with its alarms."""
        for scene in scenes:
            self.at, self.clock = self.at + seconds, self.clock + seconds
            found = self.watch.judge(replace(scene, at=self.at), self.clock)
        return found


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "alarms.db"


@pytest.fixture
def running(database: Path) -> Iterator[Rounds]:
    """A watch with a file, and its thread that writes."""
    rounds = Rounds(settings(**kept(database)))
    rounds.watch.start()
    yield rounds
    rounds.watch.stop()


def states(snapshot: Snapshot) -> dict[str, AlarmState]:
    """The state of each alarm by rule."""
    return {alarm.rule: alarm.state for alarm in snapshot.alarms}


def value(snapshot: Snapshot, name: str, **labels: str) -> float | None:
    """One sample's value, None where there is none."""
    found = [
        s.value
        for s in snapshot.samples
        if isinstance(s, Sample) and s.metric == name and dict(s.labels) == labels
    ]
    assert len(found) <= 1
    return found[0] if found else None


def collectors(**absences: Absence | None) -> tuple[CollectorStatus, ...]:
    """Engines' collectors by replica: blind for this reason, or well."""
    return tuple(
        status(f"engine:{name}") if why is None else made.blind(f"engine:{name}", why, "refused")
        for name, why in absences.items()
    )


WELL = snap(collectors=(*collectors(r0=None, r1=None), status("probes")))
GONE = snap(collectors=(*collectors(r0=Absence.REFUSED, r1=None), status("probes")))
BURST = (snap(), snap(tallies={DOWN: Tally(ended=9, failed=9)}))


def test_alarms_reach_the_snapshot() -> None:
    """Pending, firing, resolved, as the seconds pass; and nothing of the snapshot is lost."""
    rounds = Rounds()
    assert rounds.judge(WELL).alarms == ()
    assert states(rounds.judge(GONE)) == {"EngineGone": PENDING}
    found = rounds.judge(GONE, GONE, GONE)
    assert states(found) == {"EngineGone": FIRING}
    assert found.collectors == GONE.collectors
    assert states(rounds.judge(*[WELL] * 11)) == {"EngineGone": RESOLVED}


def test_a_healthy_service_raises_nothing() -> None:
    """Ten minutes of two engines behind a gateway, which generate tokens."""
    rounds, scene = Rounds(), made.snapshot()
    for second in range(600):
        samples = tuple(
            replace(s, value=s.value + 409.0 * second)
            if isinstance(s, Sample) and s.metric.endswith("_total")
            else s
            for s in scene.samples
        )
        assert rounds.judge(replace(scene, samples=samples)).alarms == ()


@pytest.mark.parametrize("first", [WELL, replace(GONE, samples=(port(8080, False, DOWN),))])
def test_starting_up_pages_nobody(first: Snapshot) -> None:
    """Gateway, engines and tap come up in any order, some of them minutes after the sidecar."""
    rounds = Rounds()
    starting = [made.status(name, CollectorState.STARTING) for name in ("engine:r0", "probes")]
    refused = [made.blind(name, Absence.REFUSED, "not yet") for name in ("engine:r0", "probes")]
    down = (port(8080, False, DOWN),)
    scenes = [blind(collectors=tuple(starting)), blind(collectors=tuple(refused), samples=down)]
    for scene in (*scenes, *[scenes[1]] * 200, made.no_traffic(), *[first] * 5):
        assert rounds.judge(scene).alarms == ()


class Broken:
    """A detector with a bug."""

    name = "broken"
    rules: tuple[Rule, ...] = ()

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        raise RuntimeError("a bug")
        yield

    heed = remember = recall = judge


def test_a_detector_that_raises_is_counted_logged_once_and_silences_nobody() -> None:
    """The others go on; its failures can be seen and do not fill the log."""
    rounds = Rounds()
    rounds.watch._detectors._all = (Broken(), *rounds.watch._detectors._all)
    with capture_logs() as logs:
        found = rounds.judge(*BURST, *[snap()] * 5)
    assert states(found) == {"ErrorBurst": FIRING}
    assert (value(found, module.FAILURES.name, detector="broken") or 0) >= 7
    failed = [entry for entry in logs if entry["event"] == "detector failed"]
    assert len(failed) == 1
    assert failed[0]["detector"] == "broken"


def test_what_the_round_found_is_counted() -> None:
    """By rule and outcome, unknown too; every detector has a counter of failures from the start."""
    found = Rounds().judge(*BURST)
    counts = {o: value(found, module.VERDICTS.name, rule="ErrorBurst", outcome=o) for o in OUTCOMES}
    assert counts == {"pass": 0.0, "fail": 1.0, "unknown": 0.0}
    dark = Rounds().judge(blind())
    assert value(dark, module.VERDICTS.name, rule="ErrorBurst", outcome="unknown") == 2.0
    failures = {name: value(found, module.FAILURES.name, detector=name) for name in DETECTORS}
    assert failures == dict.fromkeys(DETECTORS, 0.0)
    assert value(found, module.REFUSED.name) == 0.0


OUTCOMES = ("pass", "fail", "unknown")


def test_a_disabled_rule_does_not_alarm() -> None:
    """Nor is it counted; the others are as ever."""
    rounds = Rounds(settings(alarms=AlarmSettings(disabled=("ErrorBurst",))))
    found = rounds.judge(*BURST, *[GONE] * 4)
    assert "ErrorBurst" not in states(found)
    assert value(found, module.VERDICTS.name, rule="ErrorBurst", outcome="fail") is None


def test_the_store_says_how_it_fares(running: Rounds) -> None:
    """One state is 1 and the others 0."""
    found = running.judge(WELL)
    told = {s.value: value(found, store_status.STORE.name, state=s.value) for s in StoreState}
    assert told == {s.value: float(s is StoreState.OK) for s in StoreState}
    without = Rounds().judge(WELL)
    assert value(without, store_status.STORE.name, state="disabled") == 1.0


def test_the_store_says_what_failed_and_what_it_lost(database: Path, running: Rounds) -> None:
    """While another process holds the file it falls behind; when it is let go it has all again."""
    names = [m.name for m in store_status.METRICS if m is not store_status.STORE]
    assert {value(Rounds().judge(WELL), name) for name in names} == {None}
    running.judge(WELL)
    status = running.watch._writer.status
    wait_for(lambda: status().durable == status().rounds, what="a first write")
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        running.judge(*BURST)
        assert not running.watch._writer.level("rate/x", "no JSON")
        wait_for(lambda: status().lag_seconds > 0.2, what="a write waits")
        found = running.judge(snap())
        other.execute("ROLLBACK")
    assert 0.2 < (value(found, store_status.STORE_LAG.name) or 0.0) < 60.0
    dropped = [
        value(found, store_status.STORE_DROPPED.name, kind=k) for k in ("level", "transition")
    ]
    assert dropped == [1.0, 0.0]
    assert value(found, store_status.STORE_FAILURES.name) == 0.0
    wait_for(lambda: status().lag_seconds == 0.0, what="everything written")


def test_a_file_that_cannot_be_opened_is_counted(tmp_path: Path) -> None:
    """Its folder is missing: each attempt is a failure, and the lag is as long as the process."""
    rounds = Rounds(settings(**kept(tmp_path / "no" / "alarms.db")))
    rounds.watch.start()
    rounds.judge(WELL)
    wait_for(lambda: rounds.watch._writer.status().failures, what="an attempt")
    found = rounds.judge(WELL)
    assert (value(found, store_status.STORE_FAILURES.name) or 0.0) >= 1.0
    assert (value(found, store_status.STORE_LAG.name) or 0.0) > 0.0
    assert rounds.watch.stop()


# Restarts: with the file of before.


def restarted(database: Path, before: Rounds, seconds: float = 30.0, **more: object) -> Rounds:
    """Another process with the same file, half a minute later."""
    assert before.watch.stop()
    return Rounds(settings(**{**kept(database), **more}), at=before.at + seconds)


def test_what_fires_fires_on_after_a_restart(database: Path, running: Rounds) -> None:
    """Also while the new process cannot judge it; when it can and all is well, it resolves."""
    running.judge(WELL, *[GONE] * 5)
    again = restarted(database, running)
    found = again.judge(snap(collectors=collectors(r0=None, r1=None)[1:]))
    [alarm] = found.alarms
    assert (alarm.rule, alarm.state, alarm.known) == ("EngineGone", FIRING, False)
    assert alarm.fired is not None
    assert alarm.fired < again.at - 30.0
    assert states(again.judge(*[WELL] * 12)) == {"EngineGone": RESOLVED}


def test_a_pending_alarm_goes_on_where_it_was(database: Path, running: Rounds) -> None:
    """40 of 60 seconds had passed; the half hour in between does not count, 20 more do."""
    dark = replace(GONE, collectors=(made.blind("probes", Absence.TIMEOUT, "late"),))
    running.judge(snap(), *[dark] * 41)
    again = restarted(database, running, seconds=1_800.0)
    found = again.judge(*[dark] * 18)
    assert states(found) == {"SourceBlind": PENDING}
    assert states(again.judge(*[dark] * 5)) == {"SourceBlind": FIRING}


def test_what_detectors_know_survives_a_restart(database: Path, running: Rounds) -> None:
    """A budget that is nearly spent is not full again, and an engine that was there is missed."""
    scores = {"errors": Score(900, 90)}
    running.judge(WELL, *[replace(WELL, scores=scores)] * 12)
    again = restarted(database, running)
    known = again.watch._detectors.known()
    assert "engine:r0" in known["presence/seen"]
    [budget] = [text for key, text in known.items() if key.startswith("slo/errors")]
    assert json.loads(budget)["told"][1:] == [900, 90]
    again.judge(*[GONE] * 5)
    assert states(again.judge(GONE))["EngineGone"] is FIRING


@pytest.mark.parametrize("payload", ["{", "[1]", "null", '{"names": 7}', "NaN", "[" * 99_999])
def test_a_file_that_somebody_wrote_into_stops_nothing(
    database: Path, running: Rounds, payload: str
) -> None:
    """What is no memory of a detector is left out; the alarms are there, and judging goes on."""
    running.judge(WELL, *[GONE] * 5)
    assert running.watch.stop()
    with closing(sqlite3.connect(database)) as file:
        for key in ("slo/errors/errors/downstream/0", "presence/seen", "rate/wire//m/8", "x"):
            file.execute("INSERT OR REPLACE INTO levels VALUES (?, ?, 0)", (key, payload))
        file.commit()
    again = Rounds(settings(**kept(database)), at=running.at)
    found = again.judge(WELL)
    assert states(found) == {"EngineGone": FIRING}
    assert {value(found, module.FAILURES.name, detector=name) for name in DETECTORS} == {0.0}


# Reloads.


def test_a_reload_keeps_what_is_known() -> None:
    """The gateway's port was up before: it is gone afterwards, and not starting."""
    rounds = Rounds()
    up, down = (snap(samples=(port(8080, is_up, DOWN),)) for is_up in (True, False))
    rounds.judge(up)
    rounds.watch.reconfigure(settings(slo=SloSettings(error_ratio=0.5)))
    assert states(rounds.judge(*[down] * 5)) == {"GatewayGone": FIRING}


def test_a_reload_leaves_objectives_as_they_were() -> None:
    """What is counted of them changes at a restart; judging others by it would be wrong."""
    rounds = Rounds()
    other = ObjectiveSettings(name="other", signal="errors", target=0.9)
    rounds.watch.reconfigure(settings(slo=SloSettings(objectives=(other,))))
    rounds.judge(WELL)
    verdicts = rounds.watch._detectors.judge(WELL, rounds.clock)
    named = {dict(v.labels)["objective"] for v in verdicts if v.rule == "SloBurnFast"}
    assert named == {"errors"}


def test_the_last_of_two_reloads_counts() -> None:
    """Asked twice within a second, the settings are the latest."""
    rounds = Rounds()
    for disabled in (("EngineGone",), ("ErrorBurst",)):
        rounds.watch.reconfigure(settings(alarms=AlarmSettings(disabled=disabled)))
    assert states(rounds.judge(*BURST, WELL, *[GONE] * 5)) == {"EngineGone": FIRING}


class Recorder:
    """An outlet that keeps what it is given."""

    def __init__(self) -> None:
        self.rounds: list[tuple[tuple[Alarm, ...], list[Transition]]] = []

    def publish(self, alarms: tuple[Alarm, ...], transitions: list[Transition]) -> None:
        self.rounds.append((alarms, transitions))

    def samples(self) -> Iterator[Sample]:
        yield Sample("recorder", float(len(self.rounds)))


def test_the_outlet_has_every_round_and_every_change() -> None:
    """All alarms each second; a change in the round in which it happened and in no other."""
    outlet = Recorder()
    found = Rounds(outlet=outlet).judge(*BURST, snap(), snap())
    assert [len(transitions) for _, transitions in outlet.rounds] == [0, 1, 0, 0]
    assert [len(alarms) for alarms, _ in outlet.rounds] == [0, 1, 1, 1]
    assert value(found, "recorder") == 4.0


class Deaf(Recorder):
    """An outlet with a bug that shows when something has happened, or when it is asked."""

    def __init__(self, mute: bool = False) -> None:
        super().__init__()
        self.mute = mute

    def publish(self, alarms: tuple[Alarm, ...], transitions: list[Transition]) -> None:
        super().publish(alarms, transitions)
        if transitions:
            raise RuntimeError("a bug")

    def samples(self) -> Iterator[Sample]:
        if self.mute:
            raise RuntimeError("another bug")
        yield from super().samples()


@pytest.mark.parametrize("mute", [False, True])
def test_an_outlet_that_raises_does_not_keep_the_snapshot_back(mute: bool) -> None:
    """The alarm fires on the page; the failures are counted, logged once, and the next round is
    handed over again.
    """
    outlet = Deaf(mute)
    rounds = Rounds(outlet=outlet)
    with capture_logs() as logs:
        found = rounds.judge(*BURST, snap(), snap())
    assert states(found) == {"ErrorBurst": FIRING}
    assert len(outlet.rounds) == 4
    assert value(found, module.OUTLET_FAILURES.name) == (5.0 if mute else 1.0)
    assert value(found, "recorder") == (None if mute else 4.0)
    assert len([entry for entry in logs if entry["event"] == "outputs of alarms failed"]) == 1


def test_a_reload_brings_another_outlet() -> None:
    """From the next round on alarms go there and nowhere else."""
    old, new = Recorder(), Recorder()
    rounds = Rounds(outlet=old)
    rounds.judge(WELL)
    rounds.watch.reconfigure(settings(), new)
    rounds.judge(WELL, WELL)
    assert (len(old.rounds), len(new.rounds)) == (1, 2)


# What was taken out: an alarm that nobody will ever judge again ends.


def fired(rounds: Rounds, *scenes: Snapshot) -> set[str]:
    """The rules that fire after these."""
    return {rule for rule, state in states(rounds.judge(*scenes)).items() if state is FIRING}


ALARMING = snap(
    collectors=(*collectors(r0=Absence.REFUSED, r1=None), made.blind("nvml", Absence.TIMEOUT, "")),
    samples=(port(8080, False, DOWN),),
    stalls={DOWN: Stall(4, 4, 9.0)},
)
BEFORE = snap(
    collectors=(*collectors(r0=None, r1=None), status("nvml")), samples=(port(8080, True, DOWN),)
)
QUIET = snap(collectors=collectors(r1=None))
AWAY = replace(QUIET, tallies=None, stalls=None, legs=())


@pytest.mark.parametrize(
    ("change", "ended"),
    [
        ({}, {"SourceBlind"}),  # its collector is not there any more
        ({"engines": REPLICAS[1:]}, {"EngineGone"}),
        ({"wire": WireSettings()}, {"GatewayGone", "StreamsStuck"}),
        ({"alarms": AlarmSettings(disabled=("StreamsStuck",))}, {"StreamsStuck"}),
    ],
)
def test_alarms_about_what_was_taken_out_end(change: dict[str, object], ended: set[str]) -> None:
    """A replica, a port, a leg, a collector, a rule: no data will ever come of it."""
    rounds = Rounds()
    everything = {"EngineGone", "GatewayGone", "SourceBlind", "StreamsStuck"}
    assert fired(rounds, BEFORE, *[ALARMING] * 70) == everything
    rounds.watch.reconfigure(settings(**change))
    scene = replace(AWAY, stalls={}) if "wire" in change or "alarms" in change else AWAY
    left = fired(rounds, scene, scene)
    assert ended <= everything - left
    assert left >= everything - ended - {"SourceBlind"}


def test_no_data_ends_nothing_that_is_still_configured() -> None:
    """The tap, the engine and the driver are all blind for an hour: everything fires on."""
    rounds = Rounds()
    before = fired(rounds, BEFORE, *[ALARMING] * 70)
    dark = tuple(
        made.blind(name, Absence.TIMEOUT, "late")
        for name in ("probes", "engine:r0", "engine:r1", "nvml")
    )
    assert fired(rounds, *[blind(collectors=dark)] * 3_600) >= before


def test_a_rule_that_this_version_does_not_have_ends(database: Path, running: Rounds) -> None:
    """After a change of versions nobody judges it any more."""
    running.judge(WELL)
    old = Alarm("OfAnotherVersion", (), FIRING, Severity.PAGE, made.AT, fired=made.AT)
    [standing] = _standings(old)
    running.watch._book.adopt([standing])
    running.judge(WELL)
    assert states(running.judge(WELL))["OfAnotherVersion"] is RESOLVED


def _standings(*alarms: Alarm) -> list[object]:
    from sidecar.alarms.standing import Standing

    return [Standing(alarm, firings=1) for alarm in alarms]


def adopted(rounds: Rounds, rule: str, **labels: str) -> None:
    """An alarm that an earlier process left firing."""
    alarm = Alarm(
        rule, tuple(sorted(labels.items())), FIRING, Severity.PAGE, made.AT, fired=made.AT
    )
    rounds.watch._book.adopt(_standings(alarm))  # type: ignore[arg-type]


def card(gpu: str, uuid: str, state: str) -> Sample:
    """What NVML's collector says of a card."""
    labels = (("gpu", gpu), ("uuid", uuid), ("state", state))
    return Sample("modelprobe_gpu_state", 1.0, labels)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        (card("3", "GPU-new", "ok"), RESOLVED),
        (card("3", "GPU-new", "not_answering"), FIRING),
        (card("2", "GPU-new", "ok"), FIRING),
        (card("3", "GPU-old", "lost"), FIRING),
    ],
)
@pytest.mark.parametrize("uuid", ["GPU-old", "unknown"])
def test_a_card_in_whose_place_another_one_answers(uuid: str, said: Sample, state: str) -> None:
    """It was exchanged, or could not say its name at first: its alarm would fire for ever."""
    rounds = Rounds()
    adopted(rounds, "GpuLost", gpu="3", uuid=uuid)
    found = rounds.judge(*[snap(collectors=(status("nvml"),), samples=(said,))] * 2)
    by_uuid = {dict(alarm.labels)["uuid"]: alarm.state for alarm in found.alarms}
    assert by_uuid[uuid] == state


def test_a_card_that_alarmed_by_its_address_and_has_a_name_now() -> None:
    """By the kernel's log, while NVML could not be asked: its alarm goes on under its name."""
    rounds = Rounds()
    adopted(rounds, "GpuNeedsAction", pci="0000:07:00.0")
    labels = (("gpu", "3"), ("uuid", "GPU-3"), ("pci", "0000:07:00.0"))
    said = (card("3", "GPU-3", "ok"), Sample("modelprobe_gpu_info", 1.0, labels))
    assert states(rounds.judge(snap()))["GpuNeedsAction"] is FIRING
    found = rounds.judge(*[snap(collectors=(status("nvml"),), samples=said)] * 2)
    assert states(found)["GpuNeedsAction"] is RESOLVED


@pytest.mark.parametrize(
    ("model", "absence", "state"),
    [("new", None, RESOLVED), ("old", None, FIRING), ("new", Absence.TIMEOUT, FIRING)],
)
def test_a_model_that_no_engine_serves_any_more(
    model: str, absence: Absence | None, state: AlarmState
) -> None:
    """After a deploy of another one; while some engine cannot say what it serves nothing ends."""
    rounds = Rounds()
    adopted(rounds, "TokenRateOutOfBand", source="wire", model="old")
    said = snap(collectors=collectors(r0=None, r1=absence), samples=tuple(engine(model=model)))
    assert states(rounds.judge(said, said))["TokenRateOutOfBand"] is state


# Marks.


def test_a_mark_annotates_and_mutes_nothing(database: Path, running: Rounds) -> None:
    """Declared by a command beside the running sidecar; the alarm fires and carries it."""
    now = time.time()
    running.at = now
    begin, end = (datetime.fromtimestamp(now + s, UTC) for s in (-5.0, 600.0))
    mark = marks.checked(MarkKind.CHAOS, "me", begin, end, "stop the engine", now)
    marks.add(database, mark)
    wait_for(running.watch._writer.marks, what="the mark")
    found = running.judge(*BURST)
    [alarm] = found.alarms
    assert (alarm.state, alarm.marks) == (FIRING, (mark,))


def test_a_deploy_that_ends_while_nobody_runs_is_heeded_at_the_next_start(
    database: Path, running: Rounds
) -> None:
    """Its baselines are of the version before; a second restart throws nothing away again."""
    rate = RateSettings(levels=(RateLevelSettings(mean=42.6, sigma=3.8),))
    running.watch.reconfigure(settings(**kept(database), rate=rate))
    running.at = time.time() - 3_600.0
    scenes = [decoding(i) for i in range(7)]
    running.judge(*scenes[:3], seconds=60.0)
    assert levels_of(running) == [True]
    assert running.watch.stop()
    begin, end = (datetime.fromtimestamp(running.at + s, UTC) for s in (60.0, 120.0))
    marks.add(database, marks.checked(MarkKind.DEPLOY, "me", begin, end, "v2", time.time()))
    again = Rounds(settings(**kept(database), rate=rate), at=running.at + 600.0)
    assert levels_of(again) == [True]
    again.watch.start()
    wait_for(again.watch._writer.marks, what="the mark")
    again.judge(scenes[3])
    assert levels_of(again) == [False]
    again.judge(*scenes[4:], seconds=60.0)
    assert levels_of(again) == [True]
    assert again.watch.stop()
    third = Rounds(settings(**kept(database), rate=rate), at=again.at + 60.0)
    third.watch.start()
    wait_for(third.watch._writer.marks, what="the mark")
    third.judge(snap())
    assert levels_of(third) == [True]
    assert third.watch.stop()


def levels_of(rounds: Rounds) -> list[bool]:
    """Of each baseline of a rate, whether anything is known of it."""
    known = rounds.watch._detectors.known()
    return [text != "{}" for key, text in known.items() if key.startswith("rate/")]


# Bad labels, too many alarms, bad disks.


def test_hostile_names_go_all_the_way(database: Path, running: Rounds) -> None:
    """A replica that is markup, control characters and half a surrogate: alarm, file, and back."""
    name = f"engine:{made.HOSTILE}"
    running.judge(snap(collectors=(status(name),)))
    dead = snap(collectors=(made.blind(name, Absence.REFUSED, made.HOSTILE),))
    assert states(running.judge(*[dead] * 5)) == {"EngineGone": FIRING}
    again = restarted(database, running)
    [alarm] = again.watch._book.alarms()
    assert dict(alarm.labels) == {"replica": made.HOSTILE}


def test_five_hundred_alarms_and_not_one_more() -> None:
    """600 engines are gone: 500 alarms, and what found no room is counted."""
    rounds = Rounds()
    names = [f"engine:e{i}" for i in range(600)]
    rounds.judge(snap(collectors=tuple(map(status, names))))
    dead = tuple(made.blind(name, Absence.REFUSED, "refused") for name in names)
    found = rounds.judge(*[snap(collectors=dead)] * 5)
    assert len(found.alarms) == 500
    assert (value(found, module.REFUSED.name) or 0.0) >= 100
    assert len({alarm.key for alarm in found.alarms}) == 500


def test_a_pipe_in_place_of_the_file_holds_up_nobody(database: Path) -> None:
    """Opening it would wait for ever for somebody to write."""
    os.mkfifo(database)
    rounds = Rounds(settings(**kept(database)))
    rounds.watch.start()
    found = rounds.judge(*BURST)
    assert states(found) == {"ErrorBurst": FIRING}
    assert value(found, store_status.STORE.name, state="unsafe") == 1.0
    assert rounds.watch.stop()


def test_a_slow_disk_holds_up_nobody(database: Path, running: Rounds) -> None:
    """While a write waits for a lock that another process holds, rounds are judged all the same."""
    running.judge(WELL)
    wait_for(lambda: running.watch._writer.status().writes, what="a first write")
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        running.judge(*BURST)
        wait_for(lambda: running.watch._writer.status().busy_seconds > 0.05, what="a write waits")
        writes = running.watch._writer.status().writes
        found = running.judge(*[snap()] * 50)
        assert running.watch._writer.status().writes == writes
        other.execute("ROLLBACK")
    assert states(found) == {"ErrorBurst": FIRING}
    durable = running.watch._writer.status
    wait_for(lambda: durable().durable == durable().rounds, what="everything written")


def test_a_file_that_another_sidecar_holds_is_taken_over_with_all_that_is_in_it(
    database: Path, running: Rounds
) -> None:
    """Two overlap in a restart: alarms and baselines are had as soon as the other lets go, and the
    younger one, who knows nothing yet, writes over none of them before.
    """
    table = RateSettings(levels=(RateLevelSettings(mean=42.6, sigma=3.8),))
    running.watch.reconfigure(settings(**kept(database), rate=table))
    running.judge(WELL, *[GONE] * 5)
    younger = Rounds(settings(**kept(database)), at=running.at)
    younger.watch.start()
    found = younger.judge(snap())
    assert value(found, store_status.STORE.name, state="locked") == 1.0
    assert "engine:r0" not in younger.watch._detectors.known()["presence/seen"]
    assert running.watch.stop()

    def taken_over() -> bool:
        return states(younger.judge(snap(collectors=collectors(r1=None)))) == {"EngineGone": FIRING}

    wait_for(taken_over, what="the alarm of the older one")
    assert "engine:r0" in younger.watch._detectors.known()["presence/seen"]
    younger.judge(WELL)
    told = younger.watch._writer.status
    wait_for(lambda: told().durable == told().rounds, what="it has written")
    assert "engine:r0" in in_file(database, "presence/seen")
    assert younger.watch.stop()
    store = Store()
    assert store.open(database) is StoreState.OK
    assert "engine:r0" in store.levels["presence/seen"]
    store.close()


def in_file(database: Path, key: str) -> str:
    """What the file holds under a key just now."""
    with closing(sqlite3.connect(database)) as file:
        [(payload,)] = file.execute("SELECT payload FROM levels WHERE key = ?", (key,))
    return str(payload)


def decoding(minute: int) -> Snapshot:
    """One sequence that is decoded at 20 tokens a second, after so many minutes."""
    return snap(
        samples=tuple(engine(model="m", tokens=900.0 * minute)),
        tallies={Leg.UPSTREAM: Tally(ended=9, gaps=1_200 * minute, decode_seconds=60.0 * minute)},
        windows=(made.window(Leg.UPSTREAM, open_requests=1),),
    )


def test_an_alarm_freezes_what_detectors_learn() -> None:
    """The book's alarms reach the detector whose baseline they are about, by their own labels."""
    level = RateLevelSettings(mean=42.6, sigma=3.8)
    rounds = Rounds(settings(rate=RateSettings(levels=(level,))))
    found = rounds.judge(*map(decoding, range(6)), seconds=60.0)
    assert states(found)["TokenRateOutOfBand"] is FIRING
    kept_levels = rounds.watch._detectors.known()
    [text] = [text for key, text in kept_levels.items() if key.startswith("rate/")]
    assert json.loads(text)["alarm"] == "firing"


def test_every_rule_is_one_detectors() -> None:
    """Names are unique, and each rule of the table is one that the watch lets through."""
    names = [rule.name for rule in rules()]
    assert len(names) == len(set(names))
    assert Rounds().watch._detectors.rules == set(names)


def test_how_long_a_round_takes_with_two_thousand_series() -> None:
    """Printed, not judged: it depends on the machine. Asked for are about 5 ms."""
    rounds = Rounds(settings())
    many = [s for i in range(250) for s in engine(f"r{i}", tokens=float(i), model="m", x=str(i))]
    more = [Sample("modelprobe_x", 1.0, (("i", str(i)),)) for i in range(2_000 - len(many))]
    scene = replace(WELL, samples=(*many, *more))
    rounds.judge(*[scene] * 3)
    spent = []
    for _ in range(50):
        started = time.perf_counter()
        rounds.judge(scene)
        spent.append(time.perf_counter() - started)
    median = 1e3 * sorted(spent)[25]
    sys.stdout.write(f"{len(scene.samples)} series: median {median:.1f} ms a round\n")
    assert len(scene.samples) == 2_000


def test_a_file_that_the_analyst_finds_damaged_is_set_aside(
    running: Rounds, database: Path
) -> None:
    """It reads pages that are never read here; once is enough, and the alarms are written anew."""
    running.judge(WELL, GONE, GONE, GONE, GONE)
    wait_for(lambda: running.watch._writer.status().durable, 10, "the first alarms in the file")
    with sqlite3.connect(database) as other:
        other.execute("PRAGMA writable_schema = ON")
        other.execute("UPDATE sqlite_master SET rootpage = 999 WHERE name = 'drift_hours'")
    other.close()
    said = Sample("modelprobe_drift_store_state", 1.0, (("state", "corrupt"),))
    damaged = replace(GONE, samples=(said,))
    running.judge(damaged)
    wait_for(lambda: "was damaged" in running.watch._writer.status().reason, 10, "it to be noticed")
    running.judge(damaged, damaged)
    assert len(list(database.parent.glob("*.corrupt-*"))) == 1
    running.watch.stop()
    assert states(Rounds(settings(**kept(database))).judge(GONE)) == {"EngineGone": FIRING}


class Refused:
    """An outlet whose receiver takes nothing."""

    def publish(self, alarms: object, transitions: object) -> None:
        """Nothing arrives."""

    def samples(self) -> list[Sample]:
        """One output fails, another is well."""
        return [
            Sample(OUTPUTS.name, 1.0, (("output", "webhook/x"), ("state", "failing"))),
            Sample(OUTPUTS.name, 1.0, (("output", "webhook/y"), ("state", "well"))),
            Sample(OUTPUTS.name, 0.0, (("output", "webhook/y"), ("state", "stuck"))),
        ]


def test_whoever_looks_is_told_that_nobody_is_told() -> None:
    """A page in an incident must not look fine while no receiver takes its alarms."""
    watch = Watch(Settings(), Refused())  # type: ignore[arg-type]
    found = watch.judge(snap(), 1.0).observations
    assert [(one.kind, one.subject) for one in found] == [("notify", "webhook/x")]


def test_a_file_that_cannot_be_used_is_said_where_people_look(tmp_path: Path) -> None:
    """One line of a log is read by nobody; the page says that a restart would forget alarms."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    watch = Watch(Settings(alarms={"database": folder / "a.db"}))  # type: ignore[arg-type]
    watch.start()
    try:
        [found] = wait_for(lambda: watch.judge(snap(), 1.0).observations, 10, "it is said")
        assert found.kind == "alarm_store"
        assert "in memory only" in found.text
    finally:
        watch.stop()
